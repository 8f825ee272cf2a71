"""Searches of one problem under several memory limits: one after the other, or all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np

from pipeplan.costs import Limits
from pipeplan.model import Schedule
from pipeplan.simulation import simulate
from pipeplan.solver.independent import Effort, InterruptedSearch, SearchBackend, SearchTask, answers
from pipeplan.solver.placements import PlacementTried
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress


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
    tried
        What is known of each placement under the limit.
    """

    limit: float
    peak: float
    result: Found
    tried: tuple[PlacementTried, ...] = ()

    @property
    def value(self) -> float:
        """The objective."""
        return self.result.value


class LimitSearches:
    """Searches of one problem under several limits."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        spread: SearchBackend,
        asked: Mapping[str, object],
        progress: Callable[[float, SearchProgress], None] | None,
        *,
        start: Sequence[Schedule] = (),
    ) -> None:
        self._problem = problem
        self._start = start
        self._seed = seed
        self._spread = spread
        self._asked = asked
        self._progress = progress
        self._ended = 0
        self.expected = 1
        """How many searches there will be, for the share of the whole that is told."""

    def one_after_another(self, limits: Sequence[float], effort: Effort) -> list[Point]:
        """Each limit, from the schedule found under the one below."""
        found: list[Point] = []
        for limit in limits:
            below = [point.result.schedule for point in found[-1:]]
            found.append(self.find([limit], effort, {limit: below})[limit])
        return found

    def at_once(self, limits: Sequence[float], effort: Effort) -> list[Point]:
        """All limits on half of the effort, and then again from what was found under each and under those below."""
        first = self.find(limits, effort.part(2), name=", apart")
        points = [first[limit] for limit in limits]
        starts = {
            limit: [
                point.result.schedule for point in (points[number], min(points[: number + 1], key=attrgetter("value")))
            ]
            for number, limit in enumerate(limits)
        }
        second = self.find(limits, effort.part(2), starts, name=", again")
        return [_together(first[limit], second[limit]) for limit in limits]

    def find(
        self,
        limits: Sequence[float],
        effort: Effort,
        starts: Mapping[float, Sequence[Schedule]] | None = None,
        name: str = "",
        *,
        goes_on: bool = False,
    ) -> dict[float, Point]:
        """What is found under each of some limits, which need nothing of each other."""
        questions = {
            SearchTask(
                f"limit {limit!r}, seed {self._seed}{name}",
                limited(self._problem, limit),
                self._seed,
                (*self._start, *(starts or {}).get(limit, ())),
                goes_on,
            ): limit
            for limit in limits
        }
        report = None if self._progress is None else partial(self._report, limits[0])
        found: dict[float, Point] = {}
        try:
            for question, result in answers(list(questions), effort, self._spread, self._asked, report):
                limit = questions[question]
                found[limit] = Point(limit, peak_of(result.schedule, self._problem), result)
                self._ended += 1
                if self._spread.dask is not None:
                    self._report(limit, _ended(result))
        except InterruptedSearch as stop:
            # As without a store, what a search had found when the user ended it is the point, and the next limit follows.
            found[limits[0]] = Point(limits[0], peak_of(stop.found.schedule, self._problem), stop.found)
            self._ended += 1
        return found

    def _report(self, limit: float, news: SearchProgress) -> None:
        """Tell how far the search under a limit is, as a share of all searches."""
        if self._progress is not None:
            share = (self._ended + news.share) / max(self.expected, self._ended + 1)
            self._progress(limit, replace(news, share=min(share, 1.0)))


def _ended(result: Found) -> SearchProgress:
    return SearchProgress(
        value=result.value,
        bound=result.bound.value,
        found_by=result.found_by,
        evaluations=result.evaluations,
        seconds=result.seconds,
        share=0.0,
        best=lambda: result.schedule,
        published=result.published,
    )


def _together(first: Point, second: Point) -> Point:
    """The later search of a limit, which began with what the first one found, with what both have proven and spent."""
    bound = max(first.result.bound, second.result.bound, key=attrgetter("value"))
    spent = {name: getattr(first.result, name) + getattr(second.result, name) for name in ("evaluations", "seconds")}
    return replace(second, result=replace(second.result, bound=bound, **spent))


def limited(problem: Problem, limit: float) -> Problem:
    """A problem with one limit for all ranks, in bytes where its costs hold bytes; infinite: with none."""
    if np.isinf(limit):
        return problem
    limits = Limits(np.full(problem.placement.ranks, limit), not problem.costs.memory.in_bytes)
    return replace(problem, limits=limits)


def peak_of(schedule: Schedule, problem: Problem) -> float:
    """What the worst rank of a schedule holds."""
    memory = simulate(schedule, problem.costs).memory
    peaks = memory.peak_activation if memory.peak_bytes is None else memory.peak_bytes
    return float(peaks.max())
