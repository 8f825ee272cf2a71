"""The critical path of a timeline, and where the slower of two timelines falls behind.

For every op of a timeline, its *holder* is the op that it had to wait for last. Following holders back from an op yields the
chain of ops that determined its start::

    rank 0   F0 F1 ......... B0         B0 of rank 0 is held by B0 of rank 1, which is held by F0 of rank 1,
    rank 1      F0 B0 ..                which is held by F0 of rank 0

The critical path is the chain of ops and messages that determine when the last op ends: shortening anything else leaves the
makespan as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.foundation.records import Record
from pipeplan.model import (
    BESIDE_KINDS,
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    NO_MICROBATCH,
    NONE,
    Bools,
    Dependencies,
    Floats,
    Ints,
    Kind,
    Op,
    Schedule,
    Timeline,
    among,
    collectives_awaited,
    crosses_ranks,
    dependencies,
    tolerances,
)


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


def compute_only(timeline: Timeline) -> Timeline:
    """Return the timeline of the compute ops alone. Messages become time between ops."""
    return _only(timeline, among(timeline.schedule.columns.kind, COMPUTE_KINDS))


def timed_only(timeline: Timeline) -> Timeline:
    """Return the timeline of the compute ops, copies and collectives (``Timeline.timed``), without messages."""
    return _only(timeline, timeline.timed)


def _only(timeline: Timeline, chosen: Bools) -> Timeline:
    if chosen.all():
        return timeline
    start, end = timeline.start[chosen], timeline.end[chosen]
    return replace(timeline, schedule=timeline.schedule.keep(chosen), start=start, end=end)


def overhead_around_ops(schedule: Schedule, costs: Costs | None) -> tuple[Floats, Floats]:
    """Return the overhead before and after each op (:meth:`Costs.lost <pipeplan.costs.Costs.lost>`); 0 without costs."""
    return (np.zeros(len(schedule)), np.zeros(len(schedule))) if costs is None else costs.lost(schedule)


class Chains:
    """Holders of every op of a timeline of compute ops, copies to the host and back, and collectives.

    An op is *held* by whichever ended last: the op before it on its rank, the op of another rank whose result it needs
    (plus the message), the copy that brings back its activations, or the collective that gathers its parameters. The two ops
    of an overlapped pair are held as one. A copy or collective is held by the one before it on its link or stream; a copy to
    the host also by its forward, any other also by its rank. A copy to the host holds the next op of its rank if it ended
    after everything that the rank did before.

    Attributes
    ----------
    start, end
        Times of every op.
    taken, freed
        Times at which each op occupies and frees its rank: before its start and after its end by its overhead.
    left
        Time at which each op's result begins to move to another rank; when it frees its rank, unless messages wait.
    rounding
        Tolerance of times; 0 without overhead.
    sources
        The op of another rank, or the copy, that each op or its pair waited for last; -1 for none.
    holders
        The holder of each op, -1 for none. A message or a copy wins over an op of the same rank that ended at the same time.
    """

    def __init__(self, timeline: Timeline, costs: Costs | None = None, left: Floats | None = None) -> None:
        schedule = timeline.schedule
        before, after = overhead_around_ops(schedule, costs)
        needs = dependencies(schedule)
        source = np.where(crosses_ranks(schedule, needs.arrival), needs.arrival, NONE)
        self.start: list[float] = timeline.start.tolist()
        self.end: list[float] = timeline.end.tolist()
        self.taken: list[float] = (timeline.start - before).tolist()
        self.freed: list[float] = (timeline.end + after).tolist()
        self.rounding = tolerances.ROUNDING * timeline.makespan if before.any() else 0.0
        beside = not schedule.kinds.isdisjoint(BESIDE_KINDS)
        rows = np.array(self._along_rows(schedule), np.int64) if beside else _one_before(schedule)
        waits: list[Ints] = []
        if beside:
            waits = [_copies_waited_for(schedule, needs), np.array(_one_before_on_link(schedule), np.int64)]
        # Candidates for the holder: ops of other ranks with their message, copies, and the op before on the rank.
        freed = timeline.end + after
        leaving = freed if left is None else np.maximum(left, freed)
        self.left: list[float] = leaving.tolist()
        earlier: Ints = rows[np.arange(len(schedule)) - schedule.joined]
        if not schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
            # One that ended before the rank was free kept no op waiting, even if a message that is not in the chain did.
            collective = collectives_awaited(schedule).astype(np.int64)
            waits.append(np.where(_at(freed, collective) >= _at(freed, earlier), collective, NONE))
        arrived = leaving + (np.zeros(len(schedule)) if costs is None else costs.delays(schedule))
        held = _last_of(_of_pairs(source, waits, schedule.joined), freed, arrived)
        # An op that starts later than its rank was free waited for its source, even if rounding says otherwise.
        waited = timeline.start - before > _at(freed, earlier) + self.rounding
        by_source = (held >= 0) & ((earlier < 0) | (_at(freed, held) >= _at(freed, earlier)) | waited)
        self.sources: Ints = held
        self.holders: Ints = np.where(by_source, held, earlier)

    def holder(self, op: int) -> int:
        """Return the holder of an op, -1 for none."""
        return int(self.holders[op])

    def _along_rows(self, schedule: Schedule) -> list[int]:
        """Return, for each op, the earlier op that was the last to free its rank; -1 for none."""
        before, last = [-1] * len(schedule), -1
        kind, starts = schedule.columns.kind.tolist(), set(schedule.offsets.tolist())
        for op in range(len(schedule)):
            last = -1 if op in starts else last
            before[op] = last if kind[op] != Kind.OFFLOAD else -1
            if kind[op] == Kind.OFFLOAD:
                last = op if last < 0 or self.freed[op] > self.freed[last] else last
            elif kind[op] not in (Kind.RELOAD, *COLLECTIVE_KINDS):
                last = op
        return before


def _at(times: Floats, ops: Ints) -> Floats:
    """Return the times of ops; -1 for op -1."""
    times_of_ops: Floats = np.append(times, -1.0)[ops]
    return times_of_ops


def _of_pairs(source: Ints, waits: list[Ints], joined: Bools) -> list[Ints]:
    """Return columns of ops, -1 for none, that each op and the other op of its pair wait for."""
    first = np.arange(len(joined)) - joined
    paired = np.append(joined, False)[first + 1]
    second = first + paired
    columns = [source[first], np.where(paired, source[second], NONE)]
    columns += [column[first] for column in waits]
    return columns + [np.where(paired, column[second], NONE) for column in waits]


def _last_of(candidates: list[Ints], freed: Floats, arrived: Floats) -> Ints:
    """Return the op in each row of the columns that came last, the first of several; -1 for none.

    The first two columns come by a message, which arrives at ``arrived``.
    """
    last, when = candidates[0], _at(arrived, candidates[0])
    for number, other in enumerate(candidates[1:], start=1):
        came = _at(arrived if number < 2 else freed, other)
        last, when = np.where(came > when, other, last), np.maximum(came, when)
    return last


def _one_before(schedule: Schedule) -> Ints:
    """Return the op before each one on its rank, -1 for none, if all ops occupy their rank."""
    before: Ints = np.arange(-1, len(schedule) - 1)
    starts = schedule.offsets[:-1]
    before[starts[starts < len(schedule)]] = -1
    return before


def _copies_waited_for(schedule: Schedule, needs: Dependencies) -> Ints:
    """Return the forward that a copy to the host copies, and the copy back that an op needs; -1 for none."""
    kind, needed = schedule.columns.kind, needs.own_stage
    reloaded = (needed >= 0) & (kind[np.maximum(needed, 0)] == Kind.RELOAD)
    awaited: Ints = np.where(reloaded | (kind == Kind.OFFLOAD), needed, NONE)
    return awaited


def _one_before_on_link(schedule: Schedule) -> list[int]:
    """Return the copy or collective before each one on the same link or stream of its rank; -1 for none."""
    before = [-1] * len(schedule)
    for kinds in ((Kind.OFFLOAD,), (Kind.RELOAD,), COLLECTIVE_KINDS):
        copies = schedule.where(*kinds).tolist()
        for earlier, later in pairwise(copies):
            if schedule.rank[earlier] == schedule.rank[later]:
                before[later] = earlier
    return before
