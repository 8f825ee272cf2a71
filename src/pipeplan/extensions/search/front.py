"""The trade-off between memory and time: the best schedule under each of several memory limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from pipeplan.costs import Limits
from pipeplan.extensions.search.budget import Effort
from pipeplan.extensions.search.engines.published import best_published, published
from pipeplan.extensions.search.placements import PlacementTried, PublishedEntry, Turn, best_placement, peak_of
from pipeplan.extensions.search.portfolio import ENGINES, engines_going_on, require_shape, search
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.result import SearchProgress, SearchResult, is_as_published
from pipeplan.foundation.errors import InfeasibleError, InputError
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import simulate

Report = Callable[[float, SearchProgress], None]
"""Callback that takes a limit and the progress of its search."""

PublishedAt = Callable[[float], Sequence[PublishedEntry]]
"""Callback that returns the published schedules under a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The best schedule found under one limit.

    Attributes
    ----------
    limit
        The most that any rank may hold: bytes, everything static included, or activations; infinite without a limit.
    peak
        The most that any rank of the schedule holds.
    result
        The schedule and its bound.
    tried
        Bound and best value of each placement under the limit, where several were searched.
    """

    limit: float
    peak: float
    result: SearchResult
    tried: tuple[PlacementTried, ...] = ()

    @property
    def value(self) -> float:
        """Objective of the schedule."""
        return self.result.value


class FrontMark(Record, frozen=True, kw_only=True):
    """Published schedule next to a front: its name, the peak of its worst rank, its objective."""

    schedule: str
    peak: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Pareto front of memory and time.

    Attributes
    ----------
    points
        Best schedules, from the least feasible limit to no limit; their times fall.
    marks
        Published schedules of the same placement, with their defaults, by memory.
    in_bytes
        True if memory is in bytes; otherwise it is in activations.
    """

    points: tuple[Point, ...]
    marks: tuple[FrontMark, ...]
    in_bytes: bool


def pareto(
    problems: Problem | Sequence[Problem],
    *,
    points: int = 8,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Report | None = None,
    start: Sequence[Schedule] = (),
    published_at: PublishedAt | None = None,
) -> Front:
    """Return the best schedules of a problem from the least feasible memory limit to its own, or to no limit.

    Of several problems, which differ in their placement alone, each point is the best of all: every limit is searched as
    :func:`~pipeplan.extensions.search.placements.best_placement` does.

    Memory is in bytes where the costs hold bytes, else in activations. Every limit starts from the schedule found under the
    one below, so that more memory never takes longer. A limit larger than the peak of the search without one is not tried.
    Of schedules that dominate each other only the better stays.

    Parameters
    ----------
    points
        About how many limits to try, at least 2; the peaks of undominated published schedules within the problem's own limit
        are always among them.
    seconds, evaluations
        The budget of the whole front; each limit has an equal share. With neither, ten seconds a limit.
    seed, workers
        As in :func:`~pipeplan.extensions.search.portfolio.search`.
    progress
        Called with the limit and the progress of its search, ``share`` being that of the whole front.
    start
        Schedules to start from, under every limit that they are within.
    published_at
        Returns the published schedules under a limit, infinite for none, that no point is to be worse than.

    Raises
    ------
    InputError
        For limits that differ between ranks or are in another unit than the front, and as ``search``.
    ShapeError
        For a start of another shape than the only problem.
    """
    requested = [problems] if isinstance(problems, Problem) else list(problems)
    most = _largest_limit(requested[0])
    unlimited = [replace(problem, limits=None) for problem in requested]
    if seconds is None and evaluations is None:
        seconds = 10.0 * points
    effort = Effort(
        seconds=None if seconds is None else seconds / points,
        evaluations=None if evaluations is None else evaluations // points,
        workers=workers,
    )
    if len(unlimited) == 1:
        for schedule in start:
            require_shape(schedule, unlimited[0])
    searches = _FrontSearch(unlimited, seed=seed, progress=progress, start=start, published_at=published_at)
    return searches.front(effort, np.inf if most is None else most, points)


class _FrontSearch:
    """The searches of a front: under every limit, the best of all placements."""

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        seed: int,
        progress: Report | None,
        start: Sequence[Schedule],
        published_at: PublishedAt | None,
    ) -> None:
        self._problems, self._start, self._published_at = problems, start, published_at
        self._seed = seed
        self._progress, self._expected, self._done, self._share = progress, 1, 0, 0.0

    def front(self, effort: Effort, most: float, points: int) -> Front:
        """Return the front up to a limit, infinite for none, on this effort per limit."""
        self._expected = points
        marks = sorted(
            (
                mark
                for problem in self._problems
                for mark in _marks(problem)
                if mark.peak <= most * (1 + tolerances.MEMORY)
            ),
            key=lambda mark: (mark.peak, mark.value),
        )
        free = self._point(most, effort, ())
        peaks = [mark.peak for mark in undominated_marks(marks)]
        tightest = min(self._problems, key=lambda problem: _least_limit(problem, np.finfo(np.float64).max))
        levels = _levels(tightest, free.peak, peaks, points - 1)
        self._expected = 1 + len(levels)
        below = self._one_after_another(levels, effort)
        kept = _with_bounds_of_larger_limits(_no_slower_with_more([*below, free]))
        shown = tuple(mark for mark in marks if is_as_published(mark.schedule))
        return Front(_undominated(kept), shown, tightest.costs.memory.in_bytes)

    def _one_after_another(self, limits: Sequence[float], effort: Effort) -> list[Point]:
        """Search each limit from the best schedule of the limits below."""
        points: list[Point] = []
        for limit in limits:
            best = min(reversed(points), key=attrgetter("value"), default=None)
            points.append(self._point(limit, effort, () if best is None else (best.result.schedule,)))
        return points

    def _point(self, limit: float, effort: Effort, start: tuple[Schedule, ...]) -> Point:
        """Return the best schedule of all placements under a limit."""
        several = len(self._problems) > 1
        within: list[Problem] = []
        for problem in self._problems:
            with suppress(InfeasibleError):
                within.append(limited(problem, limit))

        def report(news: SearchProgress) -> None:
            self._report(limit, news)

        def searcher(turn: Turn) -> SearchResult:
            return search(
                turn.problem,
                seconds=turn.effort.seconds,
                evaluations=turn.effort.evaluations,
                seed=self._seed,
                start=turn.start,
                workers=turn.effort.workers,
                progress=None if self._progress is None else report,
                engines=engines_going_on(self._seed) if turn.again else ENGINES,
            )

        entries = () if self._published_at is None else self._published_at(limit)
        best = best_placement(within, effort, searcher, published=entries, start=(*self._start, *start))
        self._done += 1
        return Point(
            limit, peak_of(best.result.schedule, best.result.problem), best.result, best.tried if several else ()
        )

    def _report(self, limit: float, news: SearchProgress) -> None:
        """Report the progress of the search under a limit, as a share of the whole front; the share never falls."""
        assert self._progress is not None
        self._share = max(self._share, min((self._done + news.share) / self._expected, 1.0))
        self._progress(limit, replace(news, share=self._share))


