"""Tasks of a sweep, their results, and the workers that run them: this process, or joblib's processes.

The processes are on this machine, or on the backend that ``joblib.parallel_config`` names.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import current_process
from typing import Any, Generic, Literal, Protocol, TypeVar

from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import PipeplanError, RunError

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")

FailureKind = Literal["refused", "failed"]


@dataclass(frozen=True, slots=True)
class SweepTask(Generic[Payload]):
    """One call of a sweep's function.

    Attributes
    ----------
    key
        Name of the task in the store. The same task must have the same key in every run of the sweep.
    payload
        Argument of the function. It must be picklable.
    """

    key: str
    payload: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Reason why a task has no answer.

    Attributes
    ----------
    kind
        ``refused``: the function raised a ``PipeplanError``. That is a result, and it is stored.
        ``failed``: the function raised another exception, or returned a value that JSON cannot hold. It is not stored: a
        resumed sweep tries these tasks again.
    error
        Name of the exception's class.
    message
        Message of the exception.
    trace
        Traceback of a task that ``failed``; empty otherwise.
    """

    kind: FailureKind
    error: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Generic[Answer]):
    """A finished task.

    Attributes
    ----------
    key
        Key of the task.
    answer
        Value that the function returned; None if it failed.
    failure
        Reason why there is no answer; None if there is one.
    stored
        True if the answer was read from the store.
    seconds
        Time that the function took.
    """

    key: str
    answer: Answer | None = None
    failure: Failure | None = None
    stored: bool = False
    seconds: float = 0.0

    def required(self) -> Answer:
        """Return the answer. Raises RunError if the task failed."""
        if self.failure is not None:
            trace = f"\n{self.failure.trace}" if self.failure.trace else ""
            raise RunError(f"{self.key}: {self.failure.error}: {self.failure.message}{trace}")
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes
    ----------
    done
        Number of finished tasks, including those read from the store.
    stored
        Number of tasks read from the store.
    failed
        Number of finished tasks without an answer.
    tasks
        Total number of tasks; None if ``tasks`` has no length.
    seconds
        Time since the sweep began.
    workers
        Number of workers.
    """

    done: int
    stored: int
    failed: int
    tasks: int | None
    seconds: float
    workers: int


ProgressListener = Callable[[SweepProgress], None]
"""Function that receives the progress. It may raise KeyboardInterrupt to stop the sweep."""

Row = tuple[str, str | None, Failure | None, float]
"""A result as workers send it and the store keeps it: key, answer as JSON or failure, seconds."""

TaskFunction = Callable[[Any], Any]

_IDLE_SECONDS = 10
"""Time after which joblib ends idle processes; until then, the next sweep reuses them."""


class TaskRunner(Protocol):
    """Workers that run tasks."""

    @property
    def count(self) -> int:
        """Return the number of tasks that run at the same time."""
        ...

    def run(self, tasks: Iterable[SweepTask[Any]]) -> Generator[Row, None, None]:
        """Yield results in order of completion. Tasks are drawn as workers become free, possibly from another thread."""
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


def run_task(function: TaskFunction, task: SweepTask[Any]) -> Row:
    """Call the function for one task. Everything it raises, except KeyboardInterrupt, becomes a failure of the task."""
    begin = time.perf_counter()
    text, failure = None, None
    try:
        text = json_text(function(task.payload), compact=True)
    except PipeplanError as error:
        failure = Failure(kind="refused", error=type(error).__name__, message=str(error))
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error))
        failure = Failure(kind="failed", error=type(error).__name__, message=str(error), trace=trace)
    return task.key, text, failure, time.perf_counter() - begin


class ThisProcess:
    """One worker, which is this process. Tasks run in their order."""

    count = 1

    def __init__(self, function: TaskFunction) -> None:
        self._function = function

    def run(self, tasks: Iterable[SweepTask[Any]]) -> Generator[Row, None, None]:
        """Yield the result of each task."""
        for task in tasks:
            yield run_task(self._function, task)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


_IN_USE = threading.Lock()
"""Held by the sweep that uses joblib's processes: all of a program share them, and a sweep that stops early ends them."""


def started_workers(function: TaskFunction, count: int) -> TaskRunner:
    """Return processes, or this process for one worker, in a daemon, or while another sweep uses the processes."""
    # A daemon, such as a process of a server, may not have children.
    if count > 1 and not current_process().daemon and _IN_USE.acquire(blocking=False):
        return Processes(function, count)
    return ThisProcess(function)


class Processes:
    """Processes of joblib's default backend, or workers of the one that ``joblib.parallel_config`` names.

    Create them by :func:`started_workers`.
    """

    def __init__(self, function: TaskFunction, count: int) -> None:
        from joblib import effective_n_jobs

        self._function = function
        self.count = effective_n_jobs(count)

    def run(self, tasks: Iterable[SweepTask[Any]]) -> Generator[Row, None, None]:
        """Yield results in order of completion. Raises RunError if a process dies or cannot be started."""
        try:
            results = self._started(tasks)
            # "yield from" would close joblib's generator, which then warns about unused results.
            for row in results:  # noqa: UP028
                yield row
        except BrokenProcessPool:
            raise RunError(
                "a worker process died, most likely for lack of memory: try fewer workers; a store keeps what is finished"
            ) from None
        except GeneratorExit:
            # An exception ends it without that warning.
            with suppress(_SweepStopped):
                results.throw(_SweepStopped())
            raise

    def _started(self, tasks: Iterable[SweepTask[Any]]) -> Generator[Row, None, None]:
        from joblib import Parallel, delayed

        call = delayed(run_task)
        parallel = Parallel(
            n_jobs=self.count,
            return_as="generator_unordered",
            pre_dispatch="n_jobs",
            idle_worker_timeout=_IDLE_SECONDS,
        )
        try:
            with _interrupts_blocked():
                results: Generator[Row, None, None] = parallel(call(self._function, task) for task in tasks)
        except BrokenProcessPool:
            raise
        except (OSError, RuntimeError) as error:
            # Python raises RuntimeError if the system refuses a new thread.
            raise RunError(f"cannot start {self.count} worker processes ({error}); try fewer workers") from None
        return results

    def close(self) -> None:
        """Let other sweeps use the processes; joblib ends them when they have been idle for a while."""
        _IN_USE.release()


class _SweepStopped(Exception):
    pass


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while processes start: they inherit the block, and the sweep handles the signal afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
