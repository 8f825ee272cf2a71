"""The search: published starts, building blocks and list scheduling, then local search, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipeplan.checking import check
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.candidate import keep_what_can_be
from pipeplan.extensions.search.engines.building_blocks import BuildingBlocks
from pipeplan.extensions.search.engines.dispatching import Dispatching
from pipeplan.extensions.search.engines.judged_search import JudgedSearch
from pipeplan.extensions.search.engines.list_scheduling import ListScheduling
from pipeplan.extensions.search.engines.order_annealing import LocalSearch
from pipeplan.extensions.search.engines.proving import EarlyProof, Proving
from pipeplan.extensions.search.engines.published import DrivenByCosts, FixedOrders, try_untried
from pipeplan.extensions.search.engines.window_search import WindowSearch
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.result import SearchProgress, SearchResult
from pipeplan.extensions.search.run import Engine, Lineage, Run
from pipeplan.foundation.errors import InfeasibleError, InputError, ShapeError
from pipeplan.model import Schedule

ENGINES: tuple[Engine, ...] = (
    FixedOrders(),
    ListScheduling(),
    Dispatching(),
    DrivenByCosts(),
    EarlyProof(),
    BuildingBlocks(),
    Proving(),
    WindowSearch(),
    LocalSearch(),
    JudgedSearch(),
)
"""Engines of a search, which run one after the other until its budget is spent."""

STARTING = (FixedOrders, ListScheduling, Dispatching, DrivenByCosts)
"""Engines that only find starts: a search that continues has a better one."""

HOTTER = 16.0
"""Factor by which some of the continuing searches anneal hotter."""


def engines_going_on(number: int) -> tuple[Engine, ...]:
    """Return the engines of a search that continues from an earlier one; they differ by number.

    In turn: all that is more than a start; annealing alone; annealing that is hotter; annealing whose steps start
    anywhere more often.
    """
    annealed = (
        LocalSearch(),
        LocalSearch(),
        LocalSearch(heats=tuple(HOTTER * heat for heat in LocalSearch().heats)),
        LocalSearch(critical=3),
    )[number % 4]
    others = [engine for engine in ENGINES if not isinstance(engine, STARTING)]
    if number % 4:
        others = [engine for engine in others if isinstance(engine, LocalSearch | JudgedSearch)]
    return tuple(annealed if isinstance(engine, LocalSearch) else engine for engine in others)


def search(
    problem: Problem,
    *,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    start: Schedule | Sequence[Schedule] = (),
    workers: int = 1,
    progress: Callable[[SearchProgress], None] | None = None,
    engines: Sequence[Engine] = ENGINES,
    compared: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Return the best schedule of a problem that a budget allows to find.

    Parameters
    ----------
    seconds, evaluations
        The budget. With evaluations alone, the same seed leads to the same answer, whatever the number of workers; with
        none at all, ten seconds. A budget of 0 returns the best of the starts that take no search.
    seed
        Seed of the random numbers.
    start
        Schedules to go on from, in addition to the published ones: of this placement and number of microbatches, unsliced.
    workers
        Threads that anneal at the same time; compiled kernels run without the GIL.
    progress
        Called at each improvement, after each round, and twice a second meanwhile. It may raise KeyboardInterrupt to
        stop the search; so may the user. The answer is then the best so far.
    engines
        Engines to run, one after the other; the published schedules that none of them tries are compared with the answer.
    compared
        True if the start is as good as every published schedule; these need not be compared with the answer then.
    clock
        Function that returns the time in seconds.

    Raises
    ------
    InputError
        For a negative budget, fewer than one worker.
    ShapeError
        For a start of another shape.
    InfeasibleError
        If interrupted before anything was found.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}", field="workers")
    if seconds is None and evaluations is None:
        seconds = 10.0
    run = Run(problem, Budget(seconds, evaluations, clock), seed=seed, workers=workers, report=progress)
    plan = plan_of(run) if problem.is_judged else run
    # The plan is searched first where schedules are judged by simulation; else both are the same run.
    try:
        for schedule in [start] if isinstance(start, Schedule) else start:
            require_shape(schedule, problem)
            if problem.sharding is not None:
                run.offer_with_collectives(schedule, schedule.name or "start")
            plan.offer_schedule(schedule, schedule.name or "start")
        for engine in engines:
            searched = run if isinstance(engine, JudgedSearch) else plan
            done = searched.needs_no_start if isinstance(engine, STARTING) else searched.is_optimal
            if not done and not run.budget.stopped.is_set():
                engine(searched)
    except KeyboardInterrupt:
        run.budget.stopped.set()
    if not compared:
        _compare_with_published(run, plan)
    return _search_result(run, every_published=plan.every_published)


def _compare_with_published(run: Run, plan: Run) -> None:
    """Try the remaining published schedules, unless one is proven optimal, or nothing was found."""
    best, published = run.best, run.published
    proven = run.is_optimal and best is not None and published is not None and published.value <= best.judged
    if best is None or plan.every_published or proven:
        return
    try:
        try_untried(plan)
    except KeyboardInterrupt:
        run.budget.stopped.set()


def require_shape(schedule: Schedule, problem: Problem) -> None:
    """Raise ShapeError for a start of another shape than the problem's, InvalidScheduleError for one that is not right."""
    same = schedule.placement.rank_of == problem.placement.rank_of and schedule.microbatches == problem.microbatches
    if not same or schedule.slices != problem.slices:
        cut = "unsliced" if problem.slices == 1 else f"{problem.slices} slices"
        remedy = f"; set slices to {schedule.slices}" if same else ""
        raise ShapeError(
            f"cannot start from {schedule!r}: the search is for {problem.placement.ranks} ranks, "
            f"{problem.placement.stages} stages ({problem.placement.name}), {problem.microbatches} microbatches, "
            f"{cut}{remedy}",
            field="start",
        )
    check(schedule, streams=problem.streams).require_valid()


