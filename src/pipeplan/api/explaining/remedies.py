"""Remedies for a schedule: other costs, schedules, chunks, microbatches or memory, each simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pipeplan.api.comparing.leads import work_of
from pipeplan.api.simulating.result import Result, result_of
from pipeplan.api.simulating.simulate import simulated
from pipeplan.api.sources import settings_for, shape_of
from pipeplan.costs import Settings
from pipeplan.errors import PipeplanError
from pipeplan.model import Kind, Schedule, counted, tolerances
from pipeplan.records import Record
from pipeplan.simulation import Simulation, what_ifs
from pipeplan.strategies import Strategy, all_strategies

MOST_WORK = 500_000
"""Ops of other schedules that are timed: those first whose authors promise the shortest idle time."""

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


def remedies(source: Strategy | Schedule, settings: Settings, result: Result) -> tuple[Remedy, ...]:
    """Return all simulated changes, the best first: those within the memory limit, by time per microbatch.

    A ``source`` that is a schedule, not a strategy, keeps its chunks and microbatches.
    """
    candidates = [*_costs(settings, result), *_other_order(source, settings, result)]
    if isinstance(source, Strategy):
        candidates += _same_strategy(source, settings, result)
    candidates += _other_schedules(settings, result)
    return tuple(
        sorted(candidates, key=lambda remedy: (not remedy.fits, round_off(remedy.per_microbatch), remedy.peak))
    )


def round_off(value: float) -> float:
    """Round a time so that equal times compare equal."""
    return float(f"{value:.12g}")


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
    if factors is None:
        return
    from pipeplan.passes import without_communication
    from pipeplan.solver import Reorderer  # explanations without factors need no solver

    schedule = result.schedule
    if settings.communication == "streams" and not (isinstance(source, Schedule) and source.has(Kind.SEND_F)):
        schedule = without_communication(schedule)  # messages are posted anew for each order
    found = Reorderer(schedule, result.costs, result.limits, settings.communication)(factors)
    changed = result_of(found.reordered, limits=result.limits)
    numbers = found.order.tolist()
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


def _other_schedules(settings: Settings, result: Result) -> Iterator[Remedy]:
    """Yield the best other strategies that are faster or within the limit."""
    schedule = result.schedule
    settings = replace(settings, ranks=schedule.ranks, microbatches=schedule.microbatches, stages=None, variant=None)
    if schedule.slices > 1:
        settings = replace(settings, slices=schedule.slices)
    spent, others = 0, []
    for other, work in _promising(settings, result.name):
        if spent + work > MOST_WORK:
            continue
        spent += work
        tried = _tried(other, settings_for(other, settings), result)
        if tried is not None and (tried.fits or not result.fits):
            others.append(tried)
    shorter = [
        other for other in others if other.fits > result.fits or round_off(other.makespan) < round_off(result.makespan)
    ]
    for best in _undominated(shorter)[:MOST_SCHEDULES]:
        yield _remedy(best.name, "schedule", best, result)


def _promising(settings: Settings, besides: str) -> list[tuple[Strategy, int]]:
    """Return the other strategies that take the shape, with the work of trying each, by their published idle time."""
    promised = []
    for candidate in all_strategies(settings):
        try:
            shape = shape_of(candidate, settings_for(candidate, settings))
        except PipeplanError:
            continue
        if candidate.name != besides and candidate.accepts(shape):
            work = work_of(3 * shape.forwards, candidate)
            promised.append((candidate.looks_at_costs, candidate.bubble.value(shape), candidate, work))
    return [(candidate, work) for _, _, candidate, work in sorted(promised, key=lambda promise: promise[:2])]


def _undominated(results: Sequence[Result]) -> list[Result]:
    """Return the Pareto front of results in makespan and memory, the fastest first."""
    kept: list[Result] = []
    for result in sorted(results, key=lambda result: (not result.fits, round_off(result.makespan), result.peak)):
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
