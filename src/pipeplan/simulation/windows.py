"""Windows of time in which a rank must idle under its memory limit, as data: to be said, drawn, and found on a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import Floats, Ints, Kind, Timeline, among, tolerances
from pipeplan.simulation.chain import compute_only, lost

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


@dataclass(frozen=True, slots=True)
class LocatedWindow:
    """A window of time on a rank of a timeline.

    Attributes
    ----------
    window
        What it is one of.
    start, end
        Where it is on the timeline.
    idle
        How long the rank idles in it.
    """

    window: Window
    start: float
    end: float
    idle: float


def located_windows(timeline: Timeline, trips: RoundTrips, costs: Costs | None = None) -> tuple[LocatedWindow, ...]:
    """The windows of a rank on a timeline that is within the rank's limit, in the order of time.

    Parameters
    ----------
    costs
        What the timeline was simulated on, for what its ops lose before and behind them.
    """
    return tuple(_located(_RankTimes(compute_only(timeline), trips.rank, costs), trips))


class _RankTimes:
    """When a rank's microbatches enter and leave its last stage, and when it works; arrays in the order of time."""

    def __init__(self, timeline: Timeline, rank: int, costs: Costs | None) -> None:
        schedule, columns = timeline.schedule, timeline.schedule.columns
        before, behind = lost(schedule, costs)
        row = slice(*schedule.offsets[rank : rank + 2].tolist())
        self.start: Floats = (timeline.start - before)[row]
        self.end: Floats = (timeline.end + behind)[row]
        self.makespan = timeline.makespan
        self.joined = schedule.joined[row]
        kind, stage = columns.kind[row], columns.stage[row]
        copies = schedule.placement.copy_of(columns.microbatch[row], schedule.microbatches)
        last = np.array([max(schedule.placement.stages_on(rank, copy)) for copy in range(schedule.placement.copies)])
        turning = (stage == last[copies]) & (columns.slice[row] == schedule.slices - 1)
        self.enter: Floats = np.sort(self.start[turning & (kind == Kind.F)])
        self.leave: Floats = np.sort(self.start[turning & among(kind, (Kind.B, Kind.I))])
        self.ways_back: Ints = np.flatnonzero(among(kind, (Kind.B, Kind.I)))
        self.inputs = costs.backward_input[stage] / schedule.slices if costs is not None else self.end - self.start

    @property
    def drains(self) -> float:
        """The end of the last I, or of the part of a full backward that is like one."""
        last = int(self.ways_back[-1])
        return float(min(self.end[last], self.start[last] + self.inputs[last]))

    def idle(self, start: float, end: float) -> float:
        """How long the rank idles between two times."""
        busy = np.minimum(self.end, end) - np.maximum(self.start, start)
        return float(end - start - np.clip(busy[~self.joined], 0.0, None).sum())


def _located(rank: _RankTimes, trips: RoundTrips) -> Iterator[LocatedWindow]:
    whole = float(rank.start.min()), float(rank.end.max())
    if trips.begin is not None:
        whole = trips.begin, rank.makespan
    for window in trips.windows:
        for start, stop in _places(rank, window, trips.fit, whole):
            yield LocatedWindow(window, start, stop, rank.idle(start, stop))


def _places(rank: _RankTimes, window: Window, fit: int, whole: tuple[float, float]) -> Iterator[tuple[float, float]]:
    if window.kind == "first":
        yield whole[0], float(rank.leave[0])
    elif window.kind == "trip":
        chosen = fit * np.arange(1, window.count + 1)
        yield from zip(rank.enter[chosen].tolist(), rank.leave[chosen].tolist(), strict=True)
    elif window.kind == "last":
        yield float(rank.enter[-1]), whole[1]
    else:
        yield rank.drains, whole[1]
