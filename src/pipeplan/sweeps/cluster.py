"""Workers of a cluster, by Dask's scheduler: it hands a batch whose worker died to another."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pipeplan import __version__
from pipeplan.errors import InputError, MissingExtraError, RunError
from pipeplan.sweeps.pool import Batch, Ended, Function
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

    def __init__(self, function: Function, address: str) -> None:
        self._function = function
        self._address = address
        self._client = _connected(address)
        self._batches: dict[Any, Batch] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._seen = time.monotonic()
        self._looked = -_LOOK_EVERY
        self._workers = 0
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_WITHIN)
        except TimeoutError:
            self.close()
            raise InputError(
                f"the scheduler at {address} has no workers; start some with: dask worker {address}", field="dask"
            ) from None
        self._look()

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
        if self._client.status == "running":
            self._workers = sum(self._client.nthreads().values())

    def submit(self, batch: Batch) -> None:
        """To the scheduler."""
        future = self._client.submit(work_on, self._function, batch.payloads, pure=False)
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
                raise RunError(
                    f"the scheduler at {self._address} {what}; what was finished stands in the store, if there is one"
                )

    def _ended(self, future: Any) -> Ended:
        from distributed import KilledWorker

        batch = self._batches.pop(future)
        try:
            return Ended(batch, future.result())
        except KilledWorker:
            return Ended(batch, None)
        except ImportError as error:
            raise InputError(
                f"a worker of {self._address} lacks what it is to do ({error}); install pipeplan {__version__} there",
                field="dask",
            ) from None
        except InputError:
            raise
        except Exception as error:
            raise RunError(f"the cluster at {self._address} gave up a task: {type(error).__name__}: {error}") from None

    def close(self) -> None:
        """Take back what is not done, and leave."""
        with _quiet():
            if self._client.status == "running":
                self._client.cancel(list(self._batches))
            self._client.close(timeout=CONNECT_WITHIN)


def _connected(address: str) -> Any:
    """A client of the scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("cluster", "distributed") from None
    where = {"address": address}
    if address.endswith(".json"):
        where = {"scheduler_file": address}
        if not Path(address).is_file():
            raise InputError(
                f"there is no scheduler's file {address}; give its address as tcp://HOST:PORT", field="dask"
            )
    try:
        with _quiet():
            return Client(**where, timeout=CONNECT_WITHIN, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = f"nothing answers within {CONNECT_WITHIN:g} s" if isinstance(error, OSError) else str(error)
        raise InputError(
            f"cannot reach a scheduler at {address}: {reason}; start one with: dask scheduler", field="dask"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """What goes wrong while coming and leaving is said once, by us."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
