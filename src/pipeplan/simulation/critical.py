"""The critical path of a timeline, and where the slower of two timelines falls behind.

The critical path is the chain of ops and messages that determine when the last op ends: shortening anything else leaves the
makespan as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.foundation.records import Record
from pipeplan.model import NO_MICROBATCH, Ints, Kind, Op, Schedule, Timeline, tolerances
from pipeplan.simulation.chain import Chains, overhead_around_ops, timed_only


class CriticalPath(Record, frozen=True, kw_only=True):
    """Time on the critical path by kind of op and by stage, in gaps between ops, and in transfers and waiting.

    Attributes
    ----------
    by_kind
        Time of its ops by the name of their kind.
    by_stage
        Time of its ops by stage.
    overhead
        Overhead before and after its ops.
    transfer
        Remaining time between its ops: messages, and anything else that kept an op waiting.
    ops
        Number of its ops.
    """

    by_kind: dict[str, float]
    by_stage: list[float]
    overhead: float
    transfer: float
    ops: int


def critical_ops(timeline: Timeline, costs: Costs | None = None) -> list[int]:
    """Return the chain of ops that leads to the op that ends last; of several chains, the one through messages.

    Parameters
    ----------
    timeline
        A simulated or measured timeline.
    costs
        Costs with the overhead between ops; None: no overhead.

    Returns
    -------
    list of int
        Positions among the timeline's compute ops and copies, earliest first.
    """
    timeline = timed_only(timeline)
    chains = Chains(timeline, costs)
    path: list[int] = []
    op = int(timeline.end.argmax()) if len(timeline.end) else -1
    while op >= 0:
        path.append(op)
        op = chains.holder(op)
    return path[::-1]


def critical_path(timeline: Timeline, costs: Costs | None = None) -> CriticalPath:
    """Return how the time of the chain of :func:`critical_ops` is spent."""
    timeline = timed_only(timeline)
    path = critical_ops(timeline, costs)
    columns = timeline.schedule.columns
    times = (timeline.end - timeline.start)[path]
    before, after = overhead_around_ops(timeline.schedule, costs)
    overhead = float(before[path].sum() + after[path[:-1]].sum())
    rest = float(timeline.makespan - times.sum() - overhead)
    by_kind = np.bincount(columns.kind[path], times, minlength=len(Kind))
    by_stage = np.bincount(columns.stage[path], times, minlength=timeline.schedule.stages)
    return CriticalPath(
        by_kind={kind.name: float(by_kind[kind]) for kind in Kind if by_kind[kind] > 0},
        by_stage=by_stage.astype(np.float64).tolist(),
        overhead=overhead,
        transfer=rest if rest > tolerances.ROUNDING * timeline.makespan else 0.0,
        ops=len(path),
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """The first op by which the slower of two timelines falls behind.

    Attributes
    ----------
    op, rank
        First op on the slower timeline's critical path that starts later than in the faster one, and its rank.
    later
        Difference of its starts.
    behind, behind_rank
        Holder of the op in the slower timeline, and its rank; None and -1 if it has none.
    instead
        Holder of the op in the faster timeline; None if it has none.
    """

    op: Op
    rank: int
    later: float
    behind: Op | None
    behind_rank: int
    instead: Op | None


def cause_of_delay(slower: Timeline, faster: Timeline, costs: Costs) -> Cause | None:
    """Return the op at which the slower of two timelines falls behind the other for good.

    All later ops on the slower timeline's critical path are late, too. The result is None if there is no such op, because
    the timelines take the same time, or if they do not hold the same ops.

    Parameters
    ----------
    slower, faster
        Timelines of two orders of the same ops.
    costs
        Costs that both were simulated with.
    """
    slower, faster = timed_only(slower), timed_only(faster)
    other = _positions(slower.schedule, faster.schedule)
    if other is None:
        return None
    slack = tolerances.ROUNDING * slower.makespan
    late = slower.start - faster.start[other] > slack
    chains = Chains(slower, costs)
    # Walk back along the critical path as long as ops are late: the last one met is the first that fell behind.
    op = int(slower.end.argmax()) if len(slower.end) else -1
    first_late = -1
    while op >= 0 and late[op]:
        first_late = op
        op = chains.holder(op)
    if first_late < 0:
        return None
    mine, theirs = chains.holder(first_late), Chains(faster, costs).holder(int(other[first_late]))
    return Cause(
        op=slower.schedule.op(first_late),
        rank=int(slower.schedule.rank[first_late]),
        later=float(slower.start[first_late] - faster.start[other[first_late]]),
        behind=None if mine < 0 else slower.schedule.op(mine),
        behind_rank=-1 if mine < 0 else int(slower.schedule.rank[mine]),
        instead=None if theirs < 0 else faster.schedule.op(theirs),
    )


def _positions(one: Schedule, other: Schedule) -> NDArray[np.intp] | None:
    """Return the position in ``other`` of each op of ``one``; None if they do not hold the same ops.

    The n-th collective of a stage is the n-th one of the same kind.
    """
    if (one.stages, one.microbatches, one.slices) != (other.stages, other.microbatches, other.slices):
        return None
    # Match ops by stage, microbatch, slice and kind, which identify them.
    keys = [_identity(schedule) * len(Kind) + schedule.columns.kind for schedule in (one, other)]
    turns = [np.argsort(key, kind="stable") for key in keys]
    if len(one) != len(other) or not np.array_equal(keys[0][turns[0]], keys[1][turns[1]]):
        return None
    positions = np.empty(len(one), np.intp)
    positions[turns[0]] = turns[1]
    return positions


def _identity(schedule: Schedule) -> Ints:
    """Return a number for each stage, microbatch and slice, and one for each stage of ops without a microbatch."""
    columns = schedule.columns
    return np.where(columns.microbatch == NO_MICROBATCH, schedule.keys + columns.stage, schedule.key)
