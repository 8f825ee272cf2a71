"""Published schedules as starts: those of every strategy for the problem's placement that fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Limits
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.result import ALL_RECOMPUTED, Published, is_as_published
from pipeplan.extensions.search.run import Run, value_as_is
from pipeplan.foundation.errors import CostError, InfeasibleError, ShapeError
from pipeplan.model import Schedule
from pipeplan.passes import insert_recompute
from pipeplan.strategies import STRATEGIES, Shape, Strategy

EVERY_GROUP_UP_TO = 200
"""Number of forwards up to which interleaved schedules are tried with every group size: they take milliseconds."""

EVERYTHING_UP_TO = 2048
"""Ranks times microbatches up to which strategies that depend on costs take at most a second."""

LARGE = 50_000
"""Number of forwards and backwards from which on generating a schedule takes noticeable time."""

SECONDS_AN_OP = 2e-5
"""Approximate seconds per forward and backward of a strategy that depends on costs."""

ACTIVATIONS_A_RANK = (1.0, 1.5, 2.0)
"""Further limits for strategies that depend on costs, in activations, divided by the number of ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedOrders:
    """Offers the schedule of each strategy that fits as a lineage; as this takes next to no time, on any budget.

    Large schedules take tenths of a second each, and the largest seconds: once one fits, none is begun that would probably
    not end in time, judging by the one before.
    """

    def __call__(self, run: Run) -> None:
        """Offer all schedules."""
        takes_time, begin = run.encoder.positions >= LARGE, run.budget.seconds
        for name, schedule in fixed_orders(run.problem):
            if run.needs_no_start or run.budget.stopped.is_set():
                return
            run.offer_published(schedule, name)
            # Of large schedules none is begun that is not likely to be done in time.
            took, begin = run.budget.seconds - begin, run.budget.seconds
            if takes_time and run.best is not None and took >= run.budget.seconds_left:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenByCosts:
    """Offers the schedules of strategies that depend on costs as lineages, while there is time.

    Attributes
    ----------
    until
        The share of the seconds at which they must be done: none is begun that is not likely to be.
    """

    until: float = 0.35

    def __call__(self, run: Run) -> None:
        """Offer the schedules."""
        takes = SECONDS_AN_OP * run.encoder.positions
        for heuristic, suffix, limits in _heuristics(run.original, ACTIVATIONS_A_RANK):
            begin = run.budget.seconds
            if run.needs_no_start or run.budget.out_of_time or takes > run.budget.seconds_until(self.until):
                return
            if (schedule := _driven(heuristic, run.original, limits)) is not None:
                name = heuristic.name + suffix
                run.offer_published(schedule, name)
                takes = max(takes, run.budget.seconds - begin)
        run.every_published = True


def try_untried(run: Run) -> None:
    """Offer the published schedules that a search has not tried before it ended, where that takes no time."""
    problem = run.original
    if problem.placement.ranks * problem.microbatches > EVERYTHING_UP_TO:
        return
    for name, schedule in fixed_orders(problem):
        if name not in run.tried:
            run.offer_published(schedule, name)
    for heuristic, suffix, limits in _heuristics(problem, ACTIVATIONS_A_RANK):
        name = heuristic.name + suffix
        if name not in run.tried and (driven := _driven(heuristic, problem, limits)) is not None:
            run.offer_published(driven, name)
    run.every_published = True


def best_published(problem: Problem) -> Published | None:
    """Return the best published schedule of this placement, with its defaults, within the limits; None if none fits."""
    best: Published | None = None
    for name, schedule in published(problem):
        if not is_as_published(name):
            continue
        candidate = Published(name, value_as_is(schedule, problem))
        if np.isfinite(candidate.value) and candidate.beats(best, problem.placement.chunks):
            best = candidate
    return best


def published(problem: Problem) -> Iterator[tuple[str, Schedule]]:
    """Yield every published schedule of this placement and number of microbatches by name, whatever memory it needs."""
    yield from fixed_orders(problem)
    yield from driven_by_costs(problem)


