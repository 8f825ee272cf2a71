"""The search over placements: each is bounded, and the budget goes to those that can win.

Of every placement a bound is known before anything is searched. The search opens with those whose bound is below the best
schedule so far, the published ones included, on a share of the budget; what is left goes to the best of them. A placement
whose bound is not below the best schedule cannot win and is left out, whenever that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from pipeplan.costs import Layout
from pipeplan.extensions.search.budget import Effort
from pipeplan.extensions.search.portfolio import ENGINES, engines_going_on, search
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.result import SearchProgress, SearchResult
from pipeplan.extensions.search.run import Engine
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Placement, Schedule, tolerances
from pipeplan.simulation import memory_use

OPENING = 0.4
"""Share of the budget that the first searches have together, one for each placement that can win."""


@dataclass(frozen=True, slots=True)
class PlacementTried:
    """Result for one placement: the best proven bound, and the best value; None if it cannot win.

    ``layout``: the number of layers of each stage of the best schedule, where layouts were searched.
    """

    placement: Placement
    bound: float
    value: float | None
    layout: Layout | None = None


@dataclass(frozen=True, eq=False)
class PublishedEntry:
    """An unchanged published schedule, with the problem that it answers and its value."""

    problem: Problem
    schedule: Schedule
    value: float

    @cached_property
    def peak(self) -> float:
        """Peak memory of the fullest rank."""
        return peak_of(self.schedule, self.problem)


def peak_of(schedule: Schedule, problem: Problem) -> float:
    """Return the peak memory of the fullest rank of a schedule: in bytes where the costs hold bytes, else in activations."""
    memory = memory_use(problem.sharded(schedule), problem.costs)
    peaks = memory.peak_activation if memory.peak_bytes is None else memory.peak_bytes
    return float(peaks.max())


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One search of a placement, with its starts and budget.

    ``again``: true if it continues an earlier search of the same placement; ``engines``: other engines than the usual ones,
    for a caller that compares with published schedules itself.
    """

    problem: Problem
    start: tuple[Schedule, ...]
    effort: Effort
    again: bool
    engines: Sequence[Engine] | None = None


Searcher = Callable[[Turn], SearchResult]


@dataclass(frozen=True, slots=True, eq=False)
class BestPlacement:
    """The best schedule of all placements, and the result for each.

    ``layout``: the number of layers of each stage, where layouts were searched; ``published``: the best published order of
    each placement on any layout.
    """

    result: SearchResult
    tried: tuple[PlacementTried, ...]
    layout: Layout | None = None
    published: tuple[PublishedEntry, ...] = ()


def best_placement(
    problems: Sequence[Problem],
    effort: Effort,
    searcher: Searcher,
    *,
    published: Sequence[PublishedEntry] = (),
    start: Sequence[Schedule] = (),
) -> BestPlacement:
    """Search the placements of several problems that differ in nothing else.

    Parameters
    ----------
    problems
        At least one; each of another placement.
    effort
        The budget of all together.
    searcher
        Carries out one search; raises InfeasibleError if the user ends it before it has found anything.
    published
        Schedules that the answer is never worse than: unchanged candidates.
    start
        Schedules to go on from, each by the search of its placement.

    Returns
    -------
    BestPlacement
        Its evaluations and seconds are those of all searches.
    """
    starts = {problem: tuple(schedule for schedule in start if is_of(schedule, problem)) for problem in problems}
    bounds = {problem: problem.bound.value for problem in problems}
    results: dict[Problem, SearchResult] = {}
    limit = min((entry.value for entry in published), default=float("inf"))
    order = sorted(problems, key=lambda problem: bounds[problem])
    stopped = False
    for number, problem in enumerate(order):
        if results and not starts[problem] and not _can_win(bounds[problem], _least(results, limit)):
            continue
        left = _left(effort, results)
        share = OPENING / len(order[number:]) if len(order) > 1 else 1.0
        try:
            results[problem] = searcher(Turn(problem, starts[problem], _share(left, share), again=False))
        except InfeasibleError:
            if not results:
                raise
            stopped = True
        if stopped or results[problem].interrupted:
            stopped = True
            break
    if len(order) > 1 and not stopped:
        _go_on(results, effort, searcher, limit)
    best = min(results.values(), key=attrgetter("value"))
    entry = min(published, key=attrgetter("value"), default=None)
    if entry is not None and entry.value < best.value * (1 - tolerances.ROUNDING):
        best = min(best, as_it_stands(entry), key=attrgetter("value"))
    bounds |= {problem: result.bound.value for problem, result in results.items()}
    tried = tuple(
        PlacementTried(problem.placement, bounds[problem], results[problem].value if problem in results else None)
        for problem in problems
    )
    every = results.values()
    whole = replace(
        best,
        evaluations=sum(result.evaluations for result in every),
        seconds=sum(result.seconds for result in every),
        interrupted=stopped or any(result.interrupted for result in every),
    )
    return BestPlacement(whole, tried)


