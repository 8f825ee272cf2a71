"""Ends this process when it hangs: for ranks of a job that somebody else started, which no launcher of ours watches."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pipeplan.runtime.launch import patience
from pipeplan.runtime.places import Phase, Place, Places

EXIT_CODE = 1


@contextmanager
def watchdog(
    places: Places,
    rank: int,
    timeout: float,
    describe: Callable[[], str],
    watcher: Callable[[Sequence[Place]], None] | None = None,
) -> Iterator[None]:
    """While the block runs, end the process if its rank makes no progress for ``timeout`` seconds.

    A waiting rank is given twice that, so that the rank it waits for is named first. ``watcher`` is told now and then where
    the rank is.
    """
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(min(1.0, timeout / 4)):
            place = places.of(rank)
            if watcher is not None:
                watcher([place])
            limit = patience([place], 2 * timeout if place.phase == Phase.WAITING else timeout)
            if places.rank_stalled(rank, limit):
                print(f"pipeplan: no progress for {limit:g} s: {describe()}", file=sys.stderr, flush=True)
                os._exit(EXIT_CODE)

    thread = threading.Thread(target=watch, name="pipeplan watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
