"""The best of several searches that differ in their random numbers, and in rounds go on from the best of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from time import monotonic

from pipeplan.errors import InfeasibleError
from pipeplan.model import Schedule
from pipeplan.solver.budget import Budget
from pipeplan.solver.independent import Effort, InterruptedSearch, SearchBackend, SearchTask, answers, plain
from pipeplan.solver.portfolio import require_shape
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress, latest_compiled


def search_seeds(
    problem: Problem,
    searches: int,
    effort: Effort,
    spread: SearchBackend,
    *,
    seed: int = 0,
    rounds: int = 1,
    start: Sequence[Schedule] = (),
    progress: Callable[[SearchProgress], None] | None = None,
) -> Found:
    """The best schedule of several searches, each with the whole budget and a seed of its own.

    In several rounds each has an equal part of the budget in every round. After the first, searches go on from the best that
    any has found and from the best of their own, by engines that differ from seed to seed
    (:func:`~pipeplan.solver.portfolio.engines_going_on`).

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
    rounds
        In how many parts. A store keeps each search of each round, so that what was ended in the middle goes on from there.
    start
        Schedules that all go on from, beside the published ones.
    progress
        Called whenever one ends; meanwhile too if they run in this process. It may raise KeyboardInterrupt to stop; the
        answer is then the best so far.

    Raises
    ------
    InputError
        For a number of searches or rounds, a seed or a budget that cannot be, a store or scheduler that cannot be used.
    ShapeError
        For a start of another shape.
    InfeasibleError
        If interrupted before anything was found.
    RunError
        If a search failed.
    """
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
    if rounds > 1:
        # How many searches there are is part of what is asked: each goes on from the best of all.
        asked |= {"rounds": rounds, "searches": searches, "seed": seed}
        effort = effort.part(rounds)
    seeds = range(seed, seed + searches)
    first = "round 0, " if rounds > 1 else ""
    questions = [SearchTask(f"{first}seed {number}", problem, number, tuple(start)) for number in seeds]
    found: list[Found] = []
    inner = None if progress is None else (lambda news: progress(_overall(news, len(found), rounds * searches)))
    interrupted = False
    try:
        for turn in range(rounds):
            of_round: dict[int, Found] = {}
            if turn:
                questions = _going_on(problem, seeds, turn, found[-searches:])
            for question, each in answers(questions, effort, spread, asked, inner):
                of_round[question.seed] = each
                found.append(each)
                if progress is not None:
                    progress(_progress(found, rounds * searches))
            found[-searches:] = [of_round[number] for number in sorted(of_round)]
            if _best(found).optimal:
                break
    except InterruptedSearch as stop:
        found.append(stop.found)
        interrupted = True
    except KeyboardInterrupt:
        interrupted = True
    if not found:
        raise InfeasibleError("the search was stopped before it found anything; give it more time")
    return replace(_best(found), interrupted=interrupted)


def _going_on(problem: Problem, seeds: Sequence[int], turn: int, last: Sequence[Found]) -> list[SearchTask]:
    """The searches of a later round; ``last`` has what those of the round before have found, seed by seed."""
    best = min(last, key=_merit)
    return [
        SearchTask(
            f"round {turn}, seed {number}",
            problem,
            number,
            (best.schedule,) if own is best else (best.schedule, own.schedule),
            goes_on=True,
        )
        for number, own in zip(seeds, last, strict=True)
    ]


def _best(found: Sequence[Found]) -> Found:
    """The best one, of equals the first, with what all have proven and spent."""
    best = min(found, key=_merit)
    told = [(each.published, each.published_robustness) for each in found if each.published is not None]
    published, of_published = min(told, key=lambda each: each[0].value, default=(None, None))
    return replace(
        best,
        published=published,
        published_robustness=of_published,
        every_published=any(each.every_published for each in found),
        compiled_after=latest_compiled(found),
        bound=max((each.bound for each in found), key=attrgetter("value")),
        evaluations=sum(each.evaluations for each in found),
        seconds=sum(each.seconds for each in found),
    )


def _merit(found: Found) -> float:
    return found.judged


def _progress(found: Sequence[Found], searches: int) -> SearchProgress:
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
