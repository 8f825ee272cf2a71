"""The sweep: draws tasks as workers become free, keeps what is finished, and starts again what was lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import ExitStack, closing
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from pipeplan.errors import FormatError, InputError, RunError
from pipeplan.sweeps.batching import BatchSize, in_equal_parts
from pipeplan.sweeps.identity import identity
from pipeplan.sweeps.pool import Batch, Ended, Pool, ThisProcess
from pipeplan.sweeps.store import Row, Store
from pipeplan.sweeps.task import Failure, Finished, Listener, Progress, Task

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")

_DEATHS_IN_A_ROW = 12
"""Workers that die one after the other without finishing anything: then it is not the tasks."""


def sweep(
    function: Callable[[Payload], Answer],
    tasks: Iterable[Task[Payload]],
    *,
    answer: type[Answer],
    asked: Mapping[str, object],
    workers: int = 1,
    dask: str | None = None,
    store: Path | None = None,
    seconds: float | None = None,
    progress: Listener | None = None,
) -> Generator[Finished[Answer], None, None]:
    """Call a function for many payloads, on one process, many, or a cluster; gives what is finished as it comes.

    With one worker tasks are done here and in their order. Otherwise they are sent in batches of about a tenth of a second,
    and end in any order. ``tasks`` is drawn from as workers become free, in the caller's thread: an iterator may look at
    what is finished so far, and leave out what need not be done any more. One that has nothing for now may stop; it is
    asked again as long as tasks are under way. Whoever stops early closes the iterator (``contextlib.closing``, or leaves
    the loop that holds it alone), which ends the workers.

    A task whose worker dies is done again, alone, once the others are done; if its worker dies then too, it is a failure.

    Parameters
    ----------
    function
        Of a module, or a ``functools.partial`` of one, so that workers can import it. What it raises is a failure of that
        task alone.
    tasks
        What to do. A key that was drawn before is passed over.
    answer
        What the function gives, for reading it back from JSON: a type that msgspec knows, such as a dataclass of plain
        values. Numbers must be finite.
    asked
        All that answers depend on beside the keys, as plain values. A store of another question is refused.
    workers
        Processes; not looked at with ``dask``, and one in a process that may have no children.
    dask
        The address of a Dask scheduler, whose workers do the tasks.
    store
        A file that keeps what is finished; what it holds is not done again. It is made where there is none.
    seconds
        After so many no task is begun; those under way are waited for.
    progress
        Called after each batch.

    Raises
    ------
    InputError
        For less than one worker, a store that cannot be used or cannot take more, a scheduler that cannot be reached.
    FormatError
        For a file that is no store.
    MissingExtraError
        For ``dask`` without the package ``distributed``.
    RunError
        If the cluster was lost, or workers die whatever they do.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}", field="workers")
    if seconds is not None and not seconds >= 0:
        raise InputError(f"a budget is at least 0, not {seconds} seconds", field="seconds")
    return _run(
        function,
        tasks,
        answer,
        asked=identity(asked),
        workers=workers,
        dask=dask,
        path=store,
        seconds=seconds,
        progress=progress,
    )


def _run(
    function: Callable[[Any], Any],
    tasks: Iterable[Task[Any]],
    answer: type[Answer],
    *,
    asked: str,
    workers: int,
    dask: str | None,
    path: Path | None,
    seconds: float | None,
    progress: Listener | None,
) -> Generator[Finished[Answer], None, None]:
    with ExitStack() as stack:
        store = None if path is None else stack.enter_context(closing(Store(path, asked)))
        pool = stack.enter_context(closing(_pool(function, workers, dask)))
        yield from _Sweep(tasks, answer, pool, store, seconds=seconds, progress=progress).results()


def _pool(function: Callable[[Any], Any], workers: int, dask: str | None) -> Pool:
    """The workers; what one sort of them needs is loaded for it alone."""
    if dask is not None:
        from pipeplan.sweeps.cluster import Cluster

        return Cluster(function, dask)
    # A daemon, such as a process of a server, may have no children: it does the work itself.
    if workers == 1 or current_process().daemon:
        return ThisProcess(function)
    from pipeplan.sweeps.processes import Processes

    return Processes(function, workers)


