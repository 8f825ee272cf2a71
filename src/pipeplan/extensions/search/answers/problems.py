"""From settings and the options of a search to its problem, and the published schedules that it has to beat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter

import numpy as np

from pipeplan.answers.published import (
    Allowed,
    FasterWithMore,
    PublishedCandidate,
    allowed_needs,
    best_published,
    faster_with_more,
)
from pipeplan.answers.sharding import rule_of
from pipeplan.answers.sources import DEFAULT_MICROBATCHES, as_taken_by, build, shape_of
from pipeplan.costs import Costs, Limits, Settings, names_of
from pipeplan.extensions.search import (
    ALL_RECOMPUTED,
    EVERYTHING_UP_TO,
    Choices,
    Problem,
    PublishedEntry,
    SearchResult,
    fixed_orders,
    is_as_published,
    is_of,
    value_as_is,
)
from pipeplan.extensions.search.answers.options import AUTO, Names, ScheduleSearchOptions
from pipeplan.extensions.search.answers.search_record import LeastPeak, PublishedSchedule
from pipeplan.foundation.errors import (
    CostError,
    InfeasibleError,
    InputError,
    PipeplanError,
    ShapeError,
    UnknownNameError,
)
from pipeplan.model import TWO_COPIES, Kind, Placement, Schedule, needs_of, shortened, tolerances
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES, Strategy

DEFAULT_CHUNKS = {"linear": 1, "loop": 2, "v": 2, "wave": 4, "bidirectional": 1, "bidirectional-v": 2}
"""The placements that are searched by name, and their default numbers of chunks: of each copy, if there are two."""

FIXED_CHUNKS = {"linear", "v", "bidirectional", "bidirectional-v"}
"""Those that have no other number of chunks."""

_DEFAULT = ScheduleSearchOptions()


def problem_of(
    settings: Settings, options: ScheduleSearchOptions = _DEFAULT, *, placement: str | None = None
) -> Problem:
    """Return the search problem, on the placement of the options (``auto``: linear) unless another one is named."""
    choices = choices_of(options.decide, options.leave, full_backward=options.full_backward)
    _require_undecided(settings, choices)
    named = placement or ("linear" if options.placement == AUTO else options.placement)
    placed = placement_named(named, settings)
    costs = settings.costs(placed)
    _require_times(costs, choices, names_of(options.decide))
    return Problem(
        placed,
        settings.microbatch_count or DEFAULT_MICROBATCHES,
        costs,
        settings.limits(placed),
        objective=options.objective,
        choices=choices,
        communication=settings.communication,
        slices=settings.slices or 1,
        sharding=None if (rule := rule_of(settings)).name == "none" else rule,
    )


def problems_of(settings: Settings, options: ScheduleSearchOptions = _DEFAULT) -> list[Problem]:
    """Return the problem of each placement that is searched: one where a placement is named, else those that can be.

    As in a comparison, ``chunks`` is for the placements that can have several numbers of chunks (``loop``, ``wave``); the
    others keep theirs. Stages and ranks together select the placements with this many stages. A placement is left out if the
    microbatches, a list of costs per stage or the memory limit rule it out, and if it holds the model twice, unless the
    options allow copies.

    Raises what :func:`pipeplan.search` does; where every placement is ruled out, for the one that comes the nearest.
    """
    if options.placement != AUTO:
        return [problem_of(settings, options)]
    copies = "copies" in allowed_needs(options.allow)
    problems: list[Problem] = []
    refused: list[tuple[float, PipeplanError]] = []
    for name in DEFAULT_CHUNKS:
        there = settings_of_placement(name, settings)
        if there is None:
            continue
        try:
            problem = problem_of(there, options, placement=name)
            placements = {candidate.placement.rank_of for candidate in problems}
            if (copies or problem.placement.copies == 1) and problem.placement.rank_of not in placements:
                problems.append(problem)
        except InfeasibleError as error:
            refused.append((_least_limit(there, options, name), error))
        except (CostError, ShapeError) as error:
            refused.append((float("inf"), error))
    if problems:
        return problems
    if not refused:
        return [problem_of(settings, options)]
    raise min(refused, key=lambda candidate: candidate[0])[1]


def settings_of_placement(name: str, settings: Settings) -> Settings | None:
    """Return the settings with the ranks and chunks of a placement; None if stages and ranks rule it out."""
    chunks = DEFAULT_CHUNKS[name] if name in FIXED_CHUNKS or settings.chunks is None else settings.chunks
    if settings.stages is None or settings.ranks is None:
        ranks = settings.pipeline_ranks(settings.chunks or 1)
        return replace(settings, ranks=ranks, chunks=chunks, stages=None)
    if name not in FIXED_CHUNKS and settings.chunks is None:
        chunks = settings.stages // settings.ranks
    return replace(settings, chunks=chunks) if chunks * settings.ranks == settings.stages else None


def _least_limit(settings: Settings, options: ScheduleSearchOptions, placement: str) -> float:
    """Return the least limit for all ranks under which a placement has schedules."""
    limits = settings.limits(placement_named(placement, settings))
    assert limits is not None
    free = problem_of(replace(settings, memory_limit=None), options, placement=placement)
    unlimited = Limits(np.full(len(limits.values), np.inf), limits.in_activations)
    return float(replace(free, limits=unlimited).least_limit.max())


def choices_of(decide: Names, leave: Names, *, full_backward: bool = False) -> Choices:
    """Return the choices of a search. Raises InputError for decisions that exclude each other."""
    decided, left = names_of(decide), names_of(leave)
    if full_backward and "split" in decided:
        raise InputError(
            "full_backward and decide split exclude each other",
            field="full_backward",
        )
    return Choices.of(decided, [*left, "split"] if full_backward else left)


def _require_undecided(settings: Settings, choices: Choices) -> None:
    """Refuse settings that fix what a search decides or leaves alone."""
    for name in ("recompute", "offload"):
        fixed = getattr(settings, name)
        if fixed in ("none", ()):
            continue
        text = fixed if isinstance(fixed, str) else ",".join(map(str, fixed))
        if name in choices:
            raise InputError(
                f"{name} {text} fixes what the search should decide: drop {name} or decide={name}", field=name
            )
        raise InputError(
            f"a search does not take fixed settings of {name}: drop {name} {text}, use decide {name}",
            field=name,
        )


def _require_times(costs: Costs, choices: Choices, decided: list[str]) -> None:
    """Refuse decisions whose ops take no known time."""
    if choices.offload and costs.offload is None:
        raise InputError(
            "offload needs the time of a copy to the host: set offload_times, or "
            "offload_bandwidth and activation_bytes",
            field="offload_bandwidth",
        )
    if "overlap" in decided and not costs.has_pair_times:
        raise InputError(
            "overlap needs overlap_times or segments: by default a pair takes as long as both ops in sequence",
            field="overlap_times",
        )


def placement_named(name: str, settings: Settings) -> Placement:
    """Return the placement of a name with the ranks and chunks of the settings, or of a list of ranks."""
    if "," in name:
        return _custom_placement(name, settings)
    if name not in DEFAULT_CHUNKS:
        raise UnknownNameError("placement", name, DEFAULT_CHUNKS)
    chunks = settings.chunks or DEFAULT_CHUNKS[name]
    if name in FIXED_CHUNKS and chunks != DEFAULT_CHUNKS[name]:
        raise ShapeError(
            f"a {name} placement has {DEFAULT_CHUNKS[name]} chunk(s) per rank, not {chunks}: "
            f"use placement {_fitting(chunks, two_copies=name.startswith('bidirectional'))}",
            field="chunks",
        )
    return Placement.called(name, settings.pipeline_ranks(chunks), chunks)


def _fitting(chunks: int, *, two_copies: bool) -> str:
    if two_copies and chunks <= 2:
        return "bidirectional" if chunks == 1 else "bidirectional-v"
    return "linear" if chunks == 1 else "loop" if chunks % 2 else "v or loop" if chunks == 2 else "wave or loop"


def _custom_placement(text: str, settings: Settings) -> Placement:
    try:
        placement = Placement.of(tuple(int(rank) for rank in text.split(",")))
    except ValueError:
        raise ShapeError(
            f"invalid placement '{shortened(text, 60)}': expected a name, or the rank of each stage such as 0,1,1,0"
        ) from None
    for name in ("ranks", "stages"):
        if getattr(settings, name) not in (None, getattr(placement, name)):
            raise ShapeError(f"placement {text} has {getattr(placement, name)} {name}, not {getattr(settings, name)}")
    return placement


ORDERS_UP_TO = 16_384
"""Ranks times microbatches up to which the published schedules of other placements are tried."""


def published_here(solution: SearchResult) -> PublishedSchedule | None:
    """Return the best published schedule of the searched placement; None if none fits."""
    best, placement = solution.published, solution.problem.placement.name
    return None if best is None else PublishedSchedule(schedule=best.name, placement=placement, value=best.value)


def least_need(problem: Problem) -> LeastPeak | None:
    """Return the published order of the placement that needs the least memory; None for shapes that are too large."""
    if problem.limits is None or _size(problem) > EVERYTHING_UP_TO:
        return None
    free = replace(problem, limits=None)
    in_activations = problem.limits.in_activations
    needs = []
    for name, schedule in fixed_orders(free, every_group_up_to=0):
        if not is_as_published(name):
            continue
        memory = simulate(free.sharded(schedule), free.costs).memory
        peaks = memory.peak_activation if in_activations or memory.peak_bytes is None else memory.peak_bytes
        needs.append(LeastPeak(name, float(peaks.max()), in_activations))
    return min(needs, key=attrgetter("memory"), default=None)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The published schedules that the answer of a search is compared with.

    Attributes
    ----------
    here, anywhere
        The best ones that need nothing but what is allowed: of the placement of the answer, and of any.
    faster_with_more
        The best ones of each group that needs more, if they are shorter than the answer.
    """

    here: PublishedSchedule | None
    anywhere: PublishedSchedule | None
    faster_with_more: tuple[FasterWithMore, ...]


