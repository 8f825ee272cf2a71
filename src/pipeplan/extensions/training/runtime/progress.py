"""Places of all ranks in their schedule, and the progress of a run or a profile.

Places can be read from outside while a rank runs, so that error messages can name the op of a rank that died or hangs.
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


# Time, step, position and phase of a rank.
_PLACE = struct.Struct("<qiii")
_SLOT = 64
"""Bytes per rank: one cache line."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Place of a rank: the step, the cell of its row, and since when, in nanoseconds of its host's monotonic clock."""

    since: int
    step: int
    position: int
    phase: Phase

    def describe(self, schedule: Schedule, rank: int) -> str:
        """Describe the place with the op in the schedule's notation: ``rank 1, step 0, op 3 (1F1), computing``."""
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
    """Places of all ranks, in memory or in a file that the ranks of a host share with their launcher."""

    def __init__(self, ranks: int, path: Path | None = None) -> None:
        self._ranks = ranks
        self._memory: mmap.mmap | bytearray = bytearray(_SLOT * ranks)
        if path is not None:
            if not path.exists():
                path.write_bytes(self._memory)
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), _SLOT * ranks)

    def tell(self, rank: int, step: int, position: int, phase: Phase) -> None:
        """Record the current place of a rank."""
        _PLACE.pack_into(self._memory, _SLOT * rank, time.monotonic_ns(), step, position, phase)

    def of(self, rank: int) -> RankPlace:
        """Return the last recorded place of a rank."""
        since, step, position, phase = _PLACE.unpack_from(self._memory, _SLOT * rank)
        return RankPlace(since, step, position, Phase(phase))

    def all(self) -> tuple[RankPlace, ...]:
        """Return the places of all ranks."""
        return tuple(self.of(rank) for rank in range(self._ranks))

    def stalled(self, timeout: float) -> bool:
        """Return whether no rank has moved for ``timeout`` seconds."""
        return time.monotonic_ns() - max(place.since for place in self.all()) > timeout * 1e9

    def rank_stalled(self, rank: int, timeout: float) -> bool:
        """Return whether a rank has not moved for ``timeout`` seconds."""
        return time.monotonic_ns() - self.of(rank).since > timeout * 1e9


EVERY = 0.5
"""Seconds between two reports: drawing the progress takes time from the ranks that are measured."""

Doing = Literal["starting up", "round", "trial step", "warm-up", "step"]
"""Current activity: start-up; rounds of a profile, and the trial steps after them; steps of a run."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """Progress of all ranks together.

    Attributes
    ----------
    doing
        Current activity.
    number, count
        Number of the current round or step of this activity, from 1, and their total.
    done, work
        Finished rounds or steps of all activities, with a fraction, and their total.
    """

    doing: Doing
    number: int
    count: int
    done: float
    work: float


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run or a profile, as a listener receives it.

    Attributes
    ----------
    doing, number, count
        Current activity, the number of its round or step, and their total.
    share
        Share of all work that is done, from 0 to 1.
    seconds
        Time since the ranks began to work; 0 while they start up.
    each
        Mean time of a round or step so far, in seconds, including the time between them; None before the first is done.
    """

    doing: Doing
    number: int
    count: int
    share: float
    seconds: float
    each: float | None

    @property
    def seconds_left(self) -> float | None:
        """Return the remaining seconds at the current pace; None before the first round or step is done."""
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
    """Convert the places of ranks to progress, and report it at most twice a second.

    Parameters
    ----------
    report
        Function that receives the progress.
    how_far
        Function that computes the progress from the places.
    clock
        Function that returns the time in seconds.
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
        """Report the progress if the last report is old enough."""
        now = self._clock()
        if now - self._reported < EVERY:
            return
        self._reported = now
        # The pace counts from when the ranks begin to work, not from their start-up.
        far = self._how_far(places)
        if self._begun is None and far.doing != "starting up":
            self._begun = now
        seconds = 0.0 if self._begun is None else now - self._begun
        pace = seconds / far.done if far.done >= 1 and seconds > 0 else None
        self._report(RunProgress(far.doing, far.number, far.count, min(far.done / far.work, 1.0), seconds, pace))


def starting(places: Sequence[RankPlace]) -> bool:
    """Return whether any rank is still starting up."""
    return any(place.phase == Phase.STARTING for place in places)