def limited(problem: Problem, limit: float) -> Problem:
    """Return the problem with one limit for all ranks, in bytes where its costs hold bytes; without one if infinite."""
    if np.isinf(limit):
        return problem
    limits = Limits(np.full(problem.placement.ranks, limit), not problem.costs.memory.in_bytes)
    return replace(problem, limits=limits)


def _least_limit(problem: Problem, limit: float) -> float:
    """Return the least feasible limit of a problem, in the unit of a front of it."""
    return float(limited(problem, limit).least_limit.max())


def _largest_limit(problem: Problem) -> float | None:
    """Return the limit of a problem, up to which a front goes; None without a limit.

    Raises InputError for limits that no front has: that differ between ranks, or are in another unit.
    """
    limits = problem.limits
    if limits is None:
        return None
    if limits.in_activations and problem.costs.memory.in_bytes:
        raise InputError(
            "memory limit in activations: these costs are in bytes, and so is their front; set a limit in bytes",
            field="memory_limit",
        )
    least, most = float(limits.values.min()), float(limits.values.max())
    if least != most:
        raise InputError(
            f"memory limits of {least:g} to {most:g}: a front has the same limit on every rank; set one limit",
            field="memory_limit",
        )
    return most if np.isfinite(most) else None


def _no_slower_with_more(points: list[Point]) -> list[Point]:
    """Return the points by limit; a slower point takes over the schedule of the one below, which fits its limit."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1].value < point.value:
            result = replace(kept[-1].result, **_of_limit(kept[-1], point))
            point = replace(point, peak=kept[-1].peak, result=result)  # noqa: PLW2901
        kept.append(point)
    return kept


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
    """Return the points by limit, each with the best bound proven under its own limit or a larger one."""
    kept: list[Point] = []
    for point in reversed(points):
        larger = next((other for other in reversed(kept) if _placed(other) == _placed(point)), None)
        if larger is not None and larger.result.bound.value > point.result.bound.value:
            point = replace(point, result=replace(point.result, bound=larger.result.bound))  # noqa: PLW2901
        kept.append(point)
    return kept[::-1]


def _marks(problem: Problem) -> list[FrontMark]:
    """Return the published schedules of a placement, in every variant, by memory, then by time."""
    marks = []
    for name, schedule in published(problem):
        value = problem.value(simulate(problem.sharded(schedule), problem.costs).timeline)
        marks.append(FrontMark(schedule=name, peak=peak_of(schedule, problem), value=value))
    return sorted(marks, key=lambda mark: (mark.peak, mark.value))


def _levels(problem: Problem, most: float, peaks: list[float], count: int) -> list[float]:
    """Return limits from the least feasible one to below ``most``, in geometric steps, and those of ``peaks``.

    Time falls about as memory grows, so equal factors show the trade-off evenly. Limits near one of ``peaks`` make room
    for it.
    """
    least = _least_limit(problem, most) if np.isfinite(most) else 0.0
    if not 0 < least < most:
        return [least]
    sizes = limited(problem, most).memory_limit.activation
    step = float(sizes[sizes > 0].min(initial=np.inf))
    levels = least + np.floor((np.geomspace(least, most, count + 1)[:-1] - least) / step + tolerances.ROUNDING) * step
    near = (most / least) ** (0.5 / max(count, 1))
    named = [peak for peak in peaks if least < peak < most * (1 - tolerances.MEMORY)]
    apart = [float(level) for level in levels if all(max(level / peak, peak / level) >= near for peak in named)]
    return sorted({level for level in (*apart, *named) if level < most * (1 - tolerances.MEMORY)} | {least})


def undominated_marks(marks: Sequence[FrontMark]) -> list[FrontMark]:
    """Return the schedules that are faster than all with less memory; ``marks`` are sorted by memory."""
    kept: list[FrontMark] = []
    for mark in marks:
        if not kept or mark.value < kept[-1].value:
            kept.append(mark)
    return kept


def _undominated(points: list[Point]) -> tuple[Point, ...]:
    """Return the Pareto-optimal points: each is faster than every point with less memory."""
    kept: list[Point] = []
    for point in points:
        if not kept or point.value < kept[-1].value * (1 - tolerances.LAST_DIGITS):
            kept.append(point)
    return tuple(kept)
