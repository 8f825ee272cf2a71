"""The longest wait of a rank: how long, for which op, and where that was meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pipeplan.model import COMPUTE_KINDS, Ints, Op, Timeline, among, tolerances
from pipeplan.simulation import IdleTimes, Reason, timed_only

_ENDS = (Reason.START_UP, Reason.DRAIN)
"""Why a rank idles before its first microbatch and after its last one: not waits between two ops."""


@dataclass(frozen=True, slots=True)
class Wait:
    """An idle gap of a rank that ends when what it waits for arrives.

    Attributes
    ----------
    rank, start, end
        Where and when.
    op
        What starts at its end.
    source
        The rank on which, in this gap, the chain behind that op was farthest from its stage; None where it was on the
        rank itself.
    """

    rank: int
    start: float
    end: float
    op: Op
    source: int | None

    @property
    def time(self) -> float:
        """How long it is."""
        return self.end - self.start

    def to_dict(self) -> dict[str, Any]:
        """As a part of the JSON of an explanation."""
        return {"rank": self.rank, "start": self.start, "end": self.end, "op": str(self.op), "from_rank": self.source}


def longest_waits(timeline: Timeline, idle: IdleTimes) -> tuple[Wait | None, ...]:
    """The longest one of each rank, the first of several; None where it never waits between its first and its last op."""
    timeline = timed_only(timeline)
    bounds = np.searchsorted(idle.rank, np.arange(timeline.schedule.ranks + 1)).tolist()
    return tuple(_longest(timeline, idle, rank, *edges) for rank, edges in enumerate(pairwise(bounds)))


def _longest(timeline: Timeline, idle: IdleTimes, rank: int, begin: int, stop: int) -> Wait | None:
    """Of the idle pieces of one rank, which are these, in the order of time."""
    rounding = tolerances.ROUNDING * timeline.makespan
    reason, cause = idle.reason[begin:stop], idle.cause[begin:stop]
    # The gap before an op, and what its messages take, it waits for nobody in.
    its_own = (reason == Reason.OVERHEAD) & (cause >= 0) & (timeline.schedule.rank[cause] == rank)
    pieces = begin + np.flatnonzero(~np.isin(reason, _ENDS) & ~its_own)
    if not len(pieces):
        return None
    first = np.append(0, 1 + np.flatnonzero(idle.start[pieces[1:]] > idle.end[pieces[:-1]] + rounding))
    last = np.append(first[1:], len(pieces)) - 1
    lengths = idle.end[pieces[last]] - idle.start[pieces[first]]
    longest = int(np.argmax(lengths > lengths.max() - rounding))
    gap = pieces[first[longest] : last[longest] + 1]
    since, until = float(idle.start[gap[0]]), float(idle.end[gap[-1]])
    row = np.arange(*timeline.schedule.offsets[rank : rank + 2].tolist())
    row = row[among(timeline.schedule.columns.kind[row], COMPUTE_KINDS)]
    after = int(np.searchsorted(timeline.start[row], until - rounding))
    if after >= len(row):
        return None
    op = int(row[after])
    return Wait(rank, since, until, timeline.schedule.op(op), _source(timeline, op, idle.cause[gap]))


def _source(timeline: Timeline, op: int, causes: Ints) -> int | None:
    """The rank of the farthest op of the chain."""
    schedule = timeline.schedule
    causes = causes[causes >= 0]
    if not len(causes):
        return None
    stage = schedule.columns.stage.astype(np.int64)
    farthest = int(schedule.rank[causes[np.abs(stage[causes] - stage[op]).argmax()]])
    return None if farthest == int(schedule.rank[op]) else farthest
