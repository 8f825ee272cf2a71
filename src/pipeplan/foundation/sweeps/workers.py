"""Run the tasks of a sweep in this process, or by joblib: in processes of this machine, or on the backend that is named."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import current_process
from typing import Any, Protocol

from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import PipeplanError, RunError
from pipeplan.foundation.sweeps.records import Failure, Row, SweepTask

TaskFunction = Callable[[Any], Any]

_PARENT_CHECK_SECONDS = 1.0

_IDLE_SECONDS = 10
"""Time after which joblib ends idle processes; until then, the next sweep reuses them."""


class WorkerLost(Exception):
    """A worker died. Tasks without a result have to be run again."""


class TaskRunner(Protocol):
    """Workers that run tasks."""

    @property
    def count(self) -> int:
        """Return the number of tasks that run at the same time."""
        ...

    @property
    def blamed(self) -> int:
        """Return the number of tasks that may have been running together with a task that killed its worker."""
        ...

    def run(self, tasks: Iterable[SweepTask[Any]], *, careful: bool = False) -> Generator[Row, None, None]:
        """Yield results in order of completion.

        Tasks are drawn as workers become free, possibly from another thread. ``careful`` sends tasks one by one, so that
        a worker that dies loses few of them.
        """
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

    count = blamed = 1

    def __init__(self, function: TaskFunction) -> None:
        self._function = function

    def run(self, tasks: Iterable[SweepTask[Any]], *, careful: bool = False) -> Generator[Row, None, None]:
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
        # joblib does not tell which process died, and ends the others.
        self.count = self.blamed = effective_n_jobs(count)

    def run(self, tasks: Iterable[SweepTask[Any]], *, careful: bool = False) -> Generator[Row, None, None]:
        """Yield results in order of completion."""
        from joblib import Parallel, delayed

        call = delayed(_run_in_process)
        parallel = Parallel(
            n_jobs=self.count,
            return_as="generator_unordered",
            pre_dispatch="n_jobs",
            batch_size=1 if careful else "auto",
            idle_worker_timeout=_IDLE_SECONDS,
        )
        try:
            with _interrupts_blocked():
                results = parallel(call(os.getpid(), self._function, task) for task in tasks)
        except BrokenProcessPool:
            raise WorkerLost from None
        except (OSError, RuntimeError) as error:
            # Python raises RuntimeError if the system refuses a new thread.
            raise RunError(f"cannot start {self.count} worker processes ({error}); try fewer workers") from None
        try:
            # "yield from" would close joblib's generator, which then warns about unused results.
            for row in results:  # noqa: UP028
                yield row
        except BrokenProcessPool:
            raise WorkerLost from None
        except GeneratorExit:
            # An exception ends it without that warning.
            with suppress(_SweepStopped):
                results.throw(_SweepStopped())
            raise

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


def _run_in_process(sweep: int, function: TaskFunction, task: SweepTask[Any]) -> Row:
    # Workers of a cluster are no children of the sweep, and outlive it.
    if os.getppid() == sweep:
        _end_with(sweep)
    return run_task(function, task)


@cache
def _end_with(sweep: int) -> None:
    """Make this process end when the process of the sweep is killed."""

    def watch() -> None:
        while os.getppid() == sweep:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
