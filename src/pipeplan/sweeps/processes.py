"""Processes of this machine, by joblib's executor (loky).

Each process has an executor of its own. When a process dies, an executor gives up all that it was handed; with one for
all, a task that takes its process down would take the work of every other process with it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from joblib.externals.loky.process_executor import ProcessPoolExecutor

from pipeplan.errors import RunError
from pipeplan.sweeps.pool import Batch, Ended, Function
from pipeplan.sweeps.work import work_on

_LOOK_EVERY = 1.0
"""Seconds between two looks of a worker at whether the sweep still lives."""


class Processes:
    """So many processes, each started when there is work for it and again after it has died."""

    ahead = 1
    batch_seconds = 0.1

    def __init__(self, function: Function, workers: int) -> None:
        self.workers = workers
        self._function = function
        self._lanes = [_Lane() for _ in range(workers)]
        self._done: SimpleQueue[_Done] = SimpleQueue()

    def submit(self, batch: Batch) -> None:
        """To the process with the least to do.

        Raises
        ------
        RunError
            If the system gives no more processes.
        """
        lane = min(self._lanes, key=lambda lane: lane.batches)
        lane.batches += 1
        executor = lane.running()
        try:
            with _without_ctrl_c():
                future = executor.submit(work_on, self._function, batch.payloads)
        except BrokenProcessPool:
            self._done.put(_Done(lane, executor, batch, None))
        except (OSError, RuntimeError) as error:  # Python's word for a thread that the system does not give
            raise RunError(f"no process could be started ({error}); take fewer workers than {self.workers}") from None
        else:
            future.add_done_callback(lambda future: self._done.put(_Done(lane, executor, batch, future)))

    def ended(self) -> list[Ended]:
        """Those that have ended since the last call.

        Raises
        ------
        RunError
            If nobody will hear from a process any more.
        """
        if not any(lane.batches for lane in self._lanes):
            return []
        found = [self._next()]
        while not self._done.empty():
            found.append(self._done.get())
        return [each.ended() for each in found]

    def _next(self) -> _Done:
        """The batch that ends next."""
        while True:
            # First who is deaf, then what there is: what a thread has put there last is seen.
            deaf = any(lane.is_deaf() for lane in self._lanes)
            with suppress(Empty):
                return self._done.get(timeout=0 if deaf else _LOOK_EVERY)
            if deaf:
                raise RunError("a process was lost, probably for lack of memory; take fewer workers, or ask for less")

    def close(self) -> None:
        """Kill the processes."""
        for lane in self._lanes:
            lane.stop()


class _Lane:
    """One process, and how many batches it was handed: it works on the oldest."""

    def __init__(self) -> None:
        self.batches = 0
        self.executor: ProcessPoolExecutor | None = None

    def running(self) -> ProcessPoolExecutor:
        if self.executor is None:
            self.executor = ProcessPoolExecutor(1, initializer=_begin, initargs=(os.getpid(),))
        return self.executor

    def is_deaf(self) -> bool:
        """Whether the thread that hears from its process has died: what was handed to that never ends."""
        if self.executor is None or not self.batches:
            return False
        listener = self.executor._executor_manager_thread
        return listener is not None and not listener.is_alive()

    def stop(self) -> None:
        if self.executor is None:
            return
        # loky asks the system what its process has started before it kills it. Where the system does not say (no file can
        # be opened, nothing is shown of processes), it gives up, and waits for that process when this one ends: for ever.
        started = list((self.executor._processes or {}).values())
        with suppress(RuntimeError):  # a thread that could not be started cannot be waited for
            self.executor.shutdown(wait=True, kill_workers=True)
        self.executor = None
        for process in started:
            if process.is_alive():
                process.terminate()
                process.join()


@dataclass(frozen=True, slots=True)
class _Done:
    """A batch that has ended in one way or another; without a future it was handed to a process that was dead already."""

    lane: _Lane
    executor: ProcessPoolExecutor
    batch: Batch
    future: Future[Any] | None

    def ended(self) -> Ended:
        """What became of it: an executor that breaks gives up its batches from the oldest on."""
        self.lane.batches -= 1
        try:
            return (
                Ended(self.batch, None, begun=False) if self.future is None else Ended(self.batch, self.future.result())
            )
        except BrokenProcessPool:
            first = self.lane.executor is self.executor
            if first:
                self.lane.stop()
            return Ended(self.batch, None, begun=first)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """A process that is started now is never interrupted: Ctrl-C is for the sweep alone, which gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(sweep: int) -> None:
    """A sweep that was killed takes its workers with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(sweep,), daemon=True).start()


def _leave_with(sweep: int) -> None:
    while os.getppid() == sweep:
        time.sleep(_LOOK_EVERY)
    os._exit(1)
