"""Windows of time in which a rank must idle under its memory limit, as data: to be said, drawn, and found on a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeplan.model import tolerances

WindowKind = Literal["first", "trip", "last", "owed"]


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of time on a rank that are alike.

    Attributes
    ----------
    kind
        What bounds them: see :mod:`~pipeplan.simulation.round_trips`.
    count
        How many there are.
    length, work
        How long each is at least, and the most work that the rank can do in it, at most its length; in the least time
        that ops can take, in a pair or as part of a full backward.
    """

    kind: WindowKind
    count: int
    length: float
    work: float

    @property
    def idle(self) -> float:
        """How long the rank idles in each at least."""
        return self.length - self.work

    @property
    def binds(self) -> bool:
        """Whether the rank must idle in it."""
        return self.idle > tolerances.ROUNDING * self.length


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The windows of a rank that its limit keeps apart, and how long the rank is under way for them.

    Attributes
    ----------
    rank
        Whose they are.
    begin
        When the first microbatch can reach the rank: from here the first window lasts, and up to the end of the makespan
        the last. None for spans: there they are between the rank's own first start and last end.
    fit
        How many microbatches its limit holds at once: every so many there is a trip.
    length
        How long it is under way at least.
    windows
        In the order of time; none of no count.
    idle
        How long it idles in them all together at least. That is more than one by one where some weight backwards could fill
        any of them, but only one.
    """

    rank: int
    begin: float | None
    fit: int
    length: float
    windows: tuple[Window, ...]
    idle: float

    @property
    def binding(self) -> int:
        """In how many windows the rank must idle."""
        return sum(window.count for window in self.windows if window.binds)

    @property
    def reason(self) -> str:
        """What it says about the rank, as the reason of a bound."""
        if any(window.kind == "trip" and window.binds for window in self.windows):
            return f"rank {self.rank} idles in {self.binding} round trips that its limit keeps apart"
        if any(window.kind == "trip" for window in self.windows) and self.idle > self._one_by_one:
            return f"rank {self.rank} idles in round trips that its limit keeps apart"
        return f"the work of rank {self.rank}, which idles at both ends under its memory limit"

    @property
    def _one_by_one(self) -> float:
        idle = sum(window.count * window.idle for window in self.windows)
        return idle * (1 + tolerances.ROUNDING)
