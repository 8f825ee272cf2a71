"""Record of a search: how it found its schedule, decisions, proofs, and the gain over published schedules.

Importing this does not load the solver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from pipeplan.answers.published import FasterWithMore
from pipeplan.answers.simulating.record import ResultRecord
from pipeplan.answers.simulating.result import Result
from pipeplan.costs import Communication, Layout
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import HOST_KINDS, Kind, MemoryUse, Objective, Schedule, among, tolerances
from pipeplan.simulation import Bound, memory_use

if TYPE_CHECKING:
    from pipeplan.extensions.search import PlacementTried, Problem, SearchResult

Spared: TypeAlias = Literal["recompute", "offload"]
"""Ways to free memory between a forward and its backward."""

_KINDS: dict[Spared, tuple[Kind, ...]] = {"recompute": (Kind.R,), "offload": HOST_KINDS}


@dataclass(frozen=True, slots=True)
class LeastPeak:
    """Peak memory of a published schedule, in bytes including static memory, or in activations."""

    name: str
    memory: float
    in_activations: bool


class ObjectiveRecord(Record, frozen=True, kw_only=True):
    """Objective of a search, and its lower bound."""

    name: Objective
    value: float
    lower_bound: float
    bound_reason: str
    gap: float


class Price(Record, frozen=True, kw_only=True):
    """Relative increase of the step time by recomputation or offloading, and the largest saving of memory on a rank.

    Both are relative to the same order without recomputation and offloading.
    """

    time: float
    memory: float
    rank: int
    in_bytes: bool = False


class Decided(Record, frozen=True, kw_only=True):
    """Choices that a search was free to make, and the choices in its schedule.

    ``recomputed`` and ``offloaded`` count microbatches per stage, of ``microbatches`` in the step.
    """

    choices: tuple[Literal["split", "overlap", "weight-order", "recompute", "offload"], ...]
    recomputed: tuple[int, ...]
    offloaded: tuple[int, ...]
    full_backwards: int
    split_backwards: int
    overlapped_pairs: int
    prices: dict[Literal["recompute", "offload"], Price]
    microbatches: int = 0

    @property
    def frees_memory(self) -> bool:
        """True if the search was free to recompute or offload."""
        return "recompute" in self.choices or "offload" in self.choices


class PublishedSchedule(Record, frozen=True, kw_only=True):
    """A published schedule to compare with: its name, its placement, and its objective.

    The name includes the variant or the group size if it is not the default.
    """

    schedule: str
    placement: str
    value: float


class PlacementRecord(Record, frozen=True, kw_only=True):
    """A placement in a search: its best lower bound, and the best value found; null if it cannot win.

    ``layers_per_stage``, of the best value, is present if the search decided the layout; the bound is then over all layouts.
    """

    placement: str
    chunks: int
    lower_bound: float
    value: float | None
    layers_per_stage: tuple[int, ...] | UnsetType = UNSET


class SearchRecord(Record, frozen=True, kw_only=True, eq=False):
    """Course of a search, its proof and its gain: the keys that it adds to the JSON of its result.

    Attributes
    ----------
    found_by
        Engine that found the schedule, and its starting point.
    optimal
        True if the bound proves that no schedule of the placement has a smaller objective; for spans, no schedule whose
        ops start as early as possible.
    evaluations, seconds
        Evaluated schedules and elapsed time.
    interrupted
        True if the user stopped the search before its budget was spent.
    placements
        Bound and best value of each placement that could have won.
    objective
        Objective, its value, and its lower bound.
    communication
        Model of transfers.
    decided
        Choices in the schedule besides its order, and those that the search was free to make.
    best_published
        Best published schedule of the search's placement within the limit that needs nothing but what is allowed; None if
        none fits.
    best_published_anywhere
        The same of any placement, as a comparison names it; None if none fits, or the shape is too large to try the others.
    faster_with_more
        The best published schedule of each group that needs more, if it is shorter than the answer.
    gain, gain_anywhere
        Relative reduction of the objective compared with theirs; negative for an increase.
    layers_per_stage
        Number of layers of each stage, if the search decided the layout; the bound is then over all layouts of all
        ``placements``.
    """

    found_by: str
    optimal: bool
    evaluations: int
    seconds: float
    interrupted: bool
    placements: tuple[PlacementRecord, ...]
    objective: ObjectiveRecord
    communication: Communication
    decided: Decided
    best_published: PublishedSchedule | None
    gain: float | None
    best_published_anywhere: PublishedSchedule | None
    gain_anywhere: float | None
    faster_with_more: tuple[FasterWithMore, ...]
    layers_per_stage: tuple[int, ...] | UnsetType = UNSET

    placement = Evidence[str]()
    """Name of the schedule's placement."""

    bound = Evidence[Bound]()
    """The best lower bound on the objective."""

    least_need = Evidence[LeastPeak | None]()
    """Published schedule that needs the least memory, if none of the placement fits."""

    @property
    def frees_memory(self) -> bool:
        """True if the search was free to recompute or offload."""
        return self.decided.frees_memory

    @property
    def leaves_out(self) -> str:
        """Schedules that its bound leaves out, in words; empty if none."""
        return "" if "overlap" in self.decided.choices else "without overlapped pairs"

    @property
    def summary_fields(self) -> str:
        """Paths of the parts of its JSON that are in the summary of its result."""
        return """found_by optimal interrupted seconds best_published gain best_published_anywhere gain_anywhere
        faster_with_more layers_per_stage"""

    @property
    def best_gain(self) -> float | None:
        """The gain over the best published schedule that fits, of any placement where others were looked at; else None."""
        return self.gain if self.best_published_anywhere is None else self.gain_anywhere


