"""The search for a better schedule, under one memory limit or under a row of them. Importing this loads the solver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Unpack

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.outputs import FilePath
from pipeplan.api.results import Result, result_of
from pipeplan.api.searching.decisions import decided_in
from pipeplan.api.searching.fronts import FrontPoint, ParetoFront
from pipeplan.api.searching.problems import Names, problem_of
from pipeplan.api.searching.published import least_need, published_elsewhere, published_here, published_under
from pipeplan.api.searching.search_record import PublishedSchedule, SearchRecord
from pipeplan.api.searching.search_words import slow_start
from pipeplan.api.simulations import assumed_times
from pipeplan.api.sources import label, resolve
from pipeplan.costs import SEARCH_SETTINGS, Settings, plain_numbers, require_settings
from pipeplan.errors import ShapeError
from pipeplan.files import path_of
from pipeplan.model import Schedule, require_text
from pipeplan.solver import Effort, Found, Jitter, Objective, Problem, SearchProgress, SlowRank, Spread, search_seeds
from pipeplan.solver import pareto as front_of
from pipeplan.solver import search as search_for

SEARCHES_ON_A_CLUSTER = 8
"""Independent searches, where nobody says how many."""


def search(
    *,
    placement: str = "linear",
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
        ``linear``, ``loop``, ``v``, ``wave``, ``bidirectional`` or ``bidirectional-v`` (two copies of the model, in a line
        or on a V, from both ends), or the rank of each stage, apart by commas: ``0,1,1,0``.
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
    problem = problem_of(
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
    schedules = [_start(source, given, problem) for source in starts]
    workers = usable_cores() if workers is None else workers
    if searches is None:
        searches = SEARCHES_ON_A_CLUSTER if dask else 1
    if searches == rounds == 1 and dask is None and store is None:
        found = search_for(
            problem,
            seconds=seconds,
            evaluations=evaluations,
            seed=seed,
            start=schedules,
            workers=workers,
            progress=progress,
        )
    else:
        processes = max(1, min(workers, searches))
        found = search_seeds(
            problem,
            searches,
            Effort(seconds=seconds, evaluations=evaluations, workers=1 if dask else workers // processes),
            Spread(workers=processes, dask=dask, store=kept),
            seed=seed,
            rounds=rounds,
            start=schedules,
            progress=progress,
        )
    others = published_elsewhere(problem, given)
    return result_found(found, given, [each for each, _ in others])


def pareto(
    *,
    points: int = 8,
    placement: str = "linear",
    objective: Objective = "makespan",
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
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
    problem = problem_of(
        asked, placement=placement, objective=objective, full_backward=full_backward, decide=decide, leave=leave
    )
    found = front_of(
        problem,
        points=points,
        seconds=seconds,
        evaluations=evaluations,
        seed=seed,
        workers=usable_cores() if workers is None else workers,
        progress=progress,
        dask=dask,
        store=kept,
    )
    given = replace(asked, memory_limit=None)
    limits = [point.limit for point in found.points]
    others = published_under(problem, given, limits, in_bytes=found.in_bytes)
    front = tuple(
        FrontPoint(
            None if point.limit == float("inf") else point.limit,
            point.peak,
            point.value,
            result_found(point.result, given, published),
        )
        for point, published in zip(found.points, others, strict=True)
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


def result_found(found: Found, settings: Settings, others: Iterable[PublishedSchedule] = ()) -> Result:
    """What the solver found as a result, under the name of a search; ``others`` are published ones of other placements."""
    simulation, problem = found.simulation, found.problem
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
        warnings=(*said["warnings"], *slow_start(record)),
        notes=said["notes"],
    )


def _start(source: ScheduleLike, settings: Settings, problem: Problem) -> Schedule:
    schedule = resolve(source, settings)
    if schedule.placement.rank_of != problem.placement.rank_of:
        raise ShapeError(
            f"cannot start from {label(source)}: its placement is {schedule.placement.name} with {schedule.stages} stages, "
            f"and the search is for {problem.placement.name} with {problem.placement.stages}",
            field="start",
        )
    return schedule
