"""Gives cases to workers for as long as is asked for, each suite its share of the time."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from tests.torture import box
from tests.torture.suite import Suite
from tests.torture.tally import Tally, reproducing
from tests.torture.worker import Verdict, Worker

_GRACE = 10.0
"""Seconds beyond the time that is given in which cases may end; what still runs then is ended, and is no finding."""


@dataclass(frozen=True)
class Asked:
    """How long, how much, where.

    Attributes
    ----------
    module
        Where the suites are.
    seconds
        Time after which no case is begun; None for no end.
    cases
        Cases of each suite; None for no end.
    seed
        Of the first case of each suite; the others follow.
    workers
        Processes.
    folder
        The box; a temporary one, removed at the end, where None.
    keep
        Whether folders of cases that found something stay.
    watched
        Folders in which nothing may change.
    """

    module: str
    seconds: float | None
    cases: int | None
    seed: int = 0
    workers: int = 2
    folder: Path | None = None
    keep: bool = False
    watched: tuple[Path, ...] = ()


def run(suites: Sequence[Suite], asked: Asked, tell: Callable[[str], None] = print) -> Tally:
    """Try cases; each finding of a new kind is told at once. Ctrl-C ends it with what is known so far, as SIGTERM does."""
    tally = Tally(suites)
    with ended_as_by_ctrl_c(), _box(asked) as home:
        before = box.listing(asked.watched)
        turns = Turns([suite for suite in suites if suite.needs() is None], asked, tally)
        workers = [Worker(asked.module, home / f"worker-{number}", home / "kernels") for number in range(asked.workers)]
        progress = _Progress()
        try:
            for verdict, folder in _verdicts(workers, turns):
                if tally.add(verdict):
                    tell(reproducing(verdict))
                if verdict.fault is None or not asked.keep:
                    box.remove(folder)
                progress.show(tally, turns)
        except KeyboardInterrupt:
            print("\nended before its time", file=sys.stderr)
        finally:
            for worker in workers:
                worker.end()
                if worker.at is not None:
                    tally.cut(worker.at[0])
                    box.remove(worker.folder(*worker.at[:2]))
        for path in box.written_outside(before, box.listing(asked.watched)):
            tally.note(f"{path} was written, which is outside the box")
    return tally


class Turns:
    """Whose turn it is: of the suites that have cases left, the one that has had the least of its share of the time."""

    def __init__(self, suites: Sequence[Suite], asked: Asked, tally: Tally) -> None:
        self._next = {suite.name: asked.seed for suite in suites}
        self._suites, self._asked, self._tally = suites, asked, tally
        self.since = time.monotonic()

    def next(self, busy: Sequence[Suite]) -> tuple[Suite, int] | None:
        """A case to begin beside those of ``busy``; None where none may be now, or none is left."""
        if self.over or any(suite.cores > 1 for suite in busy):
            return None
        left = [suite for suite in self._suites if self._left(suite)]
        if not left:
            return None
        suite = min(left, key=lambda each: self._had(each, busy))
        if suite.cores > 1 and busy:
            return None
        seed = self._next[suite.name]
        self._next[suite.name] += 1
        return suite, seed

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._asked.seconds is not None and time.monotonic() - self.since >= self._asked.seconds

    @property
    def long_over(self) -> bool:
        """Whether no case is waited for any more."""
        return self._asked.seconds is not None and time.monotonic() - self.since >= self._asked.seconds + _GRACE

    @property
    def limits(self) -> str:
        """What ends it, in words."""
        return "" if self._asked.seconds is None else f" of {self._asked.seconds:.0f}"

    def _left(self, suite: Suite) -> bool:
        return self._asked.cases is None or self._next[suite.name] < self._asked.seed + self._asked.cases

    def _had(self, suite: Suite, busy: Sequence[Suite]) -> tuple[bool, float, int]:
        """Its time over its share, then how often it was begun: each has its first turn early.

        Whose first case has not ended comes last: nobody knows yet how long its cases take, and compiling may be part of it.
        """
        begun = self._next[suite.name] - self._asked.seed
        ended = begun - busy.count(suite)
        mean = self._tally.seconds(suite.name) / max(ended, 1)
        had = (self._tally.seconds(suite.name) + mean * busy.count(suite)) * suite.cores / suite.share
        return begun > 0 and ended == 0, had, begun


def _verdicts(workers: Sequence[Worker], turns: Turns) -> Iterator[tuple[Verdict, Path]]:
    """Every case's verdict and folder, as they come."""
    while True:
        for worker in workers:
            if worker.at is None:
                busy = [each.at[0] for each in workers if each.at is not None]
                if (case := turns.next(busy)) is not None:
                    worker.begin(*case)
        at_work = [worker for worker in workers if worker.at is not None]
        if not at_work or turns.long_over:
            return
        wait([worker.connection for worker in at_work], timeout=0.5)
        for worker in at_work:
            assert worker.at is not None
            folder = worker.folder(*worker.at[:2])
            if (verdict := worker.verdict()) is not None:
                yield verdict, folder


@contextmanager
def _box(asked: Asked) -> Iterator[Path]:
    """The box; it stays where findings are to be kept, or where it was named."""
    if asked.folder is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
        yield asked.folder.resolve()
        return
    box.remove_dead()
    home = Path(tempfile.mkdtemp(prefix=box.PREFIX)).resolve()
    with box.held(home):
        try:
            yield home
        finally:
            box.end_processes(home)
            if not asked.keep:
                box.remove(home)
    if asked.keep:
        print(f"kept: {home}", file=sys.stderr)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Whoever asks for the end gets the table, and nothing stays behind; outside the main thread nothing changes."""
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_IGN:  # as nohup wants it
                    continue
                stack.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
        yield


class _Progress:
    """A line on stderr: over itself in a terminal, now and then elsewhere."""

    def __init__(self) -> None:
        self._every = 0.2 if sys.stderr.isatty() else 60.0
        self._last = time.monotonic()

    def show(self, tally: Tally, turns: Turns) -> None:
        """Say how far it has come, where that was not said just now."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            start, end = ("\r", " ") if sys.stderr.isatty() else ("", "\n")
            text = f"{now - turns.since:.0f}{turns.limits} s, {tally.cases:,} cases, {tally.found} found"
            print(start + text, end=end, file=sys.stderr, flush=True)
