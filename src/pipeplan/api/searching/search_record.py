"""Record of a search: how it found its schedule, decisions, proofs, and the gain over published schedules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from pipeplan.formats import (
    Decided,
    JitterRecord,
    ObjectiveRecord,
    PlacementRecord,
    Price,
    PublishedSchedule,
    SearchFigures,
    SlowRankRecord,
)
from pipeplan.model import HOST_KINDS, Kind, MemoryUse, Schedule, among, tolerances
from pipeplan.readable import change
from pipeplan.records import Evidence
from pipeplan.simulation import Bound, memory_use
from pipeplan.solver import Jitter, PlacementTried, Problem, SearchResult, SlowRank

Spared: TypeAlias = Literal["recompute", "offload"]
"""Ways to free memory between a forward and its backward."""

_KINDS: dict[Spared, tuple[Kind, ...]] = {"recompute": (Kind.R,), "offload": HOST_KINDS}


@dataclass(frozen=True, slots=True)
class Need:
    """Peak memory of a published schedule, in bytes including static memory, or in activations."""

    name: str
    memory: float
    in_activations: bool


class SearchRecord(SearchFigures, frozen=True, kw_only=True, eq=False):
    """Figures of a search (:class:`~pipeplan.formats.SearchFigures`) with their bound and placement."""

    placement = Evidence[str]()
    """Name of the schedule's placement."""

    bound = Evidence[Bound]()
    """The best lower bound on the objective."""

    nominal = Evidence[Bound | None]()
    """With a slow rank, a lower bound on the objective of the plan, in which none is slow."""

    least_need = Evidence[Need | None]()
    """Published schedule that needs the least memory, if none of the placement fits."""

    @property
    def objective(self) -> Literal["makespan", "span"]:
        """Name of the minimized objective."""
        return self.minimized.name

    @property
    def value(self) -> float:
        """The objective."""
        return self.minimized.value

    @property
    def of(self) -> Literal["plan", "p95", "worst"]:
        """Which number is small: the objective of the plan, its p95 under jitter, or its worst with a slow rank."""
        return self.minimized.of

    @property
    def gap(self) -> float:
        """``value / bound - 1``: how far from optimal the objective can be."""
        return self.minimized.gap

    @property
    def jitter(self) -> float | None:
        """By how much op times vary; None if they do not."""
        return None if self.under_jitter is None else self.under_jitter.deviation

    @property
    def slow_rank(self) -> float | None:
        """Fraction by which any one rank is slower; None if no rank is."""
        return None if self.with_slow_rank is None else self.with_slow_rank.share

    @property
    def gain_in_short(self) -> str:
        """The gain after a comma, for one line; empty if no published schedule fits."""
        if self.best_published is None or self.gain is None:
            return ""
        return f", {change(-self.gain)} against {self.best_published.name}"


def record_of(
    solution: SearchResult,
    here: PublishedSchedule | None,
    everywhere: Iterable[PublishedSchedule],
    tried: Iterable[PlacementTried],
    need: Need | None,
) -> SearchRecord:
    """Return the record of the solver's result.

    Parameters
    ----------
    here, everywhere
        The best published schedule of its placement, and those of all placements; none if others were not tried.
    tried
        Bound and best value of each placement.
    need
        The published schedule that needs the least memory, where none of the placement fits.
    """
    problem = solution.problem
    anywhere = min(everywhere, key=attrgetter("value"), default=None)
    return SearchRecord(
        found_by=solution.found_by,
        optimal=solution.optimal,
        evaluations=solution.evaluations,
        seconds=solution.seconds,
        interrupted=solution.interrupted,
        compiled_after=solution.compiled_after,
        tried=tuple(
            PlacementRecord(
                placement=entry.placement.name,
                chunks=entry.placement.chunks,
                lower_bound=entry.bound,
                value=entry.value,
            )
            for entry in tried
        ),
        **_judged(solution),
        communication=problem.communication,
        decided=decided_in(solution.schedule, problem),
        best_published=here,
        gain=_gain(here, solution.judged),
        best_published_anywhere=anywhere,
        gain_anywhere=_gain(anywhere, solution.judged),
    ).holding(
        placement=problem.placement.name,
        bound=solution.bound,
        nominal=problem.bound if isinstance(problem.variation, SlowRank) else None,
        least_need=need,
    )