def baseline_of(
    solution: SearchResult, entries: Sequence[PublishedEntry], allowed: Allowed, *, fixed: bool
) -> Baseline:
    """Return the published schedules to compare the answer of a search with.

    ``fixed``: the costs of the stages are fixed, so that ``entries`` are all published schedules; a search over layouts has
    timed the best ones of each placement.
    """
    problem = solution.problem
    others = [entry for entry in entries if not is_of(entry.schedule, problem)]
    here = published_here(solution)
    if entries and fixed:
        own = (entry for entry in entries if is_of(entry.schedule, problem))
        here = _record_of(best_published(own, allowed, as_candidate))
    anywhere = None
    if looks_everywhere(problem):
        anywhere = _record_of(best_published(entries if fixed else others, allowed, as_candidate))
        if not fixed:
            anywhere = min(
                (best for best in (here, anywhere) if best is not None), key=attrgetter("value"), default=None
            )
    more = faster_with_more(map(as_candidate, entries), allowed, solution.value)
    return Baseline(here, anywhere, more)


def as_candidate(entry: PublishedEntry) -> PublishedCandidate:
    """Return an entry as a candidate for the best published schedule."""
    schedule = entry.schedule
    return PublishedCandidate(
        name=schedule.name, needs=needs_of(schedule), fits=True, value=entry.value, peak=entry.peak
    )


