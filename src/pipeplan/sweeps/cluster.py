"""Workers of a cluster, by Dask's scheduler: it hands a batch whose worker died to another."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from pipeplan.errors import FormatError, InputError, MissingExtraError, RunError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.sweeps.pool import Batch, Ended, Function
from pipeplan.sweeps.version import version
from pipeplan.sweeps.work import work_on

CONNECT_WITHIN = 5.0
"""Seconds in which a scheduler answers, or is taken to be absent."""

WORKERS_WITHIN = 60.0
"""Seconds that a sweep waits for a worker where the scheduler has none, at its begin and later."""

BACK_WITHIN = 15.0
"""Seconds in which a scheduler that was lost must be back."""

_LOOK_EVERY = 1.0
"""Seconds between two looks at how many workers there are."""


class Cluster:
    """The workers of a scheduler.

    Parameters
    ----------
    address
        ``tcp://HOST:PORT``, ``HOST:PORT``, or the ``.json`` file that the scheduler wrote for its workers.

    Raises
    ------
    InputError
        If nothing answers there, or no worker joins.
    MissingExtraError
        Without the package ``distributed``.
    """

    ahead = 1

    def __init__(self, function: Function, address: str) -> None:
        self._function = function
        self._address = address
        self._batches: dict[Any, Batch] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._seen = time.monotonic()
        self._looked = float("-inf")
        self._workers = 0
        self._leave = ExitStack()
        with ExitStack() as leave:
            leave.enter_context(_quiet())
            self._client = _connected(address)
            leave.callback(self._client.close, timeout=CONNECT_WITHIN)
            self._require_workers()
            self._leave = leave.pop_all()

    def _require_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_WITHIN)
        except TimeoutError:
            raise InputError(
                f"the scheduler at {self._address} has no workers; start some with: dask worker {self._address}",
                field="dask",
            ) from None

    @property
    def workers(self) -> int:
        """Threads of all workers, as of a moment ago."""
        if time.monotonic() - self._looked >= _LOOK_EVERY:
            self._look()
        return max(self._workers, 1)

    @property
    def batch_seconds(self) -> float:
        """A batch passes the scheduler twice, in about 10 ms, one after the other."""
        return max(0.4, 0.02 * self._workers)

    def _look(self) -> None:
        self._looked = time.monotonic()
        # A scheduler that goes away just now is noticed where its batches are waited for.
        with suppress(OSError):
            if self._client.status == "running":
                self._workers = sum(self._client.nthreads().values())

    def submit(self, batch: Batch) -> None:
        """To the scheduler."""
        future = self._client.submit(work_on, self._function, batch.payloads, version(), pure=False)
        self._batches[future] = batch
        future.add_done_callback(self._done.put)

    def ended(self) -> list[Ended]:
        """Those that have ended since the last call.

        Raises
        ------
        RunError
            If the scheduler is gone, or all workers are and no other joins.
        InputError
            If a worker cannot do the work: it has no pipeplan, or another version of it.
        """
        if not self._batches:
            return []
        found = [self._next()]
        while not self._done.empty():
            found.append(self._done.get())
        return [self._ended(future) for future in found]

    def _next(self) -> Any:
        """The next future that is done; meanwhile it is looked at whether there is hope."""
        self._seen = time.monotonic()
        while True:
            try:
                return self._done.get(timeout=_LOOK_EVERY)
            except Empty:
                self._look()
            now = time.monotonic()
            connected = self._client.status == "running"
            if connected and self._workers:
                self._seen = now
            elif now - self._seen > (WORKERS_WITHIN if connected else BACK_WITHIN):
                what = "has lost all its workers" if connected else "does not answer any more"
                raise RunError(f"the scheduler at {self._address} {what}; a store keeps what was finished")

    def _ended(self, future: Any) -> Ended:
        from distributed import KilledWorker

        batch = self._batches.pop(future)
        try:
            return Ended(batch, future.result())
        except KilledWorker:
            return Ended(batch, None)
        except InputError:
            raise
        except Exception as error:
            # What the scheduler cannot read, it says so in an error of its own.
            for reason in (error, error.__cause__):
                if isinstance(reason, ImportError):
                    raise InputError(
                        f"the cluster at {self._address} lacks what it is to do ({reason}); install pipeplan "
                        f"{version()} where its scheduler and workers run",
                        field="dask",
                    ) from None
            raise RunError(
                f"the cluster at {self._address} gave up a task ({type(error).__name__}: {_first_line(error)}); "
                "a store keeps what was finished"
            ) from None

    def close(self) -> None:
        """Take back what is not done, and leave."""
        with self._leave:
            if self._client.status == "running":
                self._client.cancel(list(self._batches))


def _connected(address: str) -> Any:
    """A client of the scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("cluster", "distributed") from None
    if address.endswith(".json"):
        address = _address_in(Path(address))
    try:
        # A client that finds nothing cannot be taken down quietly, so it is made where something answers.
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(asyncio.run, _greet(address)).result()
        return Client(address, timeout=CONNECT_WITHIN, set_as_default=False)
    except Exception as error:
        reason = f"nothing answers within {CONNECT_WITHIN:g} s" if isinstance(error, OSError) else _first_line(error)
        raise InputError(
            f"cannot reach a scheduler at '{address}': {reason}; start one with: dask scheduler", field="dask"
        ) from None


async def _greet(address: str) -> None:
    """Raises whatever a connection does if no scheduler is there."""
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=CONNECT_WITHIN, **Security().get_connection_args("client"))
    await comm.close()


def _address_in(path: Path) -> str:
    """The address in the file that a scheduler writes for its workers."""
    try:
        return msgspec.json.decode(
            read_text(path, limit=MEBIBYTE, what="scheduler's file"), type=_SchedulerFile
        ).address
    except msgspec.MsgspecError:
        raise FormatError(f"{path} is no file that a scheduler wrote: it has no address", field="dask") from None


class _SchedulerFile(msgspec.Struct):
    address: str


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Workers that come and go are the sweep's business; what ends it is said once, by us."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
