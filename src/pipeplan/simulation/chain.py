"""What held each op: walking a timeline back from effect to cause."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    NONE,
    Bools,
    Dependencies,
    Floats,
    Ints,
    Kind,
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


def timed_only(timeline: Timeline) -> Timeline:
    """The timeline of the compute ops and of the copies to the host and back, which can keep a rank waiting."""
    timed = among(timeline.schedule.columns.kind, (*COMPUTE_KINDS, *HOST_KINDS))
    if timed.all():
        return timeline
    schedule = timeline.schedule.keep(timed)
    return replace(timeline, schedule=schedule, start=timeline.start[timed], end=timeline.end[timed])


def lost(schedule: Schedule, costs: Costs | None) -> tuple[Floats, Floats]:
    """See :meth:`Costs.lost <pipeplan.costs.Costs.lost>`; without costs nothing is."""
    return (np.zeros(len(schedule)), np.zeros(len(schedule))) if costs is None else costs.lost(schedule)


class Chains:
    """The chain behind every op of a timeline of compute ops, and of copies to the host and back.

    An op is *held* by whichever ended last: the op before it on its rank, the op of another rank whose result it needs
    (with the message after it), or the copy that brings back what it needs. The two of an overlapped pair are held as one.
    A copy is held by the copy before it on its link; one to the host by its forward, too, and one back by its rank. A copy
    to the host holds what its rank does next where it ended after all that the rank did before.

    Attributes
    ----------
    start, end
        Of every op.
    taken, freed
        When each op takes its rank, which is before it starts by what it loses there, and when it frees it.
    rounding
        What times may be off by where something is lost between ops.
    sources
        The op of another rank, or the copy, that ended last of what each op, or its pair, waits for; -1 for none.
    holders
        What held each op, -1 for none. A message or a copy wins over an op of its own rank that ended with it.
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
        copies = not schedule.kinds.isdisjoint(HOST_KINDS)
        rows = np.array(self._along_rows(schedule), np.int64) if copies else _one_before(schedule)
        waits = (
            [_copies_waited_for(schedule, needs), np.array(_one_before_on_link(schedule), np.int64)] if copies else []
        )
        freed = timeline.end + behind
        delay = 0.0 if costs is None else costs.transfer.time(schedule.slices)
        held = _last_of(_of_pairs(source, waits, schedule.joined), freed, delay)
        earlier: Ints = rows[np.arange(len(schedule)) - schedule.joined]
        waited = timeline.start - before > _at(freed, earlier) + self.rounding
        by_source = (held >= 0) & ((earlier < 0) | (_at(freed, held) >= _at(freed, earlier)) | waited)
        self.sources: Ints = held
        self.holders: Ints = np.where(by_source, held, earlier)

    def holder(self, op: int) -> int:
        """The op that held it, -1 for none."""
        return int(self.holders[op])

    def _along_rows(self, schedule: Schedule) -> list[int]:
        """What was the last to free the rank of each op before it, -1 for nothing."""
        before, last = [-1] * len(schedule), -1
        kind, starts = schedule.columns.kind.tolist(), set(schedule.offsets.tolist())
        for op in range(len(schedule)):
            last = -1 if op in starts else last
            before[op] = last if kind[op] != Kind.OFFLOAD else -1
            if kind[op] == Kind.OFFLOAD:
                last = op if last < 0 or self.freed[op] > self.freed[last] else last
            elif kind[op] != Kind.RELOAD:
                last = op
        return before


def _at(times: Floats, ops: Ints) -> Floats:
    """The times of these ops, -1 for none (-1)."""
    found: Floats = np.append(times, -1.0)[ops]
    return found


def _of_pairs(source: Ints, waits: list[Ints], joined: Bools) -> list[Ints]:
    """What each op waits for, and what the other of its pair does: columns of ops, -1 for none."""
    first = np.arange(len(joined)) - joined
    paired = np.append(joined, False)[first + 1]
    second = first + paired
    found = [source[first], np.where(paired, source[second], NONE)]
    found += [each[first] for each in waits]
    return found + [np.where(paired, each[second], NONE) for each in waits]


def _last_of(candidates: list[Ints], freed: Floats, delay: float) -> Ints:
    """Of the ops in each row of the columns the one that came last, the first of several; -1 for none.

    The first two columns come by a message, so much later than they were freed.
    """
    last, when = candidates[0], _at(freed, candidates[0]) + delay * (candidates[0] >= 0)
    for number, other in enumerate(candidates[1:], start=1):
        came = _at(freed, other) + delay * ((other >= 0) & (number < 2))
        last, when = np.where(came > when, other, last), np.maximum(came, when)
    return last


def _one_before(schedule: Schedule) -> Ints:
    """The op before each one on its rank, -1 for none, where all of them occupy their rank."""
    before: Ints = np.arange(-1, len(schedule) - 1)
    starts = schedule.offsets[:-1]
    before[starts[starts < len(schedule)]] = -1
    return before


def _copies_waited_for(schedule: Schedule, needs: Dependencies) -> Ints:
    """The forward that each copy to the host copies, and the copy that brings back what an op needs; -1 for none."""
    kind, needed = schedule.columns.kind, needs.own_stage
    reloaded = (needed >= 0) & (kind[np.maximum(needed, 0)] == Kind.RELOAD)
    awaited: Ints = np.where(reloaded | (kind == Kind.OFFLOAD), needed, NONE)
    return awaited


def _one_before_on_link(schedule: Schedule) -> list[int]:
    """The copy before each copy on its rank's link to the host, or back; -1 for none."""
    before = [-1] * len(schedule)
    for kind in HOST_KINDS:
        copies = schedule.where(kind).tolist()
        for earlier, later in pairwise(copies):
            if schedule.rank[earlier] == schedule.rank[later]:
                before[later] = earlier
    return before