def searched_needs(options: ScheduleSearchOptions, settings: Settings, starts: Iterable[Schedule] = ()) -> Allowed:
    """Return the needs that a search allows: by name, by its settings and decisions, by its placement and its starts."""
    allowed = set(allowed_needs(options.allow, settings))
    allowed |= {need for schedule in starts for need in needs_of(schedule)}
    if "recompute" in names_of(options.decide):
        allowed.add("recompute")
    if options.placement in TWO_COPIES:
        allowed.add("copies")
    return frozenset(allowed)


def _record_of(entry: PublishedEntry | None) -> PublishedSchedule | None:
    if entry is None:
        return None
    slices = entry.schedule.slices
    placement = entry.problem.placement.name + (f", {slices} slices" if slices > 1 else "")
    return PublishedSchedule(schedule=entry.schedule.name, placement=placement, value=entry.value)


def looks_everywhere(problem: Problem) -> bool:
    """Return whether the shape is small enough to try published schedules of other placements."""
    return _size(problem) <= ORDERS_UP_TO


def published_everywhere(problem: Problem, settings: Settings) -> list[PublishedEntry]:
    """Return the published schedules of all placements that are within the settings' limits.

    They are those that a comparison lists for the same shape, costs and limit, whatever they need. Of shapes that are too
    large there are none.
    """
    return list(_entries(problem, settings)) if looks_everywhere(problem) else []


