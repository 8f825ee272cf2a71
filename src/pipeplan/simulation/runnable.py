"""Messages, collectives and dependencies of a schedule that the simulations share, and their errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Communication, Costs
from pipeplan.foundation.errors import DeadlockError, InvalidScheduleError
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    NONE,
    RECEIVE_KINDS,
    Dependencies,
    Floats,
    Kind,
    Schedule,
    Timeline,
    among,
    collectives_awaited,
    crosses_ranks,
    require_order,
)
from pipeplan.simulation.timing_kernel import CHANNELS, COLLECTIVE, FROM_HOST, TO_HOST, RowTimes, ScheduleRows

_NO_OPS = np.empty(0, np.intp)
_NOTHING = np.empty(0, np.int32)


def rows_of(schedule: Schedule, needs: Dependencies, occupied: Floats, *, collectives: bool) -> ScheduleRows:
    """Return a schedule as the kernels take it, whose ops occupy their ranks for so long.

    ``collectives`` is True if they take time.

    Raises InvalidScheduleError if an op computes while the parameters of its stage are not gathered.
    """
    channel, awaited = _beside_compute(schedule, needs, collectives=collectives)
    return ScheduleRows(
        offsets=schedule.offsets,
        joined=schedule.joined,
        duration=np.ascontiguousarray(occupied, np.float64),
        channel=channel,
        awaited=awaited,
    )


def empty_times(schedule: Schedule) -> RowTimes:
    """Return the arrays that the kernels write, before the first op."""
    count, ranks = len(schedule), schedule.ranks
    return RowTimes(
        start=np.empty(count),
        end=np.full(count, -1.0),
        cursor=np.zeros(ranks, np.int64),
        free=np.zeros(ranks),
        beside=np.zeros(CHANNELS * ranks),
        stack=np.zeros(2 * ranks, np.int64),
    )


def _beside_compute(
    schedule: Schedule, needs: Dependencies, *, collectives: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the kernels' ``channel`` and ``awaited``, both empty if nothing runs beside the computation."""
    if not collectives and schedule.kinds.isdisjoint(HOST_KINDS):
        return _NOTHING, _NOTHING
    channel = np.full(len(schedule), NONE, np.int32)
    channel[schedule.where(Kind.OFFLOAD)] = TO_HOST
    channel[schedule.where(Kind.RELOAD)] = FROM_HOST
    needed = needs.own_stage
    reloaded = (needed >= 0) & (schedule.columns.kind[np.maximum(needed, 0)] == Kind.RELOAD)
    awaited: NDArray[np.int32] = np.where(reloaded | (channel == TO_HOST), needed, NONE).astype(np.int32)
    if collectives:
        channel[schedule.where(*COLLECTIVE_KINDS)] = COLLECTIVE
        needed = collectives_awaited(schedule)
        _require_gathered(schedule, needed)
        awaited = np.concatenate((awaited, needed))
    return channel, awaited


def _require_gathered(schedule: Schedule, collective: NDArray[np.int32]) -> None:
    """Require that ops compute between UNSHARD and RESHARD of their stage, if any stage is gathered."""
    without = np.flatnonzero((collective == NONE) & among(schedule.columns.kind, COMPUTE_KINDS))
    if schedule.has(Kind.UNSHARD) and without.size:
        raise InvalidScheduleError(
            f"not gathered: {schedule.place(int(without[0]))} computes without the parameters of its stage: expected an "
            "UNSHARD of the stage before it, and no RESHARD in between"
        )


def require_runnable(schedule: Schedule, needs: Dependencies) -> None:
    """Raise InvalidScheduleError unless every op's inputs exist, come earlier on the same rank, or are sent from another."""
    require_order(schedule, needs)
    _require_handing_on(schedule, needs)


