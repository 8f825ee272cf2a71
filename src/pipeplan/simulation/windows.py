"""Windows of time in which a rank must idle under its memory limit, and where they lie on a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeplan.costs import Costs
from pipeplan.foundation.records import Record
from pipeplan.model import Floats, Ints, Kind, Timeline, among, tolerances
from pipeplan.simulation.critical import compute_only, overhead_around_ops

WindowKind = Literal["first", "trip", "last", "owed"]


@dataclass(frozen=True, slots=True)
class Window:
    """Equal windows of time on a rank.

    Attributes
    ----------
    kind
        Kind of the windows, by what begins and ends them; see :mod:`~pipeplan.simulation.round_trips`.
    count
        Number of windows.
    length
        Least length of each.
    work
        Most work that the rank can do in each, at most ``length``, in the least time that ops can take.
    """

    kind: WindowKind
    count: int
    length: float
    work: float

    @property
    def idle(self) -> float:
        """Return the least idle time of the rank in each window."""
        return self.length - self.work

    @property
    def binds(self) -> bool:
        """Return whether the rank must idle in each window."""
        return self.idle > tolerances.ROUNDING * self.length


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Windows of a rank that its memory limit keeps apart, and the bound that they add up to.

    Attributes
    ----------
    rank
        Number of the rank.
    begin
        Earliest time at which a microbatch can reach the rank, where the first window begins; the last one ends with the
        makespan. None for spans: the windows then lie between the rank's own first start and last end.
    fit
        Number of microbatches that the limit holds at once; one trip follows another after this many.
    length
        Least time from the first window's beginning to the last window's end.
    windows
        Windows in the order of time, without those of count 0.
    idle
        Least idle time in all windows together. It exceeds the sum of the windows' own idle times if some weight backwards
        could fill any one of them, but only one.
    """

    rank: int
    begin: float | None
    fit: int
    length: float
    windows: tuple[Window, ...]
    idle: float

    @property
    def binding(self) -> int:
        """Return the number of windows in which the rank must idle."""
        return sum(window.count for window in self.windows if window.binds)

    @property
    def reason(self) -> str:
        """Return the reason of the bound in words."""
        if any(window.kind == "trip" and window.binds for window in self.windows):
            return f"rank {self.rank} idles in {self.binding} round trips that its limit keeps apart"
        if any(window.kind == "trip" for window in self.windows) and self.idle > self._one_by_one:
            return f"rank {self.rank} idles in round trips that its limit keeps apart"
        return f"the work of rank {self.rank}, which idles at both ends under its memory limit"

    @property
    def _one_by_one(self) -> float:
        idle = sum(window.count * window.idle for window in self.windows)
        return idle * (1 + tolerances.ROUNDING)


class LocatedWindow(Record, frozen=True, kw_only=True):
    """Stretch of time on a timeline in which a memory limit keeps round trips apart.

    Attributes
    ----------
    rank, kind
        Rank that holds the microbatches, and the kind of window; see :class:`Window`.
    start, end
        Times on the timeline.
    idle
        Idle time of the rank between them.
    least_length, least_idle
        Least length and least idle time of such a window on any timeline.
    """

    rank: int
    kind: WindowKind
    start: float
    end: float
    idle: float
    least_length: float
    least_idle: float


def located_windows(timeline: Timeline, trips: RoundTrips, costs: Costs | None = None) -> tuple[LocatedWindow, ...]:
    """Locate the windows of a rank on a timeline that stays within the rank's limit, in the order of time.

    Parameters
    ----------
    timeline
        The timeline.
    trips
        The windows to locate.
    costs
        Costs of the timeline, for the overhead before and after each op.
    """
    return tuple(_located(_RankTimes(compute_only(timeline), trips.rank, costs), trips))


class _RankTimes:
    """Times at which microbatches enter and leave the last stage of a rank, and times of its ops, in the order of time."""

    def __init__(self, timeline: Timeline, rank: int, costs: Costs | None) -> None:
        schedule, columns = timeline.schedule, timeline.schedule.columns
        before, after = overhead_around_ops(schedule, costs)
        row = slice(*schedule.offsets[rank : rank + 2].tolist())
        self.start: Floats = (timeline.start - before)[row]
        self.end: Floats = (timeline.end + after)[row]
        self.makespan = timeline.makespan
        self.joined = schedule.joined[row]
        kind, stage = columns.kind[row], columns.stage[row]
        copies = schedule.placement.copy_of(columns.microbatch[row], schedule.microbatches)
        last = np.array([max(schedule.placement.stages_on(rank, copy)) for copy in range(schedule.placement.copies)])
        # A trip begins and ends with the last slice on the rank's last stage.
        turning = (stage == last[copies]) & (columns.slice[row] == schedule.slices - 1)
        self.enter: Floats = np.sort(self.start[turning & (kind == Kind.F)])
        self.leave: Floats = np.sort(self.start[turning & among(kind, (Kind.B, Kind.I))])
        self.ways_back: Ints = np.flatnonzero(among(kind, (Kind.B, Kind.I)))
        self.inputs: Floats = self.end - self.start
        if costs is not None:
            times = costs.times(Kind.I)
            self.inputs = times[stage, np.minimum(columns.microbatch[row], times.shape[1] - 1)] / schedule.slices

    @property
    def drains(self) -> float:
        """Return the end of the last I, or of the part of a full backward that corresponds to it."""
        last = int(self.ways_back[-1])
        return float(min(self.end[last], self.start[last] + self.inputs[last]))

    def idle(self, start: float, end: float) -> float:
        """Return the idle time between two times."""
        busy = np.minimum(self.end, end) - np.maximum(self.start, start)
        return float(end - start - np.clip(busy[~self.joined], 0.0, None).sum())


def _located(rank: _RankTimes, trips: RoundTrips) -> Iterator[LocatedWindow]:
    whole = float(rank.start.min()), float(rank.end.max())
    if trips.begin is not None:
        whole = trips.begin, rank.makespan
    for window in trips.windows:
        for start, stop in _places(rank, window, trips.fit, whole):
            yield LocatedWindow(
                rank=trips.rank,
                kind=window.kind,
                start=start,
                end=stop,
                idle=rank.idle(start, stop),
                least_length=window.length,
                least_idle=window.idle,
            )


def _places(rank: _RankTimes, window: Window, fit: int, whole: tuple[float, float]) -> Iterator[tuple[float, float]]:
    if window.kind == "first":
        yield whole[0], float(rank.leave[0])
    elif window.kind == "trip":
        # Every fit-th microbatch in the order of arrival makes a trip (step 3 of the proof).
        chosen = fit * np.arange(1, window.count + 1)
        yield from zip(rank.enter[chosen].tolist(), rank.leave[chosen].tolist(), strict=True)
    elif window.kind == "last":
        yield float(rank.enter[-1]), whole[1]
    else:
        yield rank.drains, whole[1]
