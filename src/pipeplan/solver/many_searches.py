"""Many searches of one problem: in processes or on a cluster, kept in a store as they end, and joined to one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from pipeplan.errors import InfeasibleError, RunError
from pipeplan.formats import parse_json, schedule_json
from pipeplan.model import Schedule
from pipeplan.simulation import Bound
from pipeplan.solver.budget import Budget
from pipeplan.solver.portfolio import ENGINES, engines_going_on, require_shape, search
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Improvement, Published, SearchProgress, SearchResult, joined
from pipeplan.sweeps import Finished, Task, sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBackend:
    """Execution of independent searches, and the file that keeps their answers.

    Attributes
    ----------
    workers
        Number of processes on this machine. A single process uses the threads of its searches.
    dask
        Address of a Dask scheduler, whose workers search instead.
    store
        File of finished searches; those that it holds are not repeated.
    """

    workers: int = 1
    dask: str | None = None
    store: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Budget of each search: seconds, evaluations, and the threads of its annealing."""

    seconds: float | None
    evaluations: int | None
    workers: int = 1

    def part(self, parts: int) -> Effort:
        """Return one of this many equal parts of the budget."""
        return replace(
            self,
            seconds=None if self.seconds is None else self.seconds / parts,
            evaluations=None if self.evaluations is None else self.evaluations // parts,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """One search: its name in the store, its problem, random seed and starts.

    ``goes_on``: the search continues from other searches' schedules, by engines that depend on its seed.
    """

    key: str
    problem: Problem
    seed: int
    start: tuple[Schedule, ...] = ()
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch:
    """A finished search without what follows from its problem. ``schedule`` is in pipeplan's JSON."""

    schedule: str
    bound: Bound
    found_by: str
    evaluations: int
    seconds: float
    history: tuple[Improvement, ...]
    published: Published | None = None
    every_published: bool = False
    compiled_after: float | None = 0.0

    @classmethod
    def of(cls, result: SearchResult) -> StoredSearch:
        """Return the part of an answer that is stored."""
        return cls(schedule=schedule_json(result.schedule), **{name: getattr(result, name) for name in _STORED})

    def result(self, problem: Problem) -> SearchResult:
        """Return the answer; the schedule is simulated again."""
        schedule = parse_json(self.schedule)
        assert isinstance(schedule, Schedule)
        simulation = problem.simulated(schedule)
        return SearchResult(problem=problem, simulation=simulation, **{name: getattr(self, name) for name in _STORED})


_STORED = tuple(field.name for field in fields(StoredSearch) if field.name != "schedule")


class InterruptedSearch(KeyboardInterrupt):
    """The user has stopped a search of this process: its answer is used and not stored."""

    def __init__(self, result: SearchResult) -> None:
        super().__init__()
        self.result = result


def run_searches(
    tasks: Iterable[SearchTask],
    effort: Effort,
    backend: SearchBackend,
    request: Mapping[str, object],
    progress: Callable[[SearchProgress], None] | None = None,
) -> Iterator[tuple[SearchTask, SearchResult]]:
    """Run independent searches, and yield each with its answer as it ends; on one worker in the order of the tasks.

    Parameters
    ----------
    request
        Everything but the task's name that an answer depends on. A store of another request is refused.
    progress
        Called with the progress of a search that runs in this process.

    Raises
    ------
    InputError
        For what :func:`~pipeplan.sweeps.sweep` raises it for.
    RunError
        If a search failed.
    InterruptedSearch
        If the user stops a search that runs in this process.
    """
    by_key = {task.key: task for task in tasks}
    here = backend.dask is None and backend.workers == 1
    finished = sweep(
        partial(_search_here, effort, progress) if here else partial(_search_on_worker, effort),
        [Task(key, task) for key, task in by_key.items()],
        answer=StoredSearch,
        asked=request,
        workers=backend.workers,
        dask=backend.dask,
        store=backend.store,
    )
    with closing(finished):
        for search_of_key in finished:
            task = by_key[search_of_key.key]
            yield task, stored_search(search_of_key).result(task.problem)


def stored_search(finished: Finished[StoredSearch]) -> StoredSearch:
    """Return the answer of a finished search.

    Raises
    ------
    InfeasibleError
        If the search found nothing.
    RunError
        If it failed, or its worker was lost.
    """
    failure = finished.failure
    if failure is not None and failure.kind == "lost":
        raise RunError(
            f"the search of {finished.key} was lost: {failure.message}; try a smaller problem, or a "
            "machine with more memory"
        )
    if failure is not None and failure.kind == "refused":
        # The search has no answer, as it would have none in this process: the sentence is for the user.
        raise (InfeasibleError if failure.error == InfeasibleError.__name__ else RunError)(failure.message)
    return finished.required()


def _search_on_worker(effort: Effort, task: SearchTask) -> StoredSearch:
    return StoredSearch.of(_search(effort, task, None))


def _search_here(effort: Effort, progress: Callable[[SearchProgress], None] | None, task: SearchTask) -> StoredSearch:
    result = _search(effort, task, progress)
    if result.interrupted:
        raise InterruptedSearch(result)
    return StoredSearch.of(result)


def _search(effort: Effort, task: SearchTask, progress: Callable[[SearchProgress], None] | None) -> SearchResult:
    return search(
        task.problem,
        seconds=effort.seconds,
        evaluations=effort.evaluations,
        seed=task.seed,
        start=task.start,
        workers=effort.workers,
        progress=progress,
        engines=engines_going_on(task.seed) if task.goes_on else ENGINES,
    )


def search_seeds(
    problem: Problem,
    searches: int,
    effort: Effort,
    backend: SearchBackend,
    *,
    seed: int = 0,
    rounds: int = 1,
    start: Sequence[Schedule] = (),
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchResult:
    """Return the best schedule of several searches, each with the whole budget and its own seed.

    With several rounds every search has an equal part of its budget in each round. After the first round, searches continue
    from the best schedule of all and from their own best one, by engines that differ from seed to seed
    (:func:`~pipeplan.solver.portfolio.engines_going_on`).

    With a budget of evaluations alone the answer is always the same, wherever the searches run. The bound is the best of
    all searches; evaluations and seconds are those of all together.

    Parameters
    ----------
    searches
        Number of searches: their seeds are ``seed``, ``seed`` + 1, and so on.
    effort
        Budget of each search.
    backend
        Workers of the searches. A store keeps them by their seeds, so that more searches reuse those of fewer.
    rounds
        Number of rounds. A store keeps each search of each round.
    start
        Schedules that all searches start from, in addition to the published ones.
    progress
        Called whenever a search ends, and meanwhile too if it runs in this process. It may raise KeyboardInterrupt to stop;
        the answer is then the best so far.

    Raises
    ------
    InputError
        For an invalid number of searches or rounds, seed or budget; a store or scheduler that cannot be used.
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
    request = {
        "command": "search",
        "problem": plain(problem),
        "start": plain(start),
        "seconds": effort.seconds,
        "evaluations": effort.evaluations,
    }
    if rounds > 1:
        # Each search continues from the best of all, so that answers depend on how many searches there are.
        request |= {"rounds": rounds, "searches": searches, "seed": seed}
        effort = effort.part(rounds)
    seeds = range(seed, seed + searches)
    first = "round 0, " if rounds > 1 else ""
    tasks = [SearchTask(f"{first}seed {number}", problem, number, tuple(start)) for number in seeds]
    ended: list[SearchResult] = []
    every = rounds * searches

    def report(news: SearchProgress) -> None:
        assert progress is not None
        progress(replace(news, share=(len(ended) + news.share) / every))

    interrupted = False
    try:
        for turn in range(rounds):
            of_round: dict[int, SearchResult] = {}
            if turn:
                tasks = _going_on(problem, seeds, turn, ended[-searches:])
            for task, result in run_searches(tasks, effort, backend, request, None if progress is None else report):
                of_round[task.seed] = result
                ended.append(result)
                if progress is not None:
                    progress(joined(ended).progress(len(ended) / every))
            ended[-searches:] = [of_round[number] for number in sorted(of_round)]
            if joined(ended).optimal:
                break
    except InterruptedSearch as stop:
        ended.append(stop.result)
        interrupted = True
    except KeyboardInterrupt:
        interrupted = True
    if not ended:
        raise InfeasibleError("the search was stopped before it found a schedule: allow more time")
    return replace(joined(ended), interrupted=interrupted)


def _going_on(problem: Problem, seeds: Sequence[int], turn: int, last: Sequence[SearchResult]) -> list[SearchTask]:
    """Return the searches of a later round; ``last`` has the answers of the round before, seed by seed."""
    best = min(last, key=lambda result: result.value)
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


def plain(value: Any) -> Any:
    """Return a request as plain values, by which a store knows it: fields by name, arrays as lists, infinity as text."""
    if isinstance(value, Schedule):
        return schedule_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
