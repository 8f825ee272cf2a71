"""The trade-off between memory and time: the best schedule under each of a row of memory limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeplan.costs import Limits
from pipeplan.errors import InputError
from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import simulate
from pipeplan.solver.engines.published import published
from pipeplan.solver.portfolio import search
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress

MOST_POINTS = 1000
"""Limits of a front: each takes a search of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The best schedule found under one limit.

    Attributes
    ----------
    limit
        What every rank may hold: in bytes with everything static included, or in activations; infinite without a limit.
    peak
        What the worst rank does hold.
    result
        The schedule and its bound.
    """

    limit: float
    peak: float
    result: Found

    @property
    def value(self) -> float:
        """The objective."""
        return self.result.value


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
) -> Front:
    """The best schedules of a problem from the least feasible memory limit to none at all; its own limits are ignored.

    Memory is in bytes where the costs hold bytes, else in activations. Every limit starts from the schedule found under the
    one below, so that more memory never takes longer. A limit larger than what the search without one uses is not tried.
    Of schedules that dominate each other only the better stays.

    Parameters
    ----------
    points
        About how many limits to try, at least 2; the peaks of published schedules that no other beats are always among them.
    seconds, evaluations
        The budget of the whole front; each limit has an equal share. With neither, ten seconds a limit.
    seed, workers
        As in :func:`~pipeplan.solver.portfolio.search`.
    progress
        Called with the limit and how far its search is.

    Raises
    ------
    InputError
        For fewer than two points or more than ``MOST_POINTS``, and as ``search``.
    """
    if not 2 <= points <= MOST_POINTS:
        raise InputError(f"a front has at least two points and at most {MOST_POINTS:,}, not {points}", field="points")
    problem = replace(problem, limits=None)
    share = {
        "seconds": None if seconds is None else seconds / points,
        "evaluations": None if evaluations is None else evaluations // points,
    }

    def solve(limit: float, start: Sequence[Schedule]) -> Point:
        limited = _limited(problem, limit)
        report = None if progress is None else (lambda news: progress(limit, news))
        result = search(limited, seed=seed, workers=workers, start=start, progress=report, **share)  # type: ignore[arg-type]
        return Point(limit, _peak(result.schedule, problem), result)

    marks = _marks(problem)
    free = solve(np.inf, ())
    found: list[Point] = []
    best_marks = [mark.peak for mark in _undominated_marks(marks)]
    for limit in _levels(problem, free.peak, best_marks, points - 1):
        found.append(solve(limit, [found[-1].result.schedule] if found else ()))
    if found and found[-1].value < free.value:
        better = replace(found[-1].result, problem=problem, bound=free.result.bound)
        free = Point(np.inf, found[-1].peak, better)
    points_found = _with_bounds_of_larger_limits([*found, free])
    return Front(_undominated(points_found), tuple(marks), problem.costs.memory.in_bytes)


def _with_bounds_of_larger_limits(points: list[Point]) -> list[Point]:
    """The points, by limit, each with the best bound that was proven under its own limit or under a larger one."""
    known: list[Point] = []
    for point in reversed(points):
        if known and known[-1].result.bound.value > point.result.bound.value:
            point = replace(point, result=replace(point.result, bound=known[-1].result.bound))  # noqa: PLW2901
        known.append(point)
    return known[::-1]


def _limited(problem: Problem, limit: float) -> Problem:
    if np.isinf(limit):
        return problem
    limits = Limits(np.full(problem.placement.ranks, limit), not problem.costs.memory.in_bytes)
    return replace(problem, limits=limits)


def _peak(schedule: Schedule, problem: Problem) -> float:
    """What the worst rank holds."""
    memory = simulate(schedule, problem.costs).memory
    peaks = memory.peak_activation if memory.peak_bytes is None else memory.peak_bytes
    return float(peaks.max())


def _marks(problem: Problem) -> list[Mark]:
    """Published schedules of this placement, by memory, then by time."""
    marks = []
    for name, schedule in published(problem):
        timeline = simulate(schedule, problem.costs).timeline
        marks.append(Mark(name, _peak(schedule, problem), problem.value(timeline)))
    return sorted(marks, key=lambda mark: (mark.peak, mark.value))


def _levels(problem: Problem, most: float, peaks: list[float], count: int) -> list[float]:
    """Limits from the least feasible one to below ``most``, each by the same factor larger, and published schedules' peaks.

    Time falls about as memory grows, so equal factors show the trade-off evenly. Limits near a published peak make room
    for it.
    """
    least = float(_limited(problem, most).least_limit.max()) if np.isfinite(most) else 0.0
    if not 0 < least < most:
        return [least]
    sizes = _limited(problem, most).memory_limit.activation
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
