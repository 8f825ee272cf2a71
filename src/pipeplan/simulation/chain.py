"""What held each op: walking a timeline back from effect to cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.model import COMPUTE_KINDS, NONE, Timeline, among, crosses_ranks, dependencies


def compute_only(timeline: Timeline) -> Timeline:
    """The timeline of the compute ops alone: messages become the time between ops."""
    compute = among(timeline.schedule.columns.kind, COMPUTE_KINDS)
    if compute.all():
        return timeline
    schedule = timeline.schedule.keep(compute)
    return replace(timeline, schedule=schedule, start=timeline.start[compute], end=timeline.end[compute])


class Chains:
    """The chain behind every op of a timeline of compute ops.

    An op is *held* by whichever ended last: the op before it on its rank, or the op of another rank whose result it needs
    (with the message after it). The two of an overlapped pair are held as one.
    """

    def __init__(self, timeline: Timeline) -> None:
        schedule = timeline.schedule
        needs = dependencies(schedule)
        source = np.where(crosses_ranks(schedule, needs.arrival), needs.arrival, NONE)
        self.start: list[float] = timeline.start.tolist()
        self.end: list[float] = timeline.end.tolist()
        self._source: list[int] = source.tolist()
        self._joined: list[bool] = [*schedule.joined.tolist(), False]
        self._row_start: list[int] = np.repeat(schedule.offsets[:-1], np.diff(schedule.offsets)).tolist()

    def source(self, op: int) -> int:
        """The op of another rank that ended last of those that the op, or its pair, waits for; -1 for none."""
        first = op - 1 if self._joined[op] else op
        sources = [self._source[first]]
        if self._joined[first + 1]:
            sources.append(self._source[first + 1])
        return max(sources, key=lambda source: self.end[source] if source >= 0 else -1.0)

    def before(self, op: int) -> int:
        """The op before it (or before its pair) on its rank; -1 for none."""
        first = op - 1 if self._joined[op] else op
        return first - 1 if first > self._row_start[first] else -1

    def holder(self, op: int) -> int:
        """The op that held it, -1 for none. A message wins over an op of its own rank that ended with it."""
        source, before = self.source(op), self.before(op)
        if source >= 0 and (before < 0 or self.end[source] >= self.end[before] or self.start[op] > self.end[before]):
            return source
        return before