class SearchedResult(ResultRecord, frozen=True, kw_only=True):  # noqa: D101
    # Field by field, because no class can have the fields of two records; a test compares them with those of SearchRecord.
    __doc__ = Result.__doc__

    found_by: str | UnsetType = UNSET
    optimal: bool | UnsetType = UNSET
    evaluations: int | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    interrupted: bool | UnsetType = UNSET
    placements: tuple[PlacementRecord, ...] | UnsetType = UNSET
    objective: ObjectiveRecord | UnsetType = UNSET
    communication: Communication | UnsetType = UNSET
    decided: Decided | UnsetType = UNSET
    best_published: PublishedSchedule | UnsetType | None = UNSET
    gain: float | UnsetType | None = UNSET
    best_published_anywhere: PublishedSchedule | UnsetType | None = UNSET
    gain_anywhere: float | UnsetType | None = UNSET
    faster_with_more: tuple[FasterWithMore, ...] | UnsetType = UNSET
    layers_per_stage: tuple[int, ...] | UnsetType = UNSET


SearchedResult.__name__ = "Result"  # its name in schemas


def searched_figures(result: Result) -> dict[str, Any]:
    """Return the fields of :class:`SearchedResult` for a result that a search found."""
    assert result.search is not None
    return asdict(result) | asdict(result.search)


def record_of(
    solution: SearchResult,
    here: PublishedSchedule | None,
    anywhere: PublishedSchedule | None,
    more: tuple[FasterWithMore, ...],
    tried: Iterable[PlacementTried],
    *,
    need: LeastPeak | None,
    layout: Layout | None = None,
) -> SearchRecord:
    """Return the record of the solver's result."""
    problem = solution.problem
    return holding(
        SearchRecord(
            found_by=solution.found_by,
            optimal=solution.optimal,
            evaluations=solution.evaluations,
            seconds=solution.seconds,
            interrupted=solution.interrupted,
            placements=tuple(
                PlacementRecord(
                    placement=entry.placement.name,
                    chunks=entry.placement.chunks,
                    lower_bound=entry.bound,
                    value=entry.value,
                    layers_per_stage=UNSET if entry.layout is None else entry.layout,
                )
                for entry in tried
            ),
            objective=ObjectiveRecord(
                name=problem.objective,
                value=solution.value,
                lower_bound=solution.bound.value,
                bound_reason=solution.bound.reason,
                gap=solution.optimality_gap,
            ),
            communication=problem.communication,
            decided=decided_in(solution.schedule, problem),
            best_published=here,
            gain=_gain(here, solution.value),
            best_published_anywhere=anywhere,
            gain_anywhere=_gain(anywhere, solution.value),
            faster_with_more=more,
            layers_per_stage=UNSET if layout is None else layout,
        ),
        placement=problem.placement.name,
        bound=solution.bound,
        least_need=need,
    )


def _gain(published: PublishedSchedule | None, value: float) -> float | None:
    if published is None:
        return None
    share = 1 - value / published.value
    return 0.0 if abs(share) <= tolerances.ROUNDING else share


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