class _Sweep(Generic[Answer]):
    """A sweep while it runs."""

    def __init__(
        self,
        tasks: Iterable[Task[Any]],
        answer: type[Answer],
        pool: Pool,
        store: Store | None,
        *,
        seconds: float | None,
        progress: Listener | None,
    ) -> None:
        self._tasks = iter(tasks)
        self._total = len(tasks) if isinstance(tasks, Sized) else None
        self._decoder = msgspec.json.Decoder(answer)
        self._pool = pool
        self._store = store
        self._begin = time.monotonic()
        self._seconds = float("inf") if seconds is None else seconds
        self._progress = progress
        self._size = BatchSize()
        self._drawn: set[str] = set()
        self._again: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()
        self._suspect: Batch | None = None
        self._under_way = 0
        self._deaths = 0
        self._counts: Counter[str] = Counter()

    def results(self) -> Iterator[Finished[Answer]]:
        """What is finished, as it comes."""
        while True:
            yield from self._hand_over()
            if not self._under_way:
                return
            for ended in self._pool.ended():
                self._under_way -= 1
                yield from self._taken(ended)
            self._report()

    def _hand_over(self) -> Iterator[Finished[Answer]]:
        """Give the workers as much as keeps them busy; what the store holds is finished at once."""
        while (free := self._room - self._under_way) > 0 and time.monotonic() - self._begin < self._seconds:
            if self._again:
                self._submit(self._again.popleft())
                continue
            drawn: list[Task[Any]] = []
            yield from self._draw(drawn, free)
            if drawn:
                # Where there are few, every worker has some.
                for batch in in_equal_parts(drawn, free):
                    self._submit(Batch(tuple(batch)))
            elif self._suspects and not self._under_way:
                self._suspect = self._suspects.popleft()
                self._submit(self._suspect)
            else:
                return

    def _submit(self, batch: Batch) -> None:
        self._pool.submit(batch)
        self._under_way += 1

    @property
    def _room(self) -> int:
        """Batches under way: short ones wait in line behind a worker, long ones for the worker that is free first."""
        return self._pool.workers * (1 + (self._pool.ahead if self._size.now > 1 else 0))

    def _draw(self, drawn: list[Task[Any]], batches: int) -> Iterator[Finished[Answer]]:
        """Draw the tasks of so many batches."""
        size = self._size.now
        if self._total is not None:
            left = self._total - len(self._drawn)
            size = max(1, min(size, left // (2 * self._pool.workers)))
        for task in self._tasks:
            if task.key in self._drawn:
                continue
            self._drawn.add(task.key)
            row = None if self._store is None else self._store.get(task.key)
            if row is None:
                drawn.append(task)
                if len(drawn) == batches * size:
                    return
            else:
                yield self._finished(row, stored=True)

    def _taken(self, ended: Ended) -> Iterator[Finished[Answer]]:
        """Store what a batch gave, or do it again."""
        tasks = ended.batch.tasks
        if ended.outcomes is None:
            yield from self._lost(ended)
            return
        self._deaths = 0
        rows: list[Row] = [
            (task.key, outcome.text, outcome.failure, outcome.seconds)
            for task, outcome in zip(tasks, ended.outcomes, strict=True)
        ]
        if self._store is not None:
            self._store.put(row for row in rows if row[2] is None or row[2].kind == "refused")
        self._size.learn(len(tasks), sum(row[3] for row in rows), self._pool.batch_seconds)
        for row in rows:
            yield self._finished(row)

    def _lost(self, ended: Ended) -> Iterator[Finished[Answer]]:
        """The worker died: its tasks are done again one by one, so that the one at fault shows itself."""
        tasks = ended.batch.tasks
        if not ended.begun:
            self._again.append(ended.batch)
            return
        self._deaths += ended.batch is not self._suspect
        if self._deaths > max(_DEATHS_IN_A_ROW, 2 * self._pool.workers):
            raise RunError(
                f"{self._deaths} workers died one after the other without finishing a task, the last one at {tasks[0].key}; "
                "is there memory enough for so many of them?"
            )
        if len(tasks) > 1:
            self._again.extend(Batch((task,)) for task in tasks)
        elif ended.batch is not self._suspect:
            self._suspects.append(ended.batch)
        else:
            message = "its worker died, beside others and alone; perhaps there was no memory left"
            yield self._finished((tasks[0].key, None, Failure(kind="lost", error="WorkerDied", message=message), 0.0))

    def _finished(self, row: Row, *, stored: bool = False) -> Finished[Answer]:
        key, text, failure, seconds = row
        answer = None
        if text is not None:
            try:
                answer = self._decoder.decode(text)
            except msgspec.DecodeError as error:
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
            Progress(
                done=self._counts["done"],
                stored=self._counts["stored"],
                failed=self._counts["failed"],
                tasks=self._total,
                seconds=time.monotonic() - self._begin,
                workers=self._pool.workers,
            )
        )
