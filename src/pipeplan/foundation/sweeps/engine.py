"""Run a sweep: draw tasks as workers become free, and store what is finished."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.sweeps.store import Store, identity
from pipeplan.foundation.sweeps.tasks import (
    Failure,
    Finished,
    ProgressListener,
    Row,
    SweepProgress,
    SweepTask,
    TaskRunner,
    started_workers,
)

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")


def sweep(
    function: Callable[[Payload], Answer],
    tasks: Iterable[SweepTask[Payload]],
    *,
    answer: type[Answer],
    asked: Mapping[str, object],
    workers: int = 1,
    store: Path | None = None,
    seconds: float | None = None,
    progress: ProgressListener | None = None,
) -> Generator[Finished[Answer], None, None]:
    """Call a function for many payloads in one process or many; yield results in order of completion.

    One worker is this process and runs tasks in their order. ``tasks`` is drawn from as workers become free, never while
    the caller's loop body runs: an iterator may look at what is finished so far and leave out what is no longer needed.
    It may stop while tasks are under way; it is asked again when they are finished. To stop early, close the generator
    (``contextlib.closing``), which ends the workers.

    Parameters
    ----------
    function
        Function of a module, or a ``functools.partial`` of one, so that workers can import it. An exception is a failure
        of that task alone.
    tasks
        Tasks to do. A repeated key is skipped.
    answer
        Type that the function returns, to read it back from JSON: a type that msgspec supports, such as a dataclass of
        plain values. Numbers must be finite.
    asked
        Everything that answers depend on apart from the keys, as plain values. A store of another sweep is refused.
    workers
        Number of processes; 1 in a process that may not have children or in which another sweep uses the processes. Within
        ``joblib.parallel_config(backend="dask")``, more than one are all workers of the Dask client.
    store
        File that keeps what is finished; its tasks are not run again. It is created if it does not exist.
    seconds
        Time after which no task is begun; those under way are finished.
    progress
        Function that is called after each task.

    Raises
    ------
    InputError
        If ``workers`` is below 1, or the store cannot be used or is full.
    FormatError
        If the file is not a store.
    RunError
        If a worker process dies or cannot be started.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}", field="workers")
    if seconds is not None and not seconds >= 0:
        raise InputError(f"a budget must be at least 0, not {seconds} seconds", field="seconds")

    def run() -> Generator[Finished[Answer], None, None]:
        with ExitStack() as stack:
            file = None if store is None else stack.enter_context(closing(Store(store, identity(asked))))
            pool = stack.enter_context(closing(started_workers(function, workers)))
            yield from _Sweep(tasks, answer, pool, file, seconds=seconds, progress=progress).results()

    return run()


class _Sweep(Generic[Answer]):
    """State of a running sweep.

    Workers draw tasks from another thread. The lock ``_turn`` is held by the thread of the sweep except while it waits
    for a result, so drawing never runs at the same time as the caller's code or the store.
    """

    def __init__(
        self,
        tasks: Iterable[SweepTask[Any]],
        answer: type[Answer],
        workers: TaskRunner,
        store: Store | None,
        *,
        seconds: float | None,
        progress: ProgressListener | None,
    ) -> None:
        self._tasks = iter(tasks)
        self._total = len(tasks) if isinstance(tasks, Sized) else None
        self._decoder = msgspec.json.Decoder(answer)
        self._workers = workers
        self._store = store
        self._begin = time.monotonic()
        self._seconds = float("inf") if seconds is None else seconds
        self._progress = progress
        self._turn = threading.Lock()
        self._stopped = False
        self._draw_error: BaseException | None = None
        self._drawn: set[str] = set()
        self._stored: deque[Row] = deque()
        self._counts: Counter[str] = Counter()

    def results(self) -> Iterator[Finished[Answer]]:
        """Yield results in order of completion."""
        with self._turn:
            drawn = -1
            # An iterator that paused is asked again once everything it gave is finished.
            while len(self._drawn) > drawn:
                drawn = len(self._drawn)
                yield from self._ran(self._draw())

    def _draw(self) -> Iterator[SweepTask[Any]]:
        """Draw new tasks, possibly in a thread of joblib. The sweep raises exceptions of ``tasks`` in its own thread."""
        try:
            while True:
                with self._turn:
                    over = self._stopped or time.monotonic() - self._begin >= self._seconds
                    task = None if over else self._next_task()
                if task is None:
                    return
                yield task
        except GeneratorExit:
            raise
        except BaseException as error:
            self._draw_error = error

    def _next_task(self) -> SweepTask[Any] | None:
        for task in self._tasks:
            # A repeated key is skipped; a key in the store is finished without running.
            if task.key in self._drawn:
                continue
            self._drawn.add(task.key)
            row = None if self._store is None else self._store.get(task.key)
            if row is None:
                return task
            self._stored.append(row)
        return None

    def _ran(self, tasks: Iterable[SweepTask[Any]]) -> Iterator[Finished[Answer]]:
        """Yield the results of tasks, and those that the store has of them."""
        rows = self._workers.run(tasks)
        try:
            while (row := self._next(rows)) is not None:
                yield from self._read_from_store()
                yield self._taken(row)
                self._report()
            yield from self._read_from_store()
        finally:
            self._stopped = True
            with self._without_turn():
                rows.close()
            self._stopped = False

    def _next(self, rows: Generator[Row, None, None]) -> Row | None:
        with self._without_turn():
            row = next(rows, None)
        if self._draw_error is not None:
            raise self._draw_error
        return row

    @contextmanager
    def _without_turn(self) -> Iterator[None]:
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def _taken(self, row: Row) -> Finished[Answer]:
        failure = row[2]
        if self._store is not None and (failure is None or failure.kind == "refused"):
            self._store.put(row)
        return self._finished(row)

    def _read_from_store(self) -> Iterator[Finished[Answer]]:
        while self._stored:
            yield self._finished(self._stored.popleft(), stored=True)
            self._report()

    def _finished(self, row: Row, *, stored: bool = False) -> Finished[Answer]:
        key, text, failure, seconds = row
        answer = None
        if text is not None:
            try:
                answer = self._decoder.decode(text)
            except msgspec.DecodeError as error:
                # Text that is not JSON can only be a damaged file; a value of another type is the function's fault.
                if stored and not isinstance(error, msgspec.ValidationError):
                    raise FormatError(f"the store is damaged ({error}); name another file", field="store") from None
                failure = Failure(
                    kind="failed", error="ValidationError", message=f"the answer is not of its type: {error}"
                )
        self._counts["done"] += 1
        self._counts["stored"] += stored
        self._counts["failed"] += failure is not None
        return Finished(key=key, answer=answer, failure=failure, stored=stored, seconds=seconds)

    def _report(self) -> None:
        if self._progress is None:
            return
        self._progress(
            SweepProgress(
                done=self._counts["done"],
                stored=self._counts["stored"],
                failed=self._counts["failed"],
                tasks=self._total,
                seconds=time.monotonic() - self._begin,
                workers=self._workers.count,
            )
        )