def _go_on(results: dict[Problem, SearchResult], effort: Effort, searcher: Searcher, limit: float) -> None:
    """Spend the rest of the budget: a fifth of it on the second best that can win, the rest on the best."""
    ranked = sorted(results, key=lambda problem: results[problem].value)
    best, *others = ranked
    for problem in [*others[:1], best]:
        before, left = results[problem], _left(effort, results)
        least = _least({other: result for other, result in results.items() if other is not problem}, limit)
        if before.optimal or not _can_win(before.bound.value, least) or _is_nothing(left):
            continue
        share = 1.0 if problem is best else 0.5 * OPENING
        origin = before.schedule.renamed(before.found_by.rsplit(" from ", 1)[-1])
        after = searcher(Turn(problem, (origin,), _share(left, share), again=True))
        results[problem] = together(before, after)
        if after.interrupted:
            return


def together(before: SearchResult, after: SearchResult) -> SearchResult:
    """Return the better of two searches of one problem, the second of which continued from the first."""
    both = (before, after)
    compared = [result for result in both if result.published is not None]
    rival = min(compared, key=lambda result: result.published.value if result.published else 0.0, default=before)
    return replace(
        min(both, key=attrgetter("value")),
        published=rival.published,
        every_published=any(result.every_published for result in both),
        bound=max((result.bound for result in both), key=attrgetter("value")),
        evaluations=before.evaluations + after.evaluations,
        seconds=before.seconds + after.seconds,
        history=(*before.history, *after.history),
        interrupted=after.interrupted,
    )


def as_it_stands(entry: PublishedEntry) -> SearchResult:
    """Return a published schedule as the answer of its problem; of no further search."""
    return search(entry.problem, evaluations=0, start=entry.schedule, engines=())


def searched_here(
    *, seed: int, workers: int, effort: Effort, progress: Callable[[SearchProgress], None] | None
) -> Searcher:
    """Return what carries out searches in this process, and tells how far the whole is."""
    report = _PlacementsReport(effort, progress)

    def searcher(turn: Turn) -> SearchResult:
        result = search(
            turn.problem,
            seconds=turn.effort.seconds,
            evaluations=turn.effort.evaluations,
            seed=seed,
            start=turn.start,
            workers=workers,
            progress=None if progress is None else report,
            engines=turn.engines or (engines_going_on(0) if turn.again else ENGINES),
            compared=turn.again or turn.engines is not None,
        )
        report.take(result)
        return result

    return searcher


class _PlacementsReport:
    """Reports the progress of a search over several placements, of which one is under way."""

    def __init__(self, effort: Effort, progress: Callable[[SearchProgress], None] | None) -> None:
        self._effort, self._progress = effort, progress
        self._evaluations, self._seconds, self._share = 0, 0.0, 0.0
        self._best: SearchProgress | None = None
        self._latest: SearchProgress | None = None

    def __call__(self, news: SearchProgress) -> None:
        assert self._progress is not None
        self._latest = news
        best = news if self._best is None or news.value <= self._best.value else self._best
        evaluations, seconds = self._evaluations + news.evaluations, self._seconds + news.seconds
        shares = [self._share]
        if self._effort.seconds:
            shares.append(seconds / self._effort.seconds)
        if self._effort.evaluations:
            shares.append(evaluations / self._effort.evaluations)
        self._share = min(max(shares), 1.0)
        self._progress(replace(best, evaluations=evaluations, seconds=seconds, share=self._share))

    def take(self, result: SearchResult) -> None:
        """Add a search that has ended."""
        self._evaluations += result.evaluations
        self._seconds += result.seconds
        if self._latest is not None and (self._best is None or self._latest.value <= self._best.value):
            self._best = self._latest
        self._latest = None


def is_of(schedule: Schedule, problem: Problem) -> bool:
    """Return true if a schedule has the placement and slices of a problem."""
    return schedule.placement.rank_of == problem.placement.rank_of and schedule.slices == problem.slices


def _can_win(bound: float, value: float) -> bool:
    """Return true if a schedule of this bound may be shorter than one of this value."""
    return bound < value * (1 - tolerances.ROUNDING)


def _least(results: dict[Problem, SearchResult], limit: float) -> float:
    return min([limit, *(result.value for result in results.values())])


def _left(effort: Effort, results: dict[Problem, SearchResult]) -> Effort:
    seconds = sum(result.seconds for result in results.values())
    evaluations = sum(result.evaluations for result in results.values())
    return replace(
        effort,
        seconds=None if effort.seconds is None else max(effort.seconds - seconds, 0.0),
        evaluations=None if effort.evaluations is None else max(effort.evaluations - evaluations, 0),
    )


def _is_nothing(effort: Effort) -> bool:
    return effort.seconds == 0 or effort.evaluations == 0


def _share(effort: Effort, share: float) -> Effort:
    return replace(
        effort,
        seconds=None if effort.seconds is None else share * effort.seconds,
        evaluations=None if effort.evaluations is None else int(share * effort.evaluations),
    )
