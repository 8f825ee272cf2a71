"""The trade-off between memory and time: the best schedule under each of a row of memory limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeplan.errors import InfeasibleError
from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import simulate
from pipeplan.solver.engines.published import best_published, published
from pipeplan.solver.independent import Effort, SearchBackend, plain
from pipeplan.solver.limit_searches import LimitSearches, Point, limited, peak_of
from pipeplan.solver.placements import Entry, Turn, best_placement
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress

Report = Callable[[float, SearchProgress], None]
"""Takes a limit and how far its search is."""

PublishedAt = Callable[[float], Sequence[Entry]]
"""Gives the published schedules under a limit."""


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
    problems: Problem | Sequence[Problem],
    *,
    points: int = 8,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[float, SearchProgress], None] | None = None,
    dask: str | None = None,
    store: Path | None = None,
    start: Sequence[Schedule] = (),
    published_at: PublishedAt | None = None,
) -> Front:
    """The best schedules of a problem from the least feasible memory limit to none at all.

    Of several problems, which differ in their placement alone, each point is the best of all: every limit is searched as
    :func:`~pipeplan.solver.placements.best_placement` does.

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
    start
        Schedules to go on from, under every limit that they are within.
    published_at
        Gives the published schedules under a limit, infinite for none, that no point is to be worse than.

    Raises
    ------
    InputError
        For a store or scheduler that cannot be used, and as
        ``search``.
    """
    given = [problems] if isinstance(problems, Problem) else list(problems)
    own = next((limit for problem in given if (limit := _own_limit(problem)) is not None), None)
    free_problems = [replace(problem, limits=None) for problem in given]
    problem = free_problems[0]
    if seconds is None and evaluations is None:
        seconds = 10.0 * points
    effort = Effort(
        seconds=None if seconds is None else seconds / points,
        evaluations=None if evaluations is None else evaluations // points,
        workers=1 if dask else workers,
    )
    asked = {
        "command": "search --pareto",
        "problem": plain(problem) if len(given) == 1 else [plain(each) for each in free_problems],
        "limit": own,
        "seconds": effort.seconds,
        "evaluations": effort.evaluations,
    }
    if start:
        asked["start"] = plain(start)
    if len(given) > 1 or published_at is not None:
        spread = SearchBackend(store=store)
        several = _Placements(
            free_problems,
            lambda problem, report: LimitSearches(problem, seed, spread, asked, report),
            progress,
            start,
            published_at,
        )
        return several.front(effort, own, points)
    limits = LimitSearches(problem, seed, SearchBackend(dask=dask, store=store), asked, progress, start=start)
    marks = _marks(problem)
    limits.expected = points
    free = limits.find([np.inf], effort)[np.inf]
    best_marks = [mark.peak for mark in _undominated_marks(marks)]
    levels = _levels(problem, free.peak, [*best_marks, *([] if own is None else [own])], points - 1)
    limits.expected = 1 + len(levels) * (1 if dask is None else 2)
    found = limits.one_after_another(levels, effort) if dask is None else limits.at_once(levels, effort)
    points_found = _with_bounds_of_larger_limits(_no_slower_with_more([*found, free]))
    return Front(_undominated(points_found), tuple(marks), problem.costs.memory.in_bytes)


class _Placements:
    """A front over several placements: under every limit, the best of all."""

    def __init__(
        self,
        problems: Sequence[Problem],
        searches_of: Callable[[Problem, Report | None], LimitSearches],
        progress: Report | None,
        start: Sequence[Schedule],
        published_at: PublishedAt | None,
    ) -> None:
        self._problems, self._start = problems, start
        self._progress, self._expected, self._done, self._share = progress, 1, 0, 0.0
        self._published_at = published_at
        report = None if progress is None else self._report
        self._searches = [searches_of(problem, report) for problem in problems]

    def front(self, effort: Effort, own: float | None, points: int) -> Front:
        """Return the front of these problems, with their own limit among those tried, on this effort a limit."""
        self._expected = points
        marks = sorted(
            (mark for each in self._problems for mark in _marks(each)), key=lambda mark: (mark.peak, mark.value)
        )
        free = self._point(np.inf, effort, ())
        peaks = [mark.peak for mark in _undominated_marks(marks)]
        tightest = min(
            self._problems, key=lambda each: float(limited(each, np.finfo(np.float64).max).least_limit.max())
        )
        levels = _levels(tightest, free.peak, [*peaks, *([] if own is None else [own])], points - 1)
        self._expected = 1 + len(levels)
        found: list[Point] = []
        for limit in levels:
            below = min(found, key=lambda point: point.value, default=None)
            found.append(self._point(limit, effort, () if below is None else (below.result.schedule,)))
        known = _with_bounds_of_larger_limits(_no_slower_with_more([*found, free]))
        return Front(_undominated(known), tuple(marks), tightest.costs.memory.in_bytes)

    def _point(self, limit: float, effort: Effort, start: tuple[Schedule, ...]) -> Point:
        """Return the best schedule under a limit."""
        searches: dict[Problem, LimitSearches] = {}
        for problem, search in zip(self._problems, self._searches, strict=True):
            with suppress(InfeasibleError):
                searches[limited(problem, limit)] = search

        def searcher(turn: Turn) -> Found:
            placement = turn.problem.placement
            name = f", {placement.name} of {placement.chunks}{', again' if turn.again else ''}"
            found = searches[turn.problem].find([limit], turn.effort, {limit: turn.start}, name, goes_on=turn.again)
            return found[limit].result

        entries = () if self._published_at is None else self._published_at(limit)
        best = best_placement(list(searches), effort, searcher, published=entries, start=(*self._start, *start))
        self._done += 1
        return Point(limit, peak_of(best.found.schedule, best.found.problem), best.found, best.tried)

    def _report(self, limit: float, news: SearchProgress) -> None:
        """Tell how far the search under a limit is, as a share of the whole front; it never goes back."""
        assert self._progress is not None
        self._share = max(self._share, min((self._done + news.share) / self._expected, 1.0))
        self._progress(limit, replace(news, share=self._share))


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
            result = replace(known[-1].result, **_of_limit(known[-1], point))
            point = replace(point, peak=known[-1].peak, result=result)  # noqa: PLW2901
        known.append(point)
    return known


def _of_limit(below: Point, point: Point) -> dict[str, Any]:
    """Return what an answer of a smaller limit says under the limit of a point: problem, bound, published rival."""
    if _placed(below) == _placed(point):
        return {name: getattr(point.result, name) for name in ("problem", "bound", "published", "every_published")}
    problem = limited(replace(below.result.problem, limits=None), point.limit)
    return {"problem": problem, "bound": problem.bound, "published": best_published(problem), "every_published": True}


def _placed(point: Point) -> tuple[object, int]:
    """Return which placement and slices a point is of: bounds hold for one of them."""
    problem = point.result.problem
    return problem.placement.rank_of, problem.slices


def _with_bounds_of_larger_limits(points: list[Point]) -> list[Point]:
    """The points, by limit, each with the best bound that was proven under its own limit or under a larger one."""
    known: list[Point] = []
    for point in reversed(points):
        larger = next((each for each in reversed(known) if _placed(each) == _placed(point)), None)
        if larger is not None and larger.result.bound.value > point.result.bound.value:
            point = replace(point, result=replace(point.result, bound=larger.result.bound))  # noqa: PLW2901
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
