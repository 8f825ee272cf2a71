"""The best of several searches that differ in their random numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from time import monotonic

from pipeplan.errors import InfeasibleError, InputError
from pipeplan.model import Schedule
from pipeplan.solver.budget import Budget
from pipeplan.solver.independent import Effort, InterruptedSearch, Question, Spread, answers, plain
from pipeplan.solver.portfolio import require_shape
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress

MOST_SEARCHES = 10_000


def search_seeds(
    problem: Problem,
    searches: int,
    effort: Effort,
    spread: Spread,
    *,
    seed: int = 0,
    start: Sequence[Schedule] = (),
    progress: Callable[[SearchProgress], None] | None = None,
) -> Found:
    """The best schedule of several searches, each with the whole budget and a seed of its own.

    On a budget of evaluations alone the answer is always the same, wherever the searches run. What they prove holds for
    all: the bound is the best one, and evaluations and seconds are those of all together.

    Parameters
    ----------
    searches
        How many: their seeds are ``seed``, ``seed`` + 1, and so on.
    effort
        The budget of each.
    spread
        Where they run. A store keeps them by their seeds, so that more of them go on from fewer.
    start
        Schedules that all go on from, beside the published ones.
    progress
        Called whenever one ends; meanwhile too if they run in this process. It may raise KeyboardInterrupt to stop; the
        answer is then the best so far.

    Raises
    ------
    InputError
        For fewer than one search or more than ``MOST_SEARCHES``, a budget that cannot be, a store or scheduler that cannot
        be used.
    ShapeError
        For a start of another shape.
    InfeasibleError
        If interrupted before anything was found.
    RunError
        If a search failed.
    """
    if not 1 <= searches <= MOST_SEARCHES:
        raise InputError(f"searches must be from 1 to {MOST_SEARCHES:,}, not {searches}", field="searches")
    if effort.seconds is None and effort.evaluations is None:
        effort = replace(effort, seconds=10.0)
    Budget(effort.seconds, effort.evaluations, monotonic)
    for schedule in start:
        require_shape(schedule, problem)
    asked = {
        "command": "search",
        "problem": plain(problem),
        "start": plain(start),
        "seconds": effort.seconds,
        "evaluations": effort.evaluations,
    }
    questions = [Question(f"seed {number}", problem, number, tuple(start)) for number in range(seed, seed + searches)]
    found: dict[int, Found] = {}
    inner = None if progress is None else (lambda news: progress(_overall(news, len(found), searches)))
    interrupted = False
    try:
        for question, each in answers(questions, effort, spread, asked, inner):
            found[question.seed] = each
            if progress is not None:
                progress(_progress(found, searches))
    except InterruptedSearch as stop:
        found[seed + searches] = stop.found
        interrupted = True
    except KeyboardInterrupt:
        interrupted = True
    if not found:
        raise InfeasibleError("the search was stopped before it found anything; give it more time")
    return replace(_best(found), interrupted=interrupted)


def _best(found: dict[int, Found]) -> Found:
    """The best one, of equals that of the first seed, with what all have proven and spent."""
    best = min((found[seed] for seed in sorted(found)), key=_merit)
    return replace(
        best,
        published=min(
            (each.published for each in found.values() if each.published), key=attrgetter("value"), default=None
        ),
        every_published=any(each.every_published for each in found.values()),
        bound=max((each.bound for each in found.values()), key=attrgetter("value")),
        evaluations=sum(each.evaluations for each in found.values()),
        seconds=sum(each.seconds for each in found.values()),
    )


def _merit(found: Found) -> float:
    return found.judged


def _progress(found: dict[int, Found], searches: int) -> SearchProgress:
    best = _best(found)
    return SearchProgress(
        value=best.value,
        bound=best.bound.value,
        found_by=best.found_by,
        evaluations=best.evaluations,
        seconds=best.seconds,
        share=len(found) / searches,
        best=lambda: best.schedule,
        published=best.published,
    )


def _overall(news: SearchProgress, done: int, searches: int) -> SearchProgress:
    """How far all searches are, when one that runs here says how far it is."""
    return replace(news, share=(done + news.share) / searches)
