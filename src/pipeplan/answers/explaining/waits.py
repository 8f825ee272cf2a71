"""The longest wait of each rank: its interval, the op that ends it, and where what it waits for came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from pipeplan.foundation.records import Record
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    RECEIVE_KINDS,
    Floats,
    Ints,
    Kind,
    Op,
    Reason,
    Schedule,
    Streams,
    Timeline,
    among,
    dependencies,
    parse_cell,
    tolerances,
)
from pipeplan.simulation import (
    WAITS,
    IdleTimes,
    held_up_by,
    timed_only,
)


class Wait(Record, frozen=True, kw_only=True):
    """Longest idle gap of a rank that ends when what it waits for arrives.

    Attributes
    ----------
    rank, start, end
        Rank and interval of the gap.
    notation
        The op whose start ends the wait, as ``op`` in JSON.
    source
        The rank on which, in this gap, the chain that caused the wait was farthest from the stage of that op, as
        ``from_rank`` in JSON; None if it was on the rank itself.
    behind
        The SEND or RECV that was ahead of the op's input on a communication stream and delayed it, such as ``2RECV_F3``; or
        the collective that the op waited for, such as ``2UNSHARD``.
    """

    rank: int
    start: float
    end: float
    notation: str = msgspec.field(name="op")
    source: int | None = msgspec.field(name="from_rank")
    behind: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def op(self) -> Op:
        """The op whose start ends the wait."""
        return parse_cell(self.notation)[0]

    @property
    def time(self) -> float:
        """Length of the gap."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _Gap:
    """The longest gap of a rank, and which of all waits are in it, by their places."""

    rank: int
    start: float
    end: float
    op: int
    waits: Ints


def longest_waits(timeline: Timeline, idle: IdleTimes, streams: Streams | None = None) -> tuple[Wait | None, ...]:
    """Return the longest wait of each rank, the first of several; None if it never waits between its first and last op.

    ``streams`` are the communication streams of the timeline, if its messages run on streams.
    """
    ahead = _messages_ahead(timeline, streams)
    timeline = timed_only(timeline)
    gaps = [*_longest_gaps(timeline, idle)]
    ahead |= _collectives_awaited(timeline.schedule, idle, gaps)
    sources = _sources(timeline, idle, gaps)
    longest: list[Wait | None] = [None] * timeline.schedule.ranks
    for gap, source in zip(gaps, sources, strict=True):
        longest[gap.rank] = Wait(
            rank=gap.rank,
            start=gap.start,
            end=gap.end,
            notation=str(timeline.schedule.op(gap.op)),
            source=source,
            behind=ahead.get(gap.op, msgspec.UNSET),
        )
    return tuple(longest)


def _messages_ahead(timeline: Timeline, streams: Streams | None) -> dict[int, str]:
    """Return the message that delayed the input of each compute op or copy, by its position among these; few have one."""
    schedule = timeline.schedule
    if streams is None or schedule.kinds.isdisjoint(RECEIVE_KINDS):
        return {}
    arrival, kind = dependencies(schedule).arrival, schedule.columns.kind
    position = np.cumsum(timeline.timed) - 1
    needy = np.flatnonzero((arrival >= 0) & among(kind, COMPUTE_KINDS))
    blocker = held_up_by(timeline, streams)[arrival[needy]]
    late = blocker >= 0
    return {
        int(position[op]): str(schedule.op(int(other))) for op, other in zip(needy[late], blocker[late], strict=True)
    }


def _collectives_awaited(schedule: Schedule, idle: IdleTimes, gaps: Sequence[_Gap]) -> dict[int, str]:
    """Return the collective of its own rank that the op at the end of each gap waited for last, if it waited for one."""
    if schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
        return {}
    kind, awaited = schedule.columns.kind, {}
    for gap in gaps:
        holder = idle.holder(gap.op)
        if holder >= 0 and kind[holder] == Kind.WAIT_REDUCE_GRAD:
            holder = idle.holder(holder)
        if holder >= 0 and kind[holder] in COLLECTIVE_KINDS:
            awaited[gap.op] = str(schedule.op(holder))
    return awaited


def _longest_gaps(timeline: Timeline, idle: IdleTimes) -> Iterator[_Gap]:
    stretches, waits = idle.stretches, idle.waits
    start = stretches.start.copy()
    start[waits] += idle.spent.start_up  # Before anything had started it is not waited for.
    waiting = stretches.reason == Reason.MEMORY
    waiting[waits] = idle.spent.nearest >= 0
    chosen = np.flatnonzero(waiting)
    ranks = np.arange(timeline.schedule.ranks + 1)
    for rank, (begin, stop) in enumerate(pairwise(np.searchsorted(stretches.rank[chosen], ranks).tolist())):
        here = chosen[begin:stop]
        gap = _longest(timeline, idle, rank, here, start[here]) if len(here) else None
        if gap is not None:
            yield gap


def _longest(timeline: Timeline, idle: IdleTimes, rank: int, here: Ints, start: Floats) -> _Gap | None:
    """Return the longest stretch of one rank, from its stretches in the order of time; a wait begins at ``start``."""
    rounding, end = tolerances.ROUNDING * timeline.makespan, idle.stretches.end[here]
    first = np.append(0, 1 + np.flatnonzero(start[1:] > end[:-1] + rounding))
    last = np.append(first[1:], len(here)) - 1
    lengths = end[last] - start[first]
    longest = int(np.argmax(lengths > lengths.max() - rounding))
    since, until = float(start[first[longest]]), float(end[last[longest]])
    row = np.arange(*timeline.schedule.offsets[rank : rank + 2].tolist())
    row = row[among(timeline.schedule.columns.kind[row], COMPUTE_KINDS)]
    after = int(np.searchsorted(timeline.start[row], until - rounding))
    if after >= len(row):
        return None
    stretches = here[first[longest] : last[longest] + 1]
    stretches = stretches[idle.stretches.reason[stretches] == WAITS]
    return _Gap(rank, since, until, int(row[after]), np.searchsorted(idle.waits, stretches))


def _sources(timeline: Timeline, idle: IdleTimes, gaps: Sequence[_Gap]) -> Iterator[int | None]:
    """Return the rank of the farthest op of the chain that causes each gap."""
    schedule = timeline.schedule
    stage = schedule.columns.stage.astype(np.int64)
    waits = np.concatenate([gap.waits for gap in gaps]) if gaps else np.zeros(0, np.int64)
    counts = np.array([len(gap.waits) for gap in gaps], np.int64)
    awaited = np.repeat(stage[[gap.op for gap in gaps]], counts) if gaps else waits
    causes = idle.farthest(waits, awaited)
    distance = np.where(causes < 0, -1, np.abs(stage[causes] - awaited))
    ends = np.cumsum(counts)
    for gap, (begin, stop) in zip(gaps, zip(ends - counts, ends, strict=True), strict=True):
        farthest = begin + int(distance[begin:stop].argmax()) if stop > begin else -1
        cause = int(causes[farthest]) if farthest >= 0 else -1
        source = int(schedule.rank[cause]) if cause >= 0 else gap.rank
        yield None if source == gap.rank else source
