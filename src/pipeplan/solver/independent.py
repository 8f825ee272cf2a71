"""Searches that need nothing of each other: in processes or on a cluster, and kept in a store as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeplan.errors import InfeasibleError, RunError
from pipeplan.formats import parse_json, schedule_json
from pipeplan.model import Schedule
from pipeplan.simulation import Bound
from pipeplan.solver.portfolio import ENGINES, engines_going_on, search
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Found, Improvement, Published, SearchProgress
from pipeplan.solver.robustness import Robustness
from pipeplan.sweeps import Finished, SweepTask, sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBackend:
    """Where independent searches run, and what keeps them.

    Attributes
    ----------
    workers
        Processes of this machine. Of a single one its searches have the threads.
    dask
        Address of a Dask scheduler, whose workers search instead.
    store
        File that keeps what is found; what it holds is not searched for again.
    """

    workers: int = 1
    dask: str | None = None
    store: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SearchTask:
    """One search: its name in the store, what is searched for, from what, with which random numbers.

    ``goes_on``: whether it goes on from what others have found, and then by engines that its seed tells.
    """

    key: str
    problem: Problem
    seed: int
    start: tuple[Schedule, ...] = ()
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch:
    """What is kept of a search: what cannot be computed again from its problem. ``schedule`` is in pipeplan's JSON."""

    schedule: str
    bound: Bound
    found_by: str
    evaluations: int
    seconds: float
    history: tuple[Improvement, ...]
    robustness: Robustness | None
    published_robustness: Robustness | None = None
    published: Published | None = None
    every_published: bool = False
    compiled_after: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What every one of the searches may spend."""

    seconds: float | None
    evaluations: int | None
    workers: int = 1

    def part(self, parts: int) -> Effort:
        """One of so many equal parts of the budget."""
        return replace(
            self,
            seconds=None if self.seconds is None else self.seconds / parts,
            evaluations=None if self.evaluations is None else self.evaluations // parts,
        )


class InterruptedSearch(KeyboardInterrupt):
    """The user ended a search of this process; what it had found until then is no answer to keep, but one to give."""

    def __init__(self, found: Found) -> None:
        super().__init__()
        self.found = found


def answers(
    questions: Iterable[SearchTask],
    effort: Effort,
    spread: SearchBackend,
    asked: Mapping[str, object],
    progress: Callable[[SearchProgress], None] | None = None,
) -> Iterator[tuple[SearchTask, Found]]:
    """What searches find, as they end; in the order of the questions on one worker.

    Parameters
    ----------
    asked
        What all answers depend on beside keys.
    progress
        Of a search that runs in this process.

    Raises
    ------
    InputError
        For what :func:`~pipeplan.sweeps.sweep` raises it for.
    RunError
        If a search failed.
    InterruptedSearch
        If the user ends a search that runs in this process.
    """
    asked_of = {question.key: question for question in questions}
    here = spread.dask is None and spread.workers == 1
    found = sweep(
        partial(_search_here, effort, progress) if here else partial(_search, effort),
        [SweepTask(key, question) for key, question in asked_of.items()],
        answer=StoredSearch,
        asked=asked,
        workers=spread.workers,
        dask=spread.dask,
        store=spread.store,
    )
    with closing(found):
        for each in found:
            question = asked_of[each.key]
            yield question, _found(question.problem, answer_of(each))


def answer_of(finished: Finished[StoredSearch]) -> StoredSearch:
    """The answer. Raises InfeasibleError where the search has none to give, RunError where it failed or was lost."""
    failure = finished.failure
    if failure is not None and failure.kind == "lost":
        raise RunError(f"the search of {finished.key} was lost: {failure.message}; take fewer workers")
    if failure is not None and failure.kind == "refused":
        # The question has no answer, as it would have none in this process: the sentence is for the user.
        raise (InfeasibleError if failure.error == InfeasibleError.__name__ else RunError)(failure.message)
    return finished.required()


def _search(effort: Effort, question: SearchTask) -> StoredSearch:
    """A search on a worker."""
    return _answer(_searched(effort, question, None))


def _search_here(
    effort: Effort, progress: Callable[[SearchProgress], None] | None, question: SearchTask
) -> StoredSearch:
    """A search in this process, which the user may end."""
    found = _searched(effort, question, progress)
    if found.interrupted:
        raise InterruptedSearch(found)
    return _answer(found)


def _searched(effort: Effort, question: SearchTask, progress: Callable[[SearchProgress], None] | None) -> Found:
    return search(
        question.problem,
        seconds=effort.seconds,
        evaluations=effort.evaluations,
        seed=question.seed,
        start=question.start,
        workers=effort.workers,
        progress=progress,
        engines=engines_going_on(question.seed) if question.goes_on else ENGINES,
    )


def _answer(found: Found) -> StoredSearch:
    return StoredSearch(
        schedule=schedule_json(found.schedule),
        bound=found.bound,
        found_by=found.found_by,
        evaluations=found.evaluations,
        seconds=found.seconds,
        history=found.history,
        robustness=found.robustness,
        published_robustness=found.published_robustness,
        published=found.published,
        every_published=found.every_published,
        compiled_after=found.compiled_after,
    )


def _found(problem: Problem, answer: StoredSearch) -> Found:
    schedule = parse_json(answer.schedule)
    assert isinstance(schedule, Schedule)
    return Found(
        problem=problem,
        simulation=problem.simulated(schedule),
        bound=answer.bound,
        found_by=answer.found_by,
        evaluations=answer.evaluations,
        seconds=answer.seconds,
        history=answer.history,
        robustness=answer.robustness,
        published_robustness=answer.published_robustness,
        published=answer.published,
        every_published=answer.every_published,
        compiled_after=answer.compiled_after,
    )


def plain(value: Any) -> Any:
    """A question as plain values, for the store to know it by: fields by name, arrays as lists, infinite numbers as text."""
    if isinstance(value, Schedule):
        return schedule_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
