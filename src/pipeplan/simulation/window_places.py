"""Where on a timeline the windows are in which a rank's limit makes it idle, and how long it idles there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import Floats, Ints, Kind, Timeline, among
from pipeplan.simulation.chain import compute_only, lost
from pipeplan.simulation.windows import RoundTrips, Window


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
