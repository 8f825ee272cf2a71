"""The search: published starts, building blocks and list scheduling, then local search, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from pipeplan.checking import check
from pipeplan.errors import InfeasibleError, InputError, ShapeError
from pipeplan.model import Schedule
from pipeplan.simulation import simulate
from pipeplan.solver.budget import Budget
from pipeplan.solver.engines.building_blocks import BuildingBlocks
from pipeplan.solver.engines.list_scheduling import ListScheduling
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.engines.proving import Proving
from pipeplan.solver.engines.published import DrivenByCosts, FixedOrders
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, SearchProgress
from pipeplan.solver.robustness import Jitter, Robustness, robustness
from pipeplan.solver.run import Engine, Lineage, Run

ENGINES: tuple[Engine, ...] = (
    FixedOrders(),
    ListScheduling(),
    DrivenByCosts(),
    BuildingBlocks(),
    Proving(),
    LocalSearch(),
)
"""What a search runs, one after the other, until its budget is spent."""


def search(
    problem: Problem,
    *,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    start: Schedule | Sequence[Schedule] = (),
    workers: int = 1,
    progress: Callable[[SearchProgress], None] | None = None,
    jitter: Jitter | None = None,
    engines: Sequence[Engine] = ENGINES,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """The best schedule of a problem that a budget allows to find.

    Parameters
    ----------
    seconds, evaluations
        The budget. With evaluations alone, the same seed gives the same answer, whatever the number of workers; with
        none at all, ten seconds. A budget of 0 gives the best of the starts that take no search.
    seed
        Of the random numbers.
    start
        Schedules to go on from, beside the published ones: of this placement and number of microbatches, unsliced.
    workers
        Threads that anneal at the same time; kernels run without the GIL.
    progress
        Called at each improvement, after each round, and twice a second meanwhile. It may raise KeyboardInterrupt to
        stop the search; so may the user. The answer is then the best so far.
    jitter
        Choose, among the best of the lineages, the schedule of the least p95 under this jitter, and report it.
    engines
        What to run, one after the other.
    clock
        Gives the time in seconds.

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
    try:
        for schedule in [start] if isinstance(start, Schedule) else start:
            require_shape(schedule, problem)
            run.offer_schedule(schedule, schedule.name or "start")
        for engine in engines:
            if not run.is_optimal and not run.budget.stopped.is_set():
                engine(run)
    except KeyboardInterrupt:
        run.budget.stopped.set()
    return _answer(run, jitter)


def require_shape(schedule: Schedule, problem: Problem) -> None:
    """Raise ShapeError for a start of another shape than the problem's, InvalidScheduleError for one that is not right."""
    same = schedule.placement.rank_of == problem.placement.rank_of and schedule.microbatches == problem.microbatches
    if not same or schedule.slices > 1:
        raise ShapeError(
            f"cannot start from {schedule!r}: the search is for {problem.placement.ranks} ranks, "
            f"{problem.placement.stages} stages ({problem.placement.name}), {problem.microbatches} microbatches, unsliced",
            field="start",
        )
    check(schedule).require_valid()


def _answer(run: Run, jitter: Jitter | None) -> Found:
    """The best lineage as a checked and simulated schedule."""
    if run.best is None:
        raise InfeasibleError("the search was stopped before it found anything; give it more time")
    lineage, steady = (run.best, None) if jitter is None else _steadiest(run, jitter)
    schedule = run.schedule(lineage)
    check(schedule, memory=run.problem.memory_limit).require_valid()
    return Found(
        problem=run.problem,
        simulation=simulate(schedule, run.problem.costs, limits=run.problem.limits),
        bound=run.bound,
        found_by=lineage.found_by,
        evaluations=run.budget.evaluations,
        seconds=run.budget.seconds,
        history=tuple(run.history),
        interrupted=run.budget.stopped.is_set(),
        robustness=steady,
        published=run.published,
        every_published=run.every_published,
    )


def _steadiest(run: Run, jitter: Jitter) -> tuple[Lineage, Robustness]:
    """The lineage of the least p95 under jitter among the best of the lineages."""
    finalists = run.lineages[: jitter.finalists]
    results = [robustness(run.schedule(lineage), run.problem, jitter) for lineage in finalists]
    best = int(np.argmin([result.p95 for result in results]))
    return finalists[best], results[best]