def _gain(published: PublishedSchedule | None, value: float) -> float | None:
    if published is None:
        return None
    share = 1 - value / published.value
    return 0.0 if abs(share) <= tolerances.ROUNDING else share


def _judged(solution: SearchResult) -> dict[str, Any]:
    """Return the objective, and the schedule's times in the simulated runs that judge it."""
    problem, ours, theirs = solution.problem, solution.robustness, solution.published_robustness
    of: Literal["plan", "p95", "worst"] = "plan"
    robust: dict[str, Any] = {"under_jitter": None, "with_slow_rank": None}
    if isinstance(problem.variation, Jitter) and ours is not None:
        of = "p95"
        robust["under_jitter"] = JitterRecord(
            deviation=problem.variation.deviation,
            mean=ours.mean,
            p95=ours.p95,
            published_p95=None if theirs is None else theirs.p95,
        )
    elif isinstance(problem.variation, SlowRank) and ours is not None:
        of = "worst"
        robust["with_slow_rank"] = SlowRankRecord(
            share=problem.variation.share,
            mean=ours.mean,
            worst=ours.worst,
            published_worst=None if theirs is None else theirs.worst,
        )
    minimized = ObjectiveRecord(
        name=problem.objective,
        of=of,
        value=solution.judged,
        lower_bound=solution.bound.value,
        bound_reason=solution.bound.reason,
        gap=solution.bound.gap_of(solution.judged),
    )
    return {"minimized": minimized, **robust}


def decided_in(schedule: Schedule, problem: Problem) -> Decided:
    """Return the decisions in a schedule of a problem."""
    return Decided(
        choices=problem.choices.names,
        microbatches=schedule.microbatches,
        recomputed=_by_stage(schedule, Kind.R),
        offloaded=_by_stage(schedule, Kind.OFFLOAD),
        full_backwards=_count(schedule, Kind.B),
        split_backwards=_count(schedule, Kind.I),
        overlapped_pairs=int(schedule.joined.sum()),
        prices={how: _price(schedule, problem, kinds) for how, kinds in _KINDS.items() if schedule.has(kinds[0])},
    )


def _count(schedule: Schedule, kind: Kind) -> int:
    return int((schedule.columns.kind == kind).sum())


def _by_stage(schedule: Schedule, kind: Kind) -> tuple[int, ...]:
    """Return how many microbatches of each stage have an op of a kind; one slice is enough."""
    columns = schedule.columns
    chosen = columns.kind == kind
    pairs = np.unique(columns.stage[chosen].astype(np.int64) * schedule.microbatches + columns.microbatch[chosen])
    counts: list[int] = np.bincount(pairs // schedule.microbatches, minlength=schedule.stages).tolist()
    return tuple(counts)


def _price(schedule: Schedule, problem: Problem, kinds: tuple[Kind, ...]) -> Price:
    kept = schedule.keep(~among(schedule.columns.kind, kinds))
    values = [problem.value(problem.simulated(order).timeline) for order in (schedule, kept)]
    peaks, in_bytes = zip(*(_peaks(memory_use(order, problem.costs)) for order in (schedule, kept)), strict=True)
    saved = peaks[1] - peaks[0]
    rank = int(np.argmax(saved))
    time = values[0] / values[1] - 1
    return Price(time=time, memory=float(saved[rank]), rank=rank, in_bytes=in_bytes[0])


def _peaks(memory: MemoryUse) -> tuple[Any, bool]:
    in_bytes = memory.peak_bytes is not None
    return (memory.peak_bytes if in_bytes else memory.peak_activation), in_bytes
