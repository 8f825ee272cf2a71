"""The search for a better schedule, under one memory limit or under a row of them. Importing this loads the solver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Unpack

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.outputs import FilePath
from pipeplan.api.results import Result, result_of
from pipeplan.api.searching.decisions import decided_in
from pipeplan.api.searching.fronts import FrontPoint, ParetoFront
from pipeplan.api.searching.problems import AUTO, Names, counts_parameters, problems_of
from pipeplan.api.searching.published import (
    PublishedEntry,
    least_need,
    published_everywhere,
    published_here,
    published_under,
)
from pipeplan.api.searching.search_record import SearchRecord
from pipeplan.api.searching.search_words import slow_start
from pipeplan.api.simulations import assumed_times
from pipeplan.api.sources import label, resolve
from pipeplan.costs import SEARCH_SETTINGS, Settings, plain_numbers, require_settings
from pipeplan.errors import ShapeError
from pipeplan.files import path_of
from pipeplan.model import Schedule, require_text
from pipeplan.solver import (
    Effort,
    Entry,
    Found,
    Jitter,
    Objective,
    PlacementTried,
    Problem,
    SearchProgress,
    SlowRank,
    Spread,
    Turn,
    best_of_starts,
    best_placement,
    problem_of_best_starts,
    require_shape,
    search_seeds,
    searched_here,
)
from pipeplan.solver import pareto as front_of

SEARCHES_ON_A_CLUSTER = 8
"""Independent searches, where nobody says how many."""


def search(
    *,
    placement: str = AUTO,
    objective: Objective = "makespan",
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...] = (),
    workers: int | None = None,
    searches: int | None = None,
    rounds: int = 1,
    dask: str | None = None,
    store: FilePath | None = None,
    full_backward: bool = False,
    decide: Names = (),
    leave: Names = (),
    jitter: float | None = None,
    slow_rank: float | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    **settings: Unpack[Given],
) -> Result:
    """A better schedule for these costs, under a memory limit, and how far from optimal it can be.

    Starts from every published schedule that fits. The result is one like any other, with the story of the search in
    ``result.search`` and the best proven bound in ``result.bound``.

    Parameters
    ----------
    placement
        ``auto``: every placement that can win (the default); the answer names its own. Or ``linear``, ``loop``, ``v``,
        ``wave``, ``bidirectional`` or ``bidirectional-v`` (two copies of the model, in a line or on a V, from both ends), or
        the rank of each stage, apart by commas: ``0,1,1,0``.
    objective
        ``makespan``, or ``span``: the longest rank's own span, with ops that start as soon as they can. That is what is
        compared, and what ``optimal`` is about; a rank that began later could have a shorter span.
    seconds, evaluations
        The budget (ten seconds); with evaluations alone the same seed gives the same answer.
    seed
        Of the random numbers.
    start
        A schedule to go on from, or several: what :func:`pipeplan.simulate` takes.
    workers
        Threads, or processes for several searches (as many as there are cores).
    searches
        Independent searches with seeds one after the other, each with the whole budget, of which the best is the answer
        (1; 8 on a cluster).
    rounds
        In how many parts several searches run: after each, all go on from the best that any has found.
    dask
        Address of a Dask scheduler, whose workers search.
    store
        File that keeps each search as it ends; the same question asked again goes on from there.
    full_backward
        Same as ``leave="split"``: no backward is split into its input and weight halves.
    decide, leave
        What the search decides beside the order: names, or one text with commas between them. It decides ``split``,
        ``overlap`` and ``weight-order`` unless they are left, and ``recompute`` and ``offload`` where they are named.
    jitter
        Make small what 95 of 100 runs do not exceed when op times vary by this standard deviation, as 0.05.
    slow_rank
        Make small the worst case when any one rank is slower by this share, as 0.05.
    progress
        Called with how far the search is.
    **settings
        Shape and costs; ``memory_limit`` is one, or one per rank; ``communication`` is how transfers behave.

    Raises
    ------
    InputError
        For a placement, cost, limit, start or budget that cannot be; decisions that exclude each other, or whose costs
        nobody gave; a measured timeline to start from; a store or scheduler that cannot be used.
    InfeasibleError
        For a limit below the least feasible one, which the message names.

    Examples
    --------
    >>> better = pipeplan.search(ranks=4, microbatches=8, placement="v", memory_limit="3act", evaluations=20_000)
    >>> better.search.found_by, better.gap  # doctest: +SKIP
    """
    require_settings(
        SEARCH_SETTINGS, seconds=seconds, evaluations=evaluations, seed=seed, workers=workers, searches=searches,
        rounds=rounds, jitter=jitter, slow_rank=slow_rank,
    )  # fmt: skip
    seconds, evaluations, seed, workers = plain_numbers(seconds, evaluations, seed, workers)
    searches, rounds, jitter, slow_rank = plain_numbers(searches, rounds, jitter, slow_rank)
    kept = _kept_in(store, dask)
    given = settings_of(settings)
    problems = problems_of(
        given,
        placement=placement,
        objective=objective,
        full_backward=full_backward,
        decide=decide,
        leave=leave,
        jitter=jitter,
        slow_rank=slow_rank,
    )
    starts = start if isinstance(start, list | tuple) else [start]
    schedules = [resolve(source, given) for source in starts]
    for source, schedule in zip(starts, schedules, strict=True):
        _require_problem(schedule, label(source), problems, given, any_placement=placement == AUTO)
    workers = usable_cores() if workers is None else workers
    if searches is None:
        searches = SEARCHES_ON_A_CLUSTER if dask else 1
    if seconds is None and evaluations is None:
        seconds = 10.0
    effort = Effort(seconds=seconds, evaluations=evaluations, workers=workers)
    everywhere = published_everywhere(problems[0], given)
    here = searched_here(seed=seed, workers=workers, effort=effort, progress=progress)
    competing = _competing(everywhere, given) if placement == AUTO else []
    if searches == rounds == 1 and dask is None and store is None:
        best = best_placement(problems, effort, here, published=competing, start=schedules)
    else:
        processes = max(1, min(workers, searches))

        def seeds(turn: Turn) -> Found:
            return search_seeds(
                turn.problem,
                searches,
                replace(turn.effort, workers=1 if dask else workers // processes),
                Spread(workers=processes, dask=dask, store=kept),
                seed=seed,
                rounds=rounds,
                start=turn.start,
                progress=progress,
            )

        best = best_of_starts(problems, effort, seeds, published=competing, start=schedules)
    return result_found(best.found, given, everywhere, best.tried)


def pareto(
    *,
    points: int = 8,
    placement: str = AUTO,
    objective: Objective = "makespan",
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...] = (),
    workers: int | None = None,
    dask: str | None = None,
    store: FilePath | None = None,
    full_backward: bool = False,
    decide: Names = (),
    leave: Names = (),
    progress: Callable[[float, SearchProgress], None] | None = None,
    **settings: Unpack[Given],
) -> ParetoFront:
    """The whole trade-off of time against memory: the best schedule under each of several limits, and under none.

    Parameters
    ----------
    points
        About how many limits to try, at least 2; the peaks of published schedules that no other beats are among them.
    placement, objective, seed, workers, full_backward, decide, leave
        As for :func:`pipeplan.search`.
    start
        A schedule to go on from, or several: no point whose limit it is within is worse.
    dask
        Address of a Dask scheduler, whose workers search under all limits at once.
    store
        File that keeps each point as it ends; the same front asked again goes on from there.
    seconds, evaluations
        The budget of the whole front (ten seconds a limit).
    progress
        Called with the limit, infinite for none, and how far its search is; ``share`` is that of the whole front.
    **settings
        Shape and costs; a ``memory_limit``, one for all ranks and in the front's unit, is among the limits tried.

    Raises
    ------
    InputError
        For fewer than two points, and what :func:`pipeplan.search` raises it for.
    """
    require_settings(
        SEARCH_SETTINGS, points=points, seconds=seconds, evaluations=evaluations, seed=seed, workers=workers
    )
    points, seconds, evaluations, seed, workers = plain_numbers(points, seconds, evaluations, seed, workers)
    kept = _kept_in(store, dask)
    asked = settings_of(settings)
    problems = problems_of(
        asked, placement=placement, objective=objective, full_backward=full_backward, decide=decide, leave=leave
    )
    starts = start if isinstance(start, list | tuple) else [start]
    schedules = [resolve(source, asked) for source in starts]
    for source, schedule in zip(starts, schedules, strict=True):
        _require_problem(schedule, label(source), problems, asked, any_placement=placement == AUTO)
    if dask is not None:
        problems = [problem_of_best_starts(problems, schedules)[0]]
    given = replace(asked, memory_limit=None)
    everywhere = published_under(problems[0], given, in_bytes=problems[0].costs.memory.in_bytes)
    found = front_of(
        problems,
        points=points,
        seconds=seconds,
        evaluations=evaluations,
        seed=seed,
        workers=usable_cores() if workers is None else workers,
        progress=progress,
        dask=dask,
        store=kept,
        start=schedules,
        published_at=(
            (lambda limit: _competing(everywhere(limit), given)) if placement == AUTO and dask is None else None
        ),
    )
    front = tuple(
        FrontPoint(
            None if point.limit == float("inf") else point.limit,
            point.peak,
            point.value,
            result_found(point.result, given, everywhere(point.limit), point.tried),
        )
        for point in found.points
    )
    return ParetoFront(front, found.marks, found.in_bytes)


def _kept_in(store: FilePath | None, dask: str | None) -> Path | None:
    """The file that keeps what ends. Raises InputError for a path that can be none, and for an address that is no text."""
    if dask is not None:
        require_text(dask, "the address of a Dask scheduler", longest=400, field="dask")
    return None if store is None else path_of(store, "the store", field="store")


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def result_found(
    found: Found,
    settings: Settings,
    published: Iterable[PublishedEntry] = (),
    tried: tuple[PlacementTried, ...] = (),
) -> Result:
    """Return what the solver found as a result, under the name of a search.

    ``published`` are the published schedules of all placements, ``tried`` what is known of each placement.
    """
    simulation, problem = found.simulation, found.problem
    others = [each.published for each in published if not each.is_of(problem)]
    variation = problem.variation
    timeline = replace(simulation.timeline, schedule=found.schedule.renamed("search"))
    here = published_here(found)
    record = SearchRecord(
        objective=problem.objective,
        value=found.judged,
        bound=found.bound,
        nominal=problem.bound if isinstance(variation, SlowRank) else None,
        optimal=found.optimal,
        found_by=found.found_by,
        evaluations=found.evaluations,
        seconds=found.seconds,
        decided=decided_in(found.schedule, problem),
        interrupted=found.interrupted,
        compiled_after=found.compiled_after,
        placement=problem.placement.name,
        tried=tried,
        communication=problem.communication,
        jitter=variation.deviation if isinstance(variation, Jitter) else None,
        slow_rank=variation.share if isinstance(variation, SlowRank) else None,
        robustness=found.robustness,
        published_robustness=found.published_robustness,
        best_published=here,
        least_need=least_need(problem) if here is None else None,
        best_published_anywhere=min(
            (each for each in (here, *others) if each is not None), key=attrgetter("value"), default=None
        ),
    )
    said = assumed_times(settings, found.schedule)
    return result_of(
        replace(simulation, timeline=timeline),
        limits=problem.limits,
        search=record,
        warnings=(*said["warnings"], *slow_start(record), *_second_copy(problem, tried)),
        notes=said["notes"],
    )


def _competing(published: Iterable[PublishedEntry], settings: Settings) -> list[Entry]:
    """Return the published schedules that an answer is never worse than: all, or those of as many slices as are given."""
    return [
        each.entry for each in published if settings.slices is None or each.entry.schedule.slices == settings.slices
    ]


def _second_copy(problem: Problem, tried: tuple[PlacementTried, ...]) -> Iterator[str]:
    """Warn of a placement that holds the model twice, which was not named, where no limit counts that."""
    if len(tried) > 1 and problem.placement.copies > 1 and not counts_parameters(problem):
        yield (
            f"the {problem.placement.name} placement holds the model twice, and no memory limit counts its parameters: "
            "give static_bytes and a limit in bytes, or name another placement"
        )


def _require_problem(
    schedule: Schedule, name: str, problems: list[Problem], settings: Settings, *, any_placement: bool
) -> None:
    """Check that a start is of a problem that is searched; with any placement, add the problem of its own.

    Raises
    ------
    ShapeError
        For a start of another placement, or of other microbatches or slices.
    """
    own = next((each for each in problems if each.placement.rank_of == schedule.placement.rank_of), None)
    if own is None and any_placement and schedule.ranks == problems[0].placement.ranks:
        there = schedule.placement
        own = replace(problems[0], placement=there, costs=settings.costs(there), limits=settings.limits(there))
        problems.append(own)
    if own is None:
        first = problems[0].placement
        raise ShapeError(
            f"cannot start from {name}: its placement is {schedule.placement.name} with {schedule.stages} stages, "
            f"and the search is for {first.name} with {first.stages}",
            field="start",
        )
    require_shape(schedule, own)
