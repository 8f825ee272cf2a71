"""The best published schedules that a search has to beat: of its own placement, and of any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
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
    Found,
    Judge,
    Problem,
    Robustness,
    SlowRank,
    fixed_orders,
    peak_of,
    value_as_is,
)
from pipeplan.strategies import STRATEGIES, Strategy

ORDERS_UP_TO = 16_384
"""The same of the others."""


def published_here(found: Found) -> PublishedSchedule | None:
    """The best published schedule of the placement that was searched, of those tried; None where none fits."""
    best, problem = found.published, found.problem
    if best is None:
        return None
    value = best.value if found.published_robustness is None else _small(found.published_robustness, problem)
    return PublishedSchedule(best.name, problem.placement.name, value)


def _small(robustness: Robustness, problem: Problem) -> float:
    """The number that is to be small where something varies."""
    return robustness.worst if isinstance(problem.variation, SlowRank) else robustness.p95


def least_need(problem: Problem) -> Need | None:
    """The published order of the placement that needs the least memory; None for shapes that are too large, and for none."""
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


def published_elsewhere(problem: Problem, settings: Settings) -> list[tuple[PublishedSchedule, float]]:
    """The published schedules of other placements, and those that cut sequences, that are within the settings' limits.

    Each with what its worst rank holds, in the unit of a front. Of shapes that are too large none is looked at.
    """
    return list(_elsewhere(problem, settings)) if _size(problem) <= ORDERS_UP_TO else []


def published_under(
    problem: Problem, settings: Settings, limits: Iterable[float], *, in_bytes: bool
) -> Iterator[list[PublishedSchedule]]:
    """Under each limit, infinite for none, what :func:`published_elsewhere` gives; settings have none of their own.

    An order stays what it is; strategies that look at costs are asked again, as they make another one under each limit.
    """
    free = published_elsewhere(problem, settings)
    for limit in limits:
        found = [each for each, peak in free if within(peak, limit)]
        if np.isfinite(limit) and _size(problem) <= EVERYTHING_UP_TO:
            under = replace(settings, memory_limit=limit if in_bytes else f"{limit}act")
            found += [each for each, _ in _elsewhere(problem, under, made_from_costs=True)]
        yield found


def within(peak: float, limit: float) -> bool:
    """Whether what the worst rank holds is within a limit, infinite for none."""
    return peak <= limit * (1 + tolerances.MEMORY)


def _size(problem: Problem) -> int:
    return problem.placement.ranks * problem.microbatches


def _elsewhere(
    problem: Problem, settings: Settings, *, made_from_costs: bool = False
) -> Iterator[tuple[PublishedSchedule, float]]:
    """Of all strategies, or of those alone that make a schedule from its costs."""
    alike = replace(settings, ranks=problem.placement.ranks, stages=None)
    for strategy in STRATEGIES.values():
        too_large = strategy.looks_at_costs and _size(problem) > EVERYTHING_UP_TO
        if too_large or (made_from_costs and not strategy.looks_at_costs):
            continue
        try:
            found = _of(strategy, as_taken_by(strategy, alike), problem)
        except PipeplanError:
            continue  # It does not take this shape, these costs or this limit.
        if found is not None:
            yield found


def _of(strategy: Strategy, settings: Settings, problem: Problem) -> tuple[PublishedSchedule, float] | None:
    """What a strategy makes of the settings, and its peak, unless it is of the problem's own kind or does not fit."""
    placement = strategy.placed(shape_of(strategy, settings))
    if placement.rank_of == problem.placement.rank_of and strategy.slices == 1:
        return None
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
    if there.variation is not None:
        value = Judge(replace(there, slices=schedule.slices))(schedule)
    cut = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    return PublishedSchedule(name, placement.name + cut, value), peak_of(schedule, there)
