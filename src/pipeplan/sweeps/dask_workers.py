"""Run the tasks of a sweep on the workers of a Dask scheduler.

This uses Dask's own client. joblib's ``dask`` backend (joblib 1.6) waits forever for a task that Dask gave up, for example
because it killed its workers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import msgspec

from pipeplan.errors import FormatError, InputError, MissingExtraError, RunError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.sweeps.records import Row, SweepTask
from pipeplan.sweeps.store import version
from pipeplan.sweeps.workers import TaskFunction, WorkerLost, run_task

CONNECT_SECONDS = 5.0
"""Time in which a scheduler must answer."""

WORKER_SECONDS = 60.0
"""Time that a sweep waits for a worker if the scheduler has none."""

RECONNECT_SECONDS = 15.0
"""Time in which a lost scheduler must be back."""

_POLL_SECONDS = 1.0
"""Time between two checks of the number of workers."""

_BATCH_SECONDS = 0.4
"""Duration of a batch of short tasks: a batch costs the scheduler about 10 ms."""

_BATCH_GROWTH = 4
"""Maximum ratio of the sizes of consecutive batches, because the first tasks may be unusually short."""


_Item = TypeVar("_Item")


class DaskWorkers:
    """Workers of a Dask scheduler.

    Parameters
    ----------
    function
        Function that the workers call. It must be importable on them.
    address
        ``tcp://HOST:PORT``, ``HOST:PORT``, or the ``.json`` file that the scheduler wrote for its workers.
    """

    blamed = 1  # Dask gives up only the batch that several dead workers had in common.

    def __init__(self, function: TaskFunction, address: str) -> None:
        self._function = function
        self._address = address
        self._threads = 0
        self._batch_size = 1
        self._done: SimpleQueue[Any] = SimpleQueue()
        with ExitStack() as leave:
            leave.enter_context(_quiet_loggers())
            self._client = _connected(address)
            leave.callback(self._client.close, timeout=CONNECT_SECONDS)
            self._require_workers()
            self._leave = leave.pop_all()
        self._count_threads()

    def _require_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {self._address} has no workers; start some with: dask worker {self._address}",
                field="dask",
            ) from None

    @property
    def count(self) -> int:
        """Number of threads of all workers."""
        return max(self._threads, 1)

    def run(self, tasks: Iterable[SweepTask[Any]], *, careful: bool = False) -> Generator[Row, None, None]:
        """Yield results in order of completion."""
        drawn = iter(tasks)
        under_way: set[Any] = set()
        gave_up = False
        try:
            while self._submit(drawn, under_way, careful=careful):
                future = self._next_done()
                under_way.remove(future)
                rows = self._rows(future)
                gave_up = gave_up or rows is None
                yield from rows or ()
        finally:
            if under_way and self._client.status == "running":
                self._client.cancel(list(under_way))
        if gave_up:
            raise WorkerLost

    def _submit(self, tasks: Iterator[SweepTask[Any]], under_way: set[Any], *, careful: bool) -> bool:
        """Keep two batches per thread under way. Return whether any is."""
        room = (1 if careful or self._batch_size == 1 else 2) * self.count - len(under_way)
        size = 1 if careful else self._batch_size
        drawn = list(islice(tasks, room * size)) if room > 0 else []
        for batch in _in_equal_parts(drawn, room):
            # pure=False: equal tasks of two sweeps are two tasks.
            future = self._client.submit(_run_batch, self._function, batch, version(), pure=False)
            under_way.add(future)
            future.add_done_callback(self._done.put)
        return bool(under_way)

    def _next_done(self) -> Any:
        """Wait for the next future that is done, as long as the scheduler and a worker are there."""
        seen = time.monotonic()
        while True:
            with suppress(Empty):
                return self._done.get(timeout=_POLL_SECONDS)
            self._count_threads()
            now = time.monotonic()
            connected = self._client.status == "running"
            if connected and self._threads:
                seen = now
            elif now - seen > (WORKER_SECONDS if connected else RECONNECT_SECONDS):
                reason = "has lost all its workers" if connected else "does not answer any more"
                raise RunError(f"the scheduler at {self._address} {reason}; a store keeps what was finished")

    def _count_threads(self) -> None:
        # If the scheduler has just gone, the next check of the client's status notices.
        with suppress(OSError):
            if self._client.status == "running":
                self._threads = sum(self._client.nthreads().values())

    def _rows(self, future: Any) -> list[Row] | None:
        """Return the results of a batch; None if it was abandoned."""
        from distributed import KilledWorker

        try:
            rows: list[Row] = future.result()
        except KilledWorker:
            return None
        except InputError:
            raise
        except Exception as error:
            # If the scheduler cannot unpickle a task, the ImportError is the cause of its own exception.
            for reason in (error, error.__cause__):
                if isinstance(reason, ImportError):
                    raise InputError(
                        f"the cluster at {self._address} lacks the function of the sweep ({reason}); install pipeplan "
                        f"{version()} on its scheduler and workers",
                        field="dask",
                    ) from None
            raise RunError(
                f"the cluster at {self._address} could not finish a task ({type(error).__name__}: {_first_line(error)}); "
                "a store keeps what was finished"
            ) from None
        mean = sum(row[3] for row in rows) / len(rows)
        fitting = int(_BATCH_SECONDS / mean) if mean else 2 * self._batch_size
        self._batch_size = max(1, min(fitting, _BATCH_GROWTH * self._batch_size))
        return rows

    def close(self) -> None:
        """Disconnect from the scheduler."""
        self._leave.close()


def _run_batch(function: TaskFunction, batch: Sequence[SweepTask[Any]], sweep_version: str) -> list[Row]:
    if sweep_version != version():
        raise InputError(
            f"the worker has pipeplan {version()}, and the sweep has {sweep_version}; install one version on both",
            field="dask",
        )
    return [run_task(function, task) for task in batch]


def _in_equal_parts(tasks: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    """Yield at most ``most`` parts of about equal length, so that every worker gets one of the last tasks."""
    parts = min(most, len(tasks))
    for part in range(parts):
        yield tasks[part * len(tasks) // parts : (part + 1) * len(tasks) // parts]


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("cluster", "distributed") from None
    if address.endswith(".json"):
        address = _address_in(Path(address))
    try:
        # A client without a scheduler logs errors while it is closed, so a plain connection is tried first. It needs an
        # event loop; the caller's thread may have a running one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _connect_once(address)).result()
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        reason = f"nothing answers within {CONNECT_SECONDS:g} s" if isinstance(error, OSError) else _first_line(error)
        raise InputError(
            f"cannot reach a scheduler at '{address}': {reason}; start one with: dask scheduler", field="dask"
        ) from None


async def _connect_once(address: str) -> None:
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=CONNECT_SECONDS, **Security().get_connection_args("client"))
    await comm.close()


def _address_in(path: Path) -> str:
    try:
        return msgspec.json.decode(
            read_text(path, limit=MEBIBYTE, what="scheduler's file"), type=_SchedulerFile
        ).address
    except msgspec.MsgspecError:
        raise FormatError(f"{path} is not a Dask scheduler file: it has no address", field="dask") from None


class _SchedulerFile(msgspec.Struct):
    address: str


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Silence Dask's logging: the sweep replaces workers that leave, and reports in one message what ends it."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
