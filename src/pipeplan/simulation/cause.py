"""Why one order of the same ops takes longer than another: the first op on the slower one's critical path that is late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import Kind, Op, Schedule, Timeline, tolerances
from pipeplan.simulation.chain import Chains, timed_only


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
