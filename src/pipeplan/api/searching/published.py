"""The best published schedules that a search has to beat: on its placement, and on any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from operator import attrgetter

import numpy as np

from pipeplan.api.searching.search_record import Need, PublishedSchedule
from pipeplan.api.sources import as_taken_by, build, shape_of
from pipeplan.costs import Settings
from pipeplan.errors import PipeplanError
from pipeplan.model import tolerances
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.solver import (
    EVERYTHING_UP_TO,
    Judge,
    Problem,
    PublishedEntry,
    SearchResult,
    fixed_orders,
    is_of,
    value_as_is,
)
from pipeplan.strategies import STRATEGIES, Strategy

ORDERS_UP_TO = 16_384
"""Ranks times microbatches up to which the published schedules of other placements are tried."""


def published_here(solution: SearchResult) -> PublishedSchedule | None:
    """Return the best published schedule of the searched placement; None if none fits."""
    best, problem = solution.published, solution.problem
    if best is None:
        return None
    robustness = solution.published_robustness
    value = best.value if robustness is None else robustness.judged_under(problem.variation)
    return PublishedSchedule(schedule=best.name, placement=problem.placement.name, value=value)


def least_need(problem: Problem) -> Need | None:
    """Return the published order of the placement that needs the least memory; None for shapes that are too large."""
    if problem.limits is None or _size(problem) > EVERYTHING_UP_TO:
        return None
    free = replace(problem, limits=None)
    in_activations = problem.limits.in_activations
    needs = []
    for name, schedule in fixed_orders(free):
        memory = simulate(schedule, free.costs).memory
        peaks = memory.peak_activation if in_activations or memory.peak_bytes is None else memory.peak_bytes
        needs.append(Need(name, float(peaks.max()), in_activations))
    return min(needs, key=attrgetter("memory"), default=None)


def published_elsewhere(entries: Iterable[PublishedEntry], problem: Problem) -> list[PublishedSchedule]:
    """Return the published schedules of other placements and slices than those of a problem."""
    return [_record_of(entry) for entry in entries if not is_of(entry.schedule, problem)]


def _record_of(entry: PublishedEntry) -> PublishedSchedule:
    slices = entry.schedule.slices
    placement = entry.problem.placement.name + (f", {slices} slices" if slices > 1 else "")
    return PublishedSchedule(schedule=entry.schedule.name, placement=placement, value=entry.value)


def looks_everywhere(problem: Problem) -> bool:
    """Return whether the shape is small enough to try published schedules of other placements."""
    return _size(problem) <= ORDERS_UP_TO


def published_everywhere(problem: Problem, settings: Settings) -> list[PublishedEntry]:
    """Return the published schedules of all placements that are within the settings' limits.

    They are those that a comparison lists for the same shape, costs and limit. Of shapes that are too large there are none.
    """
    return list(_entries(problem, settings)) if looks_everywhere(problem) else []


def published_under(problem: Problem, settings: Settings, *, in_bytes: bool) -> Callable[[float], list[PublishedEntry]]:
    """Return a function from a memory limit (infinite: none) to its :func:`published_everywhere`; settings have no limit.

    Fixed orders are reused; strategies that use costs generate another order under each limit.
    """
    free = published_everywhere(problem, settings)

    @cache
    def under(limit: float) -> list[PublishedEntry]:
        fitting = [entry for entry in free if within(entry.peak, limit)]
        if np.isfinite(limit) and _size(problem) <= EVERYTHING_UP_TO:
            limited = replace(settings, memory_limit=limit if in_bytes else f"{limit}act")
            fitting += _entries(problem, limited, made_from_costs=True)
        return fitting

    return under


def within(peak: float, limit: float) -> bool:
    """Return whether the peak of a rank is within a limit, which is infinite for none."""
    return peak <= limit * (1 + tolerances.MEMORY)


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
    value = value_as_is(schedule, there)
    if problem.choices.recompute and np.isinf(value):
        schedule, name = insert_recompute(schedule), f"{name}, all recomputed"
        value = value_as_is(schedule, there)
    if np.isinf(value):
        return None
    there = replace(there, slices=schedule.slices)
    if there.variation is not None:
        value = Judge(there)(schedule)
    return PublishedEntry(there, schedule.renamed(name), value)
