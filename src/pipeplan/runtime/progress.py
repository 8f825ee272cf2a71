"""Where every rank is, and how far a run or a profile is.

Places can be read from outside while a rank runs, so that a rank that dies or hangs can be named with its op.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Literal

from pipeplan.model import Schedule, format_cells


class Phase(IntEnum):
    """The activity of a rank."""

    STARTING = 0
    WAITING = 1
    COMPUTING = 2
    BETWEEN_STEPS = 3
    DONE = 4


_PLACE = struct.Struct("<qiii")
_SLOT = 64
"""Bytes per rank: a cache line of its own."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """The place of a rank: since when (its host's monotonic clock, ns), in which step, at which cell of its row."""

    since: int
    step: int
    position: int
    phase: Phase

    def describe(self, schedule: Schedule, rank: int) -> str:
        """``rank 1, step 0, op 3 (1F1), computing``; the op in the schedule's notation."""
        if self.phase == Phase.STARTING:
            return f"rank {rank}, starting up"
        if self.phase == Phase.DONE:
            return f"rank {rank}, done"
        cells = format_cells(schedule[rank])
        if self.phase == Phase.BETWEEN_STEPS or self.position >= len(cells):
            return f"rank {rank}, at the end of step {self.step}"
        doing = "waiting for its turn or a message" if self.phase == Phase.WAITING else "computing"
        return f"rank {rank}, step {self.step}, op {self.position} ({cells[self.position]}), {doing}"


class Places:
    """The place of every rank, in memory or in a file that the ranks of a host share with their launcher."""

    def __init__(self, ranks: int, path: Path | None = None) -> None:
        self._ranks = ranks
        self._memory: mmap.mmap | bytearray = bytearray(_SLOT * ranks)
        if path is not None:
            if not path.exists():
                path.write_bytes(self._memory)
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), _SLOT * ranks)

    def tell(self, rank: int, step: int, position: int, phase: Phase) -> None:
        """Record where a rank is now."""
        _PLACE.pack_into(self._memory, _SLOT * rank, time.monotonic_ns(), step, position, phase)

    def of(self, rank: int) -> RankPlace:
        """Return where a rank last said it was."""
        since, step, position, phase = _PLACE.unpack_from(self._memory, _SLOT * rank)
        return RankPlace(since, step, position, Phase(phase))

    def all(self) -> tuple[RankPlace, ...]:
        """Return where all ranks are."""
        return tuple(self.of(rank) for rank in range(self._ranks))

    def stalled(self, timeout: float) -> bool:
        """Whether no rank has moved for that many seconds."""
        return time.monotonic_ns() - max(place.since for place in self.all()) > timeout * 1e9

    def rank_stalled(self, rank: int, timeout: float) -> bool:
        """Whether one rank has not moved for that many seconds."""
        return time.monotonic_ns() - self.of(rank).since > timeout * 1e9


EVERY = 0.5
"""Seconds between two reports: looking takes next to nothing from what is measured, drawing takes more."""

Doing = Literal["starting up", "round", "trial step", "warm-up", "step"]
"""What is being done: imports and models; rounds of a profile, and the steps behind them; steps of a run."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """The share of the work that is done.

    Attributes
    ----------
    doing
        What all ranks have come to.
    number, count
        Which round or step of that, from 1, and of how many.
    done, work
        How many rounds or steps of all there are were done, with a fraction, and how many there are.
    """

    doing: Doing
    number: int
    count: int
    done: float
    work: float


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A report of a run or a profile while it goes on.

    Attributes
    ----------
    doing, number, count
        As in :class:`HowFar`.
    share
        How much of all is done, from 0 to 1.
    seconds
        Since the first rank began to work; 0 while all start up.
    each
        Seconds of a round or step so far, on average, with what lies between them; None before there is one.
    """

    doing: Doing
    number: int
    count: int
    share: float
    seconds: float
    each: float | None

    @property
    def seconds_left(self) -> float | None:
        """Seconds that are left at the same pace; None before there is one."""
        return None if self.each is None or self.share <= 0 else self.seconds * (1 - self.share) / self.share

    def __str__(self) -> str:
        if self.doing == "starting up":
            return "starting up"
        step = f"{self.doing} {self.number} of {self.count}"
        if self.each is None:
            return step
        pace = f"{self.each * 1e3:.3g} ms" if self.each < 1 else f"{self.each:.3g} s"
        return f"{step}, about {pace} each"


ProgressListener = Callable[[RunProgress], None]


class Watcher:
    """Looks where ranks are, and reports how far they have come, at most twice a second.

    Parameters
    ----------
    report
        Told how far they are.
    how_far
        What their places mean.
    clock
        Gives the time in seconds.
    """

    def __init__(
        self,
        report: ProgressListener,
        how_far: Callable[[Sequence[RankPlace]], HowFar],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._how_far, self._clock = report, how_far, clock
        self._begun: float | None = None
        self._reported = -EVERY

    def __call__(self, places: Sequence[RankPlace]) -> None:
        """Look, and report where it is time to."""
        now = self._clock()
        if now - self._reported < EVERY:
            return
        self._reported = now
        far = self._how_far(places)
        if self._begun is None and far.doing != "starting up":
            self._begun = now
        seconds = 0.0 if self._begun is None else now - self._begun
        each = seconds / far.done if far.done >= 1 and seconds > 0 else None
        self._report(RunProgress(far.doing, far.number, far.count, min(far.done / far.work, 1.0), seconds, each))


def starting(places: Sequence[RankPlace]) -> bool:
    """Whether any rank still starts up."""
    return any(place.phase == Phase.STARTING for place in places)
