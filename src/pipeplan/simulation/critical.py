"""The critical path: the chain of ops and messages that made the makespan what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import Floats, Kind, Op, Schedule, Timeline, tolerances
from pipeplan.simulation.chain import Chains, lost, timed_only


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """A longest chain through a timeline, from its start to its last end.

    Attributes
    ----------
    ops
        Positions in the timeline's compute ops and copies, earliest first.
    by_kind
        Time on the path by kind.
    by_stage
        Time of the path's ops by stage, shape (stages,).
    overhead
        Time on the path that its ops lose before they start and behind their ends.
    transfer
        The rest of the time between the end of an op and the start of the next: messages, and whatever else kept it waiting.
    """

    ops: tuple[int, ...]
    by_kind: dict[Kind, float]
    by_stage: Floats
    overhead: float
    transfer: float


def critical_path(timeline: Timeline, costs: Costs | None = None) -> CriticalPath:
    """The chain behind the op that ends last; of several chains, the one through messages.

    Parameters
    ----------
    costs
        They say what is lost between ops; None: nothing that is known of.
    """
    timeline = timed_only(timeline)
    chains = Chains(timeline, costs)
    path: list[int] = []
    op = int(timeline.end.argmax()) if len(timeline.end) else -1
    while op >= 0:
        path.append(op)
        op = chains.holder(op)
    path.reverse()
    columns = timeline.schedule.columns
    times = (timeline.end - timeline.start)[path]
    before, behind = lost(timeline.schedule, costs)
    overhead = float(before[path].sum() + behind[path[:-1]].sum())
    rest = float(timeline.makespan - times.sum() - overhead)
    by_kind = np.bincount(columns.kind[path], times, minlength=len(Kind))
    return CriticalPath(
        tuple(path),
        {kind: float(by_kind[kind]) for kind in Kind if by_kind[kind] > 0},
        np.bincount(columns.stage[path], times, minlength=timeline.schedule.stages).astype(np.float64),
        overhead,
        rest if rest > tolerances.ROUNDING * timeline.makespan else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """Where the slower of two timelines begins to lose.

    Attributes
    ----------
    op, rank
        The first op on the slower one's critical path that starts later there than in the other.
    later
        By how much.
    behind, behind_rank
        What it starts behind in the slower one, and where that runs; None for nothing.
    instead, instead_rank
        What it starts behind in the faster one.
    """

    op: Op
    rank: int
    later: float
    behind: Op | None
    behind_rank: int
    instead: Op | None
    instead_rank: int


def cause_of_delay(slower: Timeline, faster: Timeline, costs: Costs) -> Cause | None:
    """The op at which the slower of two timelines falls behind the other for good.

    Ops before it on the critical path are as early as in the faster one; it is not, and all after it follow. None where
    there is no such op: the timelines take the same time, or do not hold the same ops.

    Parameters
    ----------
    costs
        What both were simulated on.
    """
    slower, faster = timed_only(slower), timed_only(faster)
    other = _positions(slower.schedule, faster.schedule)
    if other is None:
        return None
    slack = tolerances.ROUNDING * slower.makespan
    late = slower.start - faster.start[other] > slack
    chains = Chains(slower, costs)
    op = int(slower.end.argmax()) if len(slower.end) else -1
    found = -1
    while op >= 0 and late[op]:
        found = op
        op = chains.holder(op)
    if found < 0:
        return None
    mine, theirs = chains.holder(found), Chains(faster, costs).holder(int(other[found]))
    return Cause(
        op=slower.schedule.op(found),
        rank=int(slower.schedule.rank[found]),
        later=float(slower.start[found] - faster.start[other[found]]),
        behind=None if mine < 0 else slower.schedule.op(mine),
        behind_rank=-1 if mine < 0 else int(slower.schedule.rank[mine]),
        instead=None if theirs < 0 else faster.schedule.op(theirs),
        instead_rank=-1 if theirs < 0 else int(faster.schedule.rank[theirs]),
    )


def _positions(one: Schedule, other: Schedule) -> NDArray[np.intp] | None:
    """Where each op of one schedule stands in the other; None where they do not hold the same ops."""
    if (one.stages, one.microbatches, one.slices) != (other.stages, other.microbatches, other.slices):
        return None
    keys = [schedule.key * len(Kind) + schedule.columns.kind for schedule in (one, other)]
    turns = [np.argsort(key, kind="stable") for key in keys]
    if len(one) != len(other) or not np.array_equal(keys[0][turns[0]], keys[1][turns[1]]):
        return None
    found = np.empty(len(one), np.intp)
    found[turns[0]] = turns[1]
    return found