def _require_handing_on(schedule: Schedule, needs: Dependencies) -> None:
    """Require that inputs from other ranks are sent: by a message or, in a schedule without messages, by the next stage."""
    columns, arrival = schedule.columns, needs.arrival
    within_ranks = list(needs.all[1:]) if schedule.misplaced.size else []
    receives = _NO_OPS if schedule.kinds.isdisjoint(RECEIVE_KINDS) else schedule.where(*RECEIVE_KINDS)
    if receives.size:
        unsent = receives[arrival[receives] == NONE]
        if unsent.size:
            raise InvalidScheduleError(
                f"incomplete: {schedule.place(int(unsent[0]))} waits for a message that no op sends"
            )
        received = (arrival >= 0) & among(columns.kind[arrival], RECEIVE_KINDS)
        within_ranks.insert(0, np.where(received, arrival, NONE))
    for sources in within_ranks:
        apart = np.flatnonzero(crosses_ranks(schedule, sources))
        if apart.size:
            op = int(apart[0])
            there = schedule.place(int(sources[op]))
            raise InvalidScheduleError(
                f"on the wrong rank: {schedule.place(op)} waits for {there}, which must be on the same rank"
            )


def deadlock(schedule: Schedule, end: Floats, source: NDArray[np.int32]) -> DeadlockError:
    """Return an error that names the first op of each rank that was not timed, and its source."""
    rows = pairwise(schedule.offsets.tolist())
    stuck = [int(np.flatnonzero(end[a:b] < 0)[0]) + a for a, b in rows if (end[a:b] < 0).any()]
    waits = [f"{schedule.place(op)} for {schedule.op(int(source[op]))}" for op in stuck if source[op] >= 0]
    return DeadlockError("deadlock: these ops wait for each other: " + "; ".join(waits[:8]))


def message_partners(schedule: Schedule, needs: Dependencies) -> NDArray[np.int32]:
    """Return the other end of each SEND and RECV, ``NONE`` for all other ops; shape (ops,)."""
    partner = np.full(len(schedule), NONE, np.int32)
    receives = schedule.where(Kind.RECV_F, Kind.RECV_B)
    partner[receives] = needs.arrival[receives]
    partner[partner[receives]] = receives
    return partner


def require_messages(schedule: Schedule, needs: Dependencies, communication: Communication) -> None:
    """Raise InvalidScheduleError unless every transfer between ranks has a SEND and a RECV."""
    crossing = crosses_ranks(schedule, needs.arrival)
    crossing[schedule.where(*RECEIVE_KINDS)] = False
    if crossing.any():
        op = int(np.flatnonzero(crossing)[0])
        raise InvalidScheduleError(f"{communication} communication needs a SEND and a RECV for {schedule.place(op)}")


def message_times(schedule: Schedule, costs: Costs, partner: NDArray[np.int32]) -> Floats:
    """Return the time of each op's message, shape (ops,): both ends have that of the sender.

    ``partner`` is that of :func:`message_partners`.
    """
    times = costs.delays(schedule)
    receives = schedule.where(*RECEIVE_KINDS)
    times[receives] = times[partner[receives]]
    return times


def spans_with_collectives(timeline: Timeline) -> Floats:
    """Return the time from the first op of each rank to its last, shape (ranks,).

    A simulated rank gathers its first parameters from time 0, however long it then waits for its first microbatch. These
    collectives count from the latest time at which they can begin without delaying anything, because without a barrier the
    rank would run its previous step until then::

        collectives  UNSHARD ====  . . . . . . . .          simulated
        rank                                      F0
        collectives                  UNSHARD ====           counted
    """
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    collective = among(schedule.columns.kind, COLLECTIVE_KINDS)
    # Ops that take no time on their rank.
    passing = collective | among(schedule.columns.kind, (Kind.RESHARD, Kind.RELOAD))
    awaited = collectives_awaited(schedule)
    begins = np.zeros(schedule.ranks)
    for rank, (first, stop) in enumerate(pairwise(schedule.offsets.tolist())):
        ahead = first + int(np.append(passing[first:stop], False).argmin())
        leading = first + np.flatnonzero(collective[first:ahead])
        own = np.arange(ahead, stop)
        rest = own[collective[own]]
        latest = [*start[own[~collective[own]]].tolist()]
        if leading.size:
            waiting = own[(awaited[own] >= 0) & (awaited[own] < ahead)]
            latest += (start[waiting] - end[awaited[waiting]]).tolist()
            latest += (start[rest[:1]] - end[leading[-1]]).tolist()
        begins[rank] = max(min(latest, default=0.0), 0.0)
    spans: Floats = np.where(timeline.last_end > 0, timeline.last_end - begins, 0.0)
    return spans
