"""The trade-off between memory and time: the best schedule under each of a row of memory limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeplan.costs import SEARCH_SETTINGS, require_settings
from pipeplan.model import tolerances
from pipeplan.simulation import simulate
from pipeplan.solver.engines.published import published
from pipeplan.solver.independent import Effort, Spread, plain
from pipeplan.solver.limit_searches import LimitSearches, Point, limited, peak_of
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import SearchProgress

"""Limits of a front: each takes a search of its own."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A published schedule beside the front: its name, the peak of its worst rank, its objective."""

    name: str
    peak: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Memory against time.

    Attributes
    ----------
    points
        From the least feasible limit to none; times fall.
    marks
        Published schedules of the same placement, by memory.
    in_bytes
        Whether memory is in bytes; else in activations.
    """

    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    in_bytes: bool


def pareto(
    problem: Problem,
    *,
    points: int = 8,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[float, SearchProgress], None] | None = None,
    dask: str | None = None,
    store: Path | None = None,
) -> Front:
    """The best schedules of a problem from the least feasible memory limit to none at all.

    The problem's own limit is among those tried, if it is the same for all ranks and in the front's unit of memory.

    Memory is in bytes where the costs hold bytes, else in activations. Every limit starts from the schedule found under the
    one below, so that more memory never takes longer. A limit larger than what the search without one uses is not tried.
    Of schedules that dominate each other only the better stays.

    On a cluster all limits are searched at once, with half of the budget; then again, from the best found under each limit
    and those below.

    Parameters
    ----------
    points
        About how many limits to try, at least 2; the peaks of published schedules that no other beats, and the problem's own
        limit, are always among them.
    seconds, evaluations
        The budget of the whole front; each limit has an equal share. With neither, ten seconds a limit.
    seed, workers
        As in :func:`~pipeplan.solver.portfolio.search`.
    progress
        Called with the limit and how far its search is, ``share`` being that of the whole front; on a cluster, whenever one
        has ended.
    dask
        The address of a Dask scheduler, whose workers search.
    store
        File that keeps each point; the same front asked again goes on from there.

    Raises
    ------
    InputError
        For numbers that cannot be (see ``costs.SEARCH_SETTINGS``), a store or scheduler that cannot be used, and as
        ``search``.
    """
    require_settings(SEARCH_SETTINGS, points=points, seed=seed, workers=workers)
    own = _own_limit(problem)
    problem = replace(problem, limits=None)
    if seconds is None and evaluations is None:
        seconds = 10.0 * points
    effort = Effort(
        seconds=None if seconds is None else seconds / points,
        evaluations=None if evaluations is None else evaluations // points,
        workers=1 if dask else workers,
    )
    asked = {
        "command": "search --pareto",
        "problem": plain(problem),
        "limit": own,
        "seconds": effort.seconds,
        "evaluations": effort.evaluations,
    }
    limits = LimitSearches(problem, seed, Spread(dask=dask, store=store), asked, progress)
    marks = _marks(problem)
    limits.expected = points
    free = limits.find([np.inf], effort)[np.inf]
    best_marks = [mark.peak for mark in _undominated_marks(marks)]
    levels = _levels(problem, free.peak, [*best_marks, *([] if own is None else [own])], points - 1)
    limits.expected = 1 + len(levels) * (1 if dask is None else 2)
    found = limits.one_after_another(levels, effort) if dask is None else limits.at_once(levels, effort)
    points_found = _with_bounds_of_larger_limits(_no_slower_with_more([*found, free]))
    return Front(_undominated(points_found), tuple(marks), problem.costs.memory.in_bytes)


def _own_limit(problem: Problem) -> float | None:
    """The limit of a problem's ranks, if it is one for all and in the unit that a front of it is in."""
    limits = problem.limits
    if limits is None or limits.in_activations is problem.costs.memory.in_bytes:
        return None
    least, most = float(limits.values.min()), float(limits.values.max())
    return most if least == most and np.isfinite(most) else None


def _no_slower_with_more(points: list[Point]) -> list[Point]:
    """The points, by limit; one that is slower than the one below takes over its schedule, which is within its limit."""
    known: list[Point] = []
    for point in points:
        if known and known[-1].value < point.value:
            own = {name: getattr(point.result, name) for name in ("problem", "bound", "published", "every_published")}
            result = replace(known[-1].result, **own)
            point = replace(point, peak=known[-1].peak, result=result)  # noqa: PLW2901
        known.append(point)
    return known


def _with_bounds_of_larger_limits(points: list[Point]) -> list[Point]:
    """The points, by limit, each with the best bound that was proven under its own limit or under a larger one."""
    known: list[Point] = []
    for point in reversed(points):
        if known and known[-1].result.bound.value > point.result.bound.value:
            point = replace(point, result=replace(point.result, bound=known[-1].result.bound))  # noqa: PLW2901
        known.append(point)
    return known[::-1]


def _marks(problem: Problem) -> list[Mark]:
    """Published schedules of this placement, by memory, then by time."""
    marks = []
    for name, schedule in published(problem):
        timeline = simulate(schedule, problem.costs).timeline
        marks.append(Mark(name, peak_of(schedule, problem), problem.value(timeline)))
    return sorted(marks, key=lambda mark: (mark.peak, mark.value))


def _levels(problem: Problem, most: float, peaks: list[float], count: int) -> list[float]:
    """Limits from the least feasible one to below ``most``, each by the same factor larger, and those given in ``peaks``.

    Time falls about as memory grows, so equal factors show the trade-off evenly. Limits near one of ``peaks`` make room
    for it.
    """
    least = float(limited(problem, most).least_limit.max()) if np.isfinite(most) else 0.0
    if not 0 < least < most:
        return [least]
    sizes = limited(problem, most).memory_limit.activation
    step = float(sizes[sizes > 0].min(initial=np.inf))
    levels = least + np.floor((np.geomspace(least, most, count + 1)[:-1] - least) / step + tolerances.ROUNDING) * step
    near = (most / least) ** (0.5 / max(count, 1))
    named = [peak for peak in peaks if least < peak < most * (1 - tolerances.MEMORY)]
    apart = [float(level) for level in levels if all(max(level / peak, peak / level) >= near for peak in named)]
    return sorted({level for level in (*apart, *named) if level < most * (1 - tolerances.MEMORY)} | {least})


def _undominated_marks(marks: list[Mark]) -> list[Mark]:
    """The published schedules that are faster than every one of less memory; ``marks`` are sorted by memory."""
    kept: list[Mark] = []
    for mark in marks:
        if not kept or mark.value < kept[-1].value:
            kept.append(mark)
    return kept


def _undominated(points: list[Point]) -> tuple[Point, ...]:
    """The points that are faster than every point of less memory."""
    kept: list[Point] = []
    for point in points:
        if not kept or point.value < kept[-1].value * (1 - tolerances.LAST_DIGITS):
            kept.append(point)
    return tuple(kept)
