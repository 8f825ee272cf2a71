"""Remedies for a schedule: other costs, schedules, chunks, microbatches or memory, each simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipeplan.answers.published import (
    Allowed,
    FasterWithMore,
    as_candidate,
    best_published,
    faster_with_more,
    missing,
    rank,
    round_off,
)
from pipeplan.answers.simulating.result import Result, result_of
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.answers.sources import settings_for, shape_of
from pipeplan.costs import Settings
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.extensions import service
from pipeplan.foundation.records import Record
from pipeplan.model import Kind, Schedule, counted, tolerances
from pipeplan.simulation import Simulation, what_ifs
from pipeplan.strategies import STRATEGIES, Strategy

MOST_WORK = 500_000
"""Ops of other schedules that are timed: those first whose authors promise the shortest idle time."""

_EACH = 1_000
"""Fixed cost of a simulation, expressed in ops."""

_BUILDING = 30
"""Cost of an op in a schedule that is generated from its costs, relative to a fixed order."""

MOST_SCHEDULES = 4
"""Maximum number of other schedules that are named: the shortest of the Pareto-optimal ones in time and memory."""

MOST_NUMBERS = 8
"""Maximum number of microbatches that the words for an order list."""

LEAST_GAIN = 5e-4
"""Share of its time that a microbatch must save for a change to help: less is written as 0.0%."""

RemedyKind = Literal["costs", "order", "schedule", "chunks", "microbatches", "memory", "recomputation", "offload"]


class Remedy(Record, frozen=True, kw_only=True):
    """One change, and the step with it.

    Attributes
    ----------
    change
        In words: ``transfers free``, ``zbv``, ``1 more microbatch``.
    kind
        Description of the change.
    makespan, microbatches
        Figures of the step after the change; only ``microbatches`` changes their number.
    per_microbatch
        The makespan by the number of microbatches, by which steps of different numbers are compared.
    peak_activation, peak_bytes
        Peak memory of the fullest rank after the change; ``peak_bytes`` is None without bytes.
    fits
        True if every rank is within its memory limit.
    gain
        By how much the makespan is shorter than without the change.
    helps
        True if a microbatch takes less time; for a result over its memory limit, if the step then fits.
    """

    change: str
    kind: RemedyKind
    makespan: float
    microbatches: int
    per_microbatch: float
    peak_activation: float
    peak_bytes: float | None
    fits: bool
    gain: float
    helps: bool

    @property
    def peak(self) -> float:
        """Peak memory of the fullest rank: bytes if they are known, else activations."""
        return self.peak_activation if self.peak_bytes is None else self.peak_bytes


@dataclass(frozen=True, slots=True)
class Remedies:
    """All simulated changes, and schedules that need more than is allowed.

    Attributes
    ----------
    changes
        The best first: those within the memory limit, by time per microbatch.
    faster_with_more
        Schedules that are faster than all that need nothing but what is allowed, the best of each group of needs.
    left_out
        Names of schedules with too many ops to be tried.
    """

    changes: tuple[Remedy, ...]
    faster_with_more: tuple[FasterWithMore, ...]
    left_out: tuple[str, ...]


NO_REMEDIES = Remedies((), (), ())


def remedies(
    source: Strategy | Schedule,
    settings: Settings,
    result: Result,
    allowed: Allowed,
    *,
    for_stages: Callable[[int], Settings] | None = None,
) -> Remedies:
    """Return all simulated changes; other schedules among them need nothing but what is allowed.

    A ``source`` that is a schedule, not a strategy, keeps its chunks and microbatches. ``for_stages`` gives the settings for
    schedules with a number of stages (default: the settings, whose lists may be for other numbers).
    """
    candidates = [*_costs(settings, result), *_other_order(source, settings, result)]
    if isinstance(source, Strategy):
        candidates += _same_strategy(source, settings, result)
    others, left_out = _other_schedules(settings, result, allowed, for_stages)
    candidates += (_remedy(best.name, "schedule", best, result) for best in _shorter(others, result, allowed))
    every = [as_candidate(other) for other in (result, *others)]
    best = best_published(every, allowed, lambda candidate: candidate)
    return Remedies(
        tuple(
            sorted(
                candidates,
                key=lambda remedy: (not remedy.fits, round_off(remedy.per_microbatch), round_off(remedy.peak)),
            )
        ),
        faster_with_more(every, allowed, None if best is None else best.value),
        left_out,
    )


def _remedy(change: str, kind: RemedyKind, changed: Result, now: Result, *, makespan: float | None = None) -> Remedy:
    makespan = changed.makespan if makespan is None else makespan
    per_microbatch = makespan / changed.microbatches
    enough = now.makespan / now.microbatches * (1 - LEAST_GAIN)
    return Remedy(
        change=change,
        kind=kind,
        makespan=makespan,
        microbatches=changed.microbatches,
        per_microbatch=per_microbatch,
        peak_activation=max(changed.peak_activation),
        peak_bytes=None if changed.peak_bytes is None else max(changed.peak_bytes),
        fits=changed.fits,
        gain=now.makespan - makespan,
        helps=changed.fits and (not now.fits or per_microbatch < enough),
    )


def _costs(settings: Settings, result: Result) -> Iterator[Remedy]:
    """Yield the same order of ops on other costs, with unchanged memory."""
    for what in what_ifs(Simulation(result.timeline, result.costs), communication=settings.communication):
        yield _remedy(what.change, "costs", result, result, makespan=what.makespan)


def _other_order(source: Strategy | Schedule, settings: Settings, result: Result) -> Iterator[Remedy]:
    """Yield the same schedule with its microbatches in the best order found, if they differ."""
    factors = result.costs.factors
    reorderer = None if factors is None else service("search", "reorderer")
    if reorderer is None:
        return
    from pipeplan.passes import without_communication

    schedule = result.schedule
    if settings.communication == "streams" and not (isinstance(source, Schedule) and source.has(Kind.SEND_F)):
        schedule = without_communication(schedule)  # messages are posted anew for each order
    best = reorderer(schedule, result.costs, result.limits, settings.communication)(factors)
    changed = result_of(best.reordered, limits=result.limits)
    numbers = best.order.tolist()
    shown = ", ".join(map(str, numbers[:MOST_NUMBERS])) + (", ..." if len(numbers) > MOST_NUMBERS else "")
    yield _remedy(f"microbatches in the order {shown}", "order", changed, result)


def _same_strategy(own: Strategy, settings: Settings, result: Result) -> Iterator[Remedy]:
    """Yield the same strategy with one more microbatch, or the fewest more that it takes, and in other ways."""
    for more in (1, 2):
        grown = _tried(own, replace(settings, microbatches=result.schedule.microbatches + more), result)
        if grown is not None:
            yield _remedy(counted(more, "more microbatch"), "microbatches", grown, result)
            break
    for kind, words, changed in _ways(own, settings, result):
        tried = _tried(own, changed, result)
        if tried is not None:
            yield _remedy(words, kind, tried, result)


def _ways(own: Strategy, settings: Settings, result: Result) -> Iterator[tuple[RemedyKind, str, Settings]]:
    """Yield twice the microbatches, other chunks, and if memory is short, schedules with less or more of it."""
    microbatches, chunks = result.schedule.microbatches, result.schedule.placement.chunks
    if microbatches > 1:  # Twice one is one more, which is tried as that.
        yield "microbatches", f"{2 * microbatches} microbatches", replace(settings, microbatches=2 * microbatches)
    if not own.fixed_chunks:
        for other in (2 * chunks, chunks // 2):
            if other:
                yield "chunks", f"{counted(other, 'chunk')} per rank", replace(settings, chunks=other, stages=None)
    if result.limits is not None and own.looks_at_costs:
        yield "memory", "no memory limit", replace(settings, memory_limit=None)
    if not result.fits and microbatches > 1:
        yield (
            "microbatches",
            counted(microbatches // 2, "microbatch"),
            replace(settings, microbatches=microbatches // 2),
        )
    if settings.recompute not in ("none", ()):
        yield "recomputation", "nothing recomputed", replace(settings, recompute="none")
    elif result.limits is not None:
        yield "recomputation", "all stages recomputed", replace(settings, recompute="all", offload="none")
    if settings.offload not in ("none", ()):
        yield "offload", "nothing offloaded", replace(settings, offload="none")
    elif result.limits is not None and result.costs.offload is not None:
        yield "offload", "all stages offloaded", replace(settings, offload="all", recompute="none")


def _other_schedules(
    settings: Settings, result: Result, allowed: Allowed, for_stages: Callable[[int], Settings] | None
) -> tuple[list[Result], tuple[str, ...]]:
    """Return the results of the other strategies, and the names of those with too many ops to be tried."""
    schedule = result.schedule
    shape: dict[str, Any] = {"ranks": schedule.ranks, "microbatches": schedule.microbatches, "stages": None}
    settings = replace(settings, **shape)
    spent, others, left_out = 0, [], []
    for other, work in _promising(settings, result.name, allowed):
        if spent + work > MOST_WORK:
            left_out.append(other.name)
            continue
        spent += work
        own = settings_for(other, settings)
        if for_stages is not None:
            stages = other.placed(shape_of(other, own)).stages
            own = settings_for(other, replace(for_stages(stages), **shape))
        tried = _tried(other, own, result)
        if tried is not None:
            others.append(tried)
    return others, tuple(left_out)


def _shorter(others: Sequence[Result], result: Result, allowed: Allowed) -> list[Result]:
    """Return the best of the other schedules that need nothing but what is allowed, and are faster or within the limit."""
    shorter = [
        other
        for other in others
        if not missing(other.needs, allowed)
        and (
            other.fits > result.fits
            or (other.fits == result.fits and round_off(other.makespan) < round_off(result.makespan))
        )
    ]
    return _undominated(shorter, allowed)[:MOST_SCHEDULES]


def _promising(settings: Settings, besides: str, allowed: Allowed) -> list[tuple[Strategy, int]]:
    """Return the other strategies that take the shape, with the work of trying each.

    Those that need nothing but what is allowed come first, then those with the shortest published idle time.
    """
    promised = []
    for candidate in STRATEGIES.values():
        try:
            shape = shape_of(candidate, settings_for(candidate, settings))
        except PipeplanError:
            continue
        if candidate.name != besides and candidate.accepts(shape):
            more = missing(candidate.needs_at(shape.slices), allowed)
            place = bool(more), candidate.looks_at_costs, candidate.bubble.value(shape)
            work = 3 * shape.forwards * (_BUILDING if candidate.looks_at_costs else 1) + _EACH
            promised.append((place, candidate, work))
    return [(candidate, work) for _, candidate, work in sorted(promised, key=lambda promise: promise[0])]


def _undominated(results: Sequence[Result], allowed: Allowed) -> list[Result]:
    """Return the Pareto front of results in makespan and memory, the fastest first."""
    kept: list[Result] = []
    for result in sorted(results, key=lambda result: rank(as_candidate(result), allowed)):
        if all(result.peak < other.peak * (1 - tolerances.MEMORY) for other in kept):
            kept.append(result)
    return kept


def _tried(rule: Strategy, settings: Settings, now: Result) -> Result | None:
    """Return the result of a strategy; None if it does not take the settings, or its stages are not sharded as those now."""
    try:
        tried = simulated(rule, settings)
    except PipeplanError:
        return None
    return tried if _is_sharded(tried) or not _is_sharded(now) else None


def _is_sharded(result: Result) -> bool:
    """Return True if collectives of the result's stages take time or memory."""
    return result.costs.times_collectives(result.schedule) or result.memory.peak_parameters is not None
