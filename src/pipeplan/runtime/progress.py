"""How far a run or a profile is, from where its ranks say they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeplan.runtime.places import Phase, Place

EVERY = 0.5
"""Seconds between two reports: looking takes next to nothing from what is measured, drawing takes more."""

Doing = Literal["starting up", "round", "trial step", "warm-up", "step"]
"""What is being done: imports and models; rounds of a profile, and the steps behind them; steps of a run."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """How much of the work is done.

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
    """What a run or a profile says while it goes on.

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
        """What is left at the same pace; None before there is one."""
        return None if self.each is None or self.share <= 0 else self.seconds * (1 - self.share) / self.share

    def __str__(self) -> str:
        if self.doing == "starting up":
            return "starting up"
        said = f"{self.doing} {self.number} of {self.count}"
        if self.each is None:
            return said
        pace = f"{self.each * 1e3:.3g} ms" if self.each < 1 else f"{self.each:.3g} s"
        return f"{said}, about {pace} each"


Report = Callable[[RunProgress], None]


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
        report: Report,
        how_far: Callable[[Sequence[Place]], HowFar],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._how_far, self._clock = report, how_far, clock
        self._begun: float | None = None
        self._reported = -EVERY

    def __call__(self, places: Sequence[Place]) -> None:
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


def starting(places: Sequence[Place]) -> bool:
    """Whether any rank still starts up."""
    return any(place.phase == Phase.STARTING for place in places)