def published_under(problem: Problem, settings: Settings, *, in_bytes: bool) -> Callable[[float], list[PublishedEntry]]:
    """Return a function from a memory limit (infinite: none) to its :func:`published_everywhere`; settings have no limit.

    Fixed orders are reused; strategies that use costs generate another order under each limit.
    """
    free = published_everywhere(problem, settings)

    @cache
    def under(limit: float) -> list[PublishedEntry]:
        if not np.isfinite(limit):
            return free
        limited = replace(settings, memory_limit=limit if in_bytes else f"{limit}act")
        fitting = [
            replace(entry, problem=replace(entry.problem, limits=limited.limits(entry.problem.placement)))
            for entry in free
            if entry.peak <= limit * (1 + tolerances.MEMORY)
        ]
        if _size(problem) <= EVERYTHING_UP_TO:
            fitting += _entries(problem, limited, made_from_costs=True)
        return fitting

    return under


def not_compared(problem: Problem) -> Iterator[str]:
    """Yield a note on the published schedules that are not compared, because the shape is too large."""
    if not looks_everywhere(problem):
        yield "the shape is too large to compare with published schedules of other placements"
    elif _size(problem) > EVERYTHING_UP_TO:
        names = ", ".join(strategy.name for strategy in STRATEGIES.values() if strategy.looks_at_costs)
        yield f"not compared with {names}, which take too long to generate for this shape"


def not_proven(solution: SearchResult) -> Iterator[str]:
    """Yield a note if optimality is not proven because microbatches differ or may be recomputed."""
    problem = solution.problem
    if not solution.optimal and (problem.costs.factors is not None or problem.choices.recompute):
        yield "not proven optimal: the exact solver takes no microbatches that differ or may be recomputed"


def _size(problem: Problem) -> int:
    return problem.placement.ranks * problem.microbatches


def _entries(problem: Problem, settings: Settings, *, made_from_costs: bool = False) -> Iterator[PublishedEntry]:
    """Return the entries of all strategies, or only of those that make a schedule from its costs."""
    alike = replace(settings, ranks=problem.placement.ranks, stages=None)
    for strategy in STRATEGIES.values():
        too_large = strategy.looks_at_costs and _size(problem) > EVERYTHING_UP_TO
        if too_large or (made_from_costs and not strategy.looks_at_costs):
            continue
        try:
            own = _of(strategy, as_taken_by(strategy, alike), problem)
        except PipeplanError:
            continue  # It does not take this shape, these costs or this limit.
        if own is not None:
            yield own


def _of(strategy: Strategy, settings: Settings, problem: Problem) -> PublishedEntry | None:
    """Return the schedule that a strategy makes of the settings, or None if they do not fit it."""
    placement = strategy.placed(shape_of(strategy, settings))
    there = replace(
        problem, placement=placement, costs=settings.costs(placement), limits=settings.limits(placement), slices=1
    )
    schedule, name = build(strategy, settings), strategy.name
    if schedule.has(Kind.R):
        there = replace(there, choices=replace(problem.choices, recompute=True))
    value = value_as_is(schedule, there)
    if problem.choices.recompute and np.isinf(value) and not strategy.recomputes:
        schedule, name = insert_recompute(schedule), f"{name}{ALL_RECOMPUTED}"
        value = value_as_is(schedule, there)
    if np.isinf(value):
        return None
    return PublishedEntry(replace(there, slices=schedule.slices), schedule.renamed(name), value)