def fixed_orders(problem: Problem, *, every_group_up_to: int = EVERY_GROUP_UP_TO) -> Iterator[tuple[str, Schedule]]:
    """Yield the strategies' schedules of this placement, number of microbatches and of slices, by name.

    Where the search may recompute, each also with everything recomputed.
    """
    for strategy in STRATEGIES.values():
        if not strategy.looks_at_costs:
            for name, schedule in _of_strategy(strategy, problem, every_group_up_to):
                yield name, schedule
                if problem.choices.recompute:
                    yield f"{name}{ALL_RECOMPUTED}", insert_recompute(schedule)


def driven_by_costs(
    problem: Problem, *, activations_a_rank: tuple[float, ...] = ACTIVATIONS_A_RANK
) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedules of strategies that depend on costs, by name, under the problem's limits and under others."""
    for heuristic, suffix, limits in _heuristics(problem, activations_a_rank):
        if (schedule := _driven(heuristic, problem, limits)) is not None:
            yield heuristic.name + suffix, schedule


def _heuristics(
    problem: Problem, activations_a_rank: tuple[float, ...]
) -> Iterator[tuple[Strategy, str, Limits | None]]:
    """Yield each strategy that depends on costs with each limit to try, and the suffix of its name under that limit."""
    for heuristic in STRATEGIES.values():
        shape = Shape(problem.placement.ranks, problem.microbatches, heuristic.chunks)
        driven = heuristic.looks_at_costs and problem.slices == 1
        if driven and heuristic.placed(shape).rank_of == problem.placement.rank_of:
            for suffix, limits in _limits(problem, activations_a_rank):
                yield heuristic, suffix, limits


def _driven(heuristic: Strategy, problem: Problem, limits: Limits | None) -> Schedule | None:
    """Return the schedule that a strategy makes of the costs under a limit, or None if it cannot."""
    try:
        return heuristic(Shape(problem.placement.ranks, problem.microbatches, heuristic.chunks), problem.costs, limits)
    except (InfeasibleError, CostError):
        return None


def _of_strategy(strategy: Strategy, problem: Problem, every_group_up_to: int) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedules that a strategy makes of the shape, for each variant and several group sizes."""
    if (strategy.slices > 1) != (problem.slices > 1) or (strategy.recomputes and not problem.choices.recompute):
        return
    for variant in strategy.variants or (None,):
        for group in (None, *(_groups(problem, every_group_up_to) if strategy.grouped else ())):
            try:
                shape = strategy.shape(
                    problem.placement.ranks,
                    problem.microbatches,
                    problem.placement.chunks,
                    group_size=group,
                    variant=variant,
                    slices=problem.slices if problem.slices > 1 else None,
                )
                schedule = strategy(shape)
            except ShapeError:
                continue
            if schedule.placement.rank_of == problem.placement.rank_of and schedule.slices == problem.slices:
                details = [variant] if variant else []
                details += [f"groups of {group}"] if group else []
                yield " ".join([strategy.name, *([f"({', '.join(details)})"] if details else [])]), schedule


def _groups(problem: Problem, every_group_up_to: int) -> Iterator[int]:
    """Yield group sizes to try: half the ranks and the ranks, and on small problems every size."""
    ranks, microbatches = problem.placement.ranks, problem.microbatches
    small = microbatches * problem.placement.stages <= every_group_up_to
    yield from range(1, microbatches + 1) if small else [ranks // 2, ranks] if ranks >= 4 else [ranks]


def _limits(problem: Problem, activations_a_rank: tuple[float, ...]) -> Iterator[tuple[str, Limits | None]]:
    """Yield limits to try: the problem's own, and others whose schedules may fit and be better."""
    yield "", problem.limits
    ranks, own = problem.placement.ranks, problem.limits
    if own is not None:
        yield " without a limit", None
    # Whole numbers of activations: heuristics that count activations waste the rest of a limit.
    most = float(own.values.max()) if own is not None and own.in_activations else np.inf
    levels = {share * ranks for share in activations_a_rank if share * ranks < most}
    if np.isfinite(most) and own is not None and bool((own.values < np.ceil(most)).any()):
        levels.add(float(np.ceil(most)))
    for level in sorted(levels):
        yield f" at {level:g} activations", Limits(np.full(ranks, level), in_activations=True)
