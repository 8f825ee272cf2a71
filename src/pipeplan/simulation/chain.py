"""What held each op: walking a timeline back from effect to cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import (
    COMPUTE_KINDS,
    NONE,
    Floats,
    Schedule,
    Timeline,
    among,
    crosses_ranks,
    dependencies,
    tolerances,
)


def compute_only(timeline: Timeline) -> Timeline:
    """The timeline of the compute ops alone: messages become the time between ops."""
    compute = among(timeline.schedule.columns.kind, COMPUTE_KINDS)
    if compute.all():
        return timeline
    schedule = timeline.schedule.keep(compute)
    return replace(timeline, schedule=schedule, start=timeline.start[compute], end=timeline.end[compute])


def lost(schedule: Schedule, costs: Costs | None) -> tuple[Floats, Floats]:
    """See :meth:`Costs.lost <pipeplan.costs.Costs.lost>`; without costs nothing is."""
    return (np.zeros(len(schedule)), np.zeros(len(schedule))) if costs is None else costs.lost(schedule)


class Chains:
    """The chain behind every op of a timeline of compute ops.

    An op is *held* by whichever ended last: the op before it on its rank, or the op of another rank whose result it needs
    (with the message after it). The two of an overlapped pair are held as one.

    Attributes
    ----------
    start, end
        Of every op.
    taken, freed
        When each op takes its rank, which is before it starts by what it loses there, and when it frees it.
    rounding
        What times may be off by where something is lost between ops.
    """

    def __init__(self, timeline: Timeline, costs: Costs | None = None) -> None:
        schedule = timeline.schedule
        before, behind = lost(schedule, costs)
        needs = dependencies(schedule)
        source = np.where(crosses_ranks(schedule, needs.arrival), needs.arrival, NONE)
        self.start: list[float] = timeline.start.tolist()
        self.end: list[float] = timeline.end.tolist()
        self.taken: list[float] = (timeline.start - before).tolist()
        self.freed: list[float] = (timeline.end + behind).tolist()
        self.rounding = tolerances.ROUNDING * timeline.makespan if before.any() else 0.0
        self._source: list[int] = source.tolist()
        self._joined: list[bool] = [*schedule.joined.tolist(), False]
        self._row_start: list[int] = np.repeat(schedule.offsets[:-1], np.diff(schedule.offsets)).tolist()

    def source(self, op: int) -> int:
        """The op of another rank that ended last of those that the op, or its pair, waits for; -1 for none."""
        first = op - 1 if self._joined[op] else op
        sources = [self._source[first]]
        if self._joined[first + 1]:
            sources.append(self._source[first + 1])
        return max(sources, key=lambda source: self.freed[source] if source >= 0 else -1.0)

    def before(self, op: int) -> int:
        """The op before it (or before its pair) on its rank; -1 for none."""
        first = op - 1 if self._joined[op] else op
        return first - 1 if first > self._row_start[first] else -1

    def holder(self, op: int) -> int:
        """The op that held it, -1 for none. A message wins over an op of its own rank that ended with it."""
        source, before = self.source(op), self.before(op)
        if source >= 0 and (before < 0 or self.freed[source] >= self.freed[before] or self._waited(op, before)):
            return source
        return before

    def _waited(self, op: int, before: int) -> bool:
        """Whether the rank was free before the op took it, by more than rounding."""
        return self.taken[op] > self.freed[before] + self.rounding