def _keeping_what_can_be(run: Run, lineage: Lineage) -> Lineage:
    """Return the lineage without needless recomputation and offload."""
    if lineage.schedule is not None or not run.encoder.decides_mode:
        return lineage
    candidate = keep_what_can_be(run.encoder, lineage.candidate)
    run.offer(candidate, lineage.name, lineage.found_by)
    return replace(lineage, candidate=candidate, value=candidate.value)


def _search_result(run: Run, *, every_published: bool) -> SearchResult:
    """Return the best lineage as a checked and simulated schedule."""
    if run.best is None:
        raise InfeasibleError("the search was stopped before it found a schedule: allow more time")
    problem, lineage = run.problem, _keeping_what_can_be(run, run.finalists[0])
    simulation = problem.simulated(run.schedule(lineage))
    rule = problem.memory_limit if problem.sharding is None else problem.memory_rule
    check(simulation.schedule, memory=rule, streams=problem.streams).require_valid()
    return SearchResult(
        problem=problem,
        simulation=simulation,
        bound=run.bound,
        found_by=lineage.found_by,
        evaluations=run.budget.evaluations,
        seconds=run.budget.seconds,
        history=tuple(run.history),
        interrupted=run.budget.stopped.is_set(),
        published=run.published,
        every_published=every_published,
    )


PLAN_SHARE = 0.5
"""Share of the budget for the plan, which knows nothing of messages and collectives."""


def plan_of(run: Run) -> Run:
    """Return the search for a plan of a search whose schedules are judged by simulation, within a share of its budget.

    All that engines do for a problem on transfers that only delay and without collectives they do for the plan. Whatever is
    the best of its lineage there is judged by the whole search, which so never ends with worse than what the plan has found.
    """
    return Run(run.problem.as_planned(), run.budget.part(PLAN_SHARE), seed=run.seed, workers=run.workers, part_of=run)
