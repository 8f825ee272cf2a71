"""Times of a schedule whose sends and receives run in order on communication streams; compute does not wait for sends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    NONE,
    RECEIVE_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    Floats,
    Ints,
    Kind,
    Schedule,
    Streams,
    Timeline,
    among,
    dependencies,
)
from pipeplan.simulation.runnable import (
    deadlock,
    empty_times,
    message_partners,
    message_times,
    require_messages,
    require_runnable,
    rows_of,
    spans_with_collectives,
)
from pipeplan.simulation.streams_kernel import Messages, MessageState, time_ops_on_streams

_TIME_OPS_ON_STREAMS = Kernel(time_ops_on_streams)

BACKWARD_MESSAGES = (Kind.SEND_B, Kind.RECV_B)


def time_on_streams(schedule: Schedule, costs: Costs, durations: Floats) -> Timeline:
    """Return the timeline of a schedule with a SEND and a RECV for each transfer, which run in order on its costs' streams.

    Raises InvalidScheduleError for a transfer without SEND and RECV, and DeadlockError if ranks wait for each other.
    """
    needs = dependencies(schedule)
    require_runnable(schedule, needs)
    require_messages(schedule, needs, "streams")
    partner = message_partners(schedule, needs)
    messages = partner >= 0
    before, behind = costs.lost(schedule)
    occupied = before + np.where(messages, message_times(schedule, costs, partner), durations) + behind
    following, has_one_before = _queues(stream_of(schedule, partner, costs.streams))
    missing = (2 + has_one_before + has_one_before[partner]) * messages
    needed = _messages_needed(schedule, needs.arrival, needs.own_stage)
    count, collectives = len(schedule), costs.times_collectives(schedule)
    rows = rows_of(schedule, needs, occupied, collectives=collectives)
    ends = Messages(partner, following, needed, schedule.rank)
    times = empty_times(schedule)
    start, end = times.start, times.end
    state = MessageState(
        ready=np.zeros(count),
        missing=missing,
        waits_for=np.full(schedule.ranks, NONE, np.int64),
        begun=np.zeros(count, np.int64),
    )
    if _TIME_OPS_ON_STREAMS((rows, ends), (times, state)) < count:
        raise deadlock(schedule, end, np.where(messages, partner, needed))
    timed = among(schedule.columns.kind, (*COMPUTE_KINDS, *HOST_KINDS, *(STAGE_WIDE_KINDS if collectives else ())))
    occupying = Timeline(schedule.keep(timed), start[timed], end[timed])
    spans = spans_with_collectives(occupying) if collectives else occupying.spans
    return replace(
        Timeline(schedule, start, end, costs.time_unit), start=start + before, end=end - behind, occupied=spans
    )


def stream_of(schedule: Schedule, partner: NDArray[np.int32], streams: Streams) -> Ints:
    """Return the number of the stream of each SEND and RECV, -1 for all other ops; shape (ops,).

    ``rank``: one stream per rank. ``direction``: activations and gradients have a stream each. ``edge``: a stream for each
    pair of sending and receiving rank.
    """
    kind, rank, ranks = schedule.columns.kind, schedule.rank.astype(np.int64), schedule.ranks
    stream = rank
    if streams == "direction":
        stream = 2 * rank + among(kind, BACKWARD_MESSAGES)
    elif streams == "edge":
        stream = 2 * (ranks * rank + rank[partner]) + among(kind, RECEIVE_KINDS)
    return np.where(partner >= 0, stream, NONE)


def _queues(stream: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Return the next end on each one's stream, -1 for none, and 1 for each end that is not the first on its stream."""
    following = np.full(len(stream), NONE, np.int32)
    messages = np.flatnonzero(stream >= 0)
    order = messages[np.argsort(stream[messages], kind="stable")]
    same = stream[order[1:]] == stream[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    has_one_before = np.zeros(len(stream), np.int64)
    has_one_before[order[1:][same]] = 1
    return following, has_one_before


def _messages_needed(schedule: Schedule, arrival: NDArray[np.int32], own_stage: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the end of a message that each op waits for on its rank, -1 for none."""
    kind = schedule.columns.kind
    receives = (arrival >= 0) & among(kind[arrival], RECEIVE_KINDS)
    needed = np.where(receives, arrival, NONE)
    needed[among(kind, RECEIVE_KINDS)] = NONE
    waits = among(kind, SEND_WAIT_KINDS)
    needed[waits] = own_stage[waits]
    return needed.astype(np.int32)


def results_left(timeline: Timeline) -> Floats | None:
    """Return the time at which each timed op's result begins to move, if a message carries it, else its end.

    Shape (timed ops,), those of ``Timeline.timed``. None for a timeline without messages.
    """
    schedule = timeline.schedule
    sends = schedule.where(Kind.SEND_F, Kind.SEND_B)
    if not sends.size:
        return None
    left = timeline.end.copy()
    left[dependencies(schedule).own_stage[sends]] = timeline.start[sends]
    timed: Floats = left[timeline.timed]
    return timed


def held_up_by(timeline: Timeline, streams: Streams) -> Ints:
    """Return the end of another message that kept each SEND and RECV from beginning earlier, -1 for none; shape (ops,).

    It is the one before on the stream of either end that ended when the message began.
    """
    schedule = timeline.schedule
    partner = message_partners(schedule, dependencies(schedule))
    following, _ = _queues(stream_of(schedule, partner, streams))
    ahead = np.flatnonzero(following >= 0)
    behind = following[ahead]
    # A message that takes no time holds up none.
    waited = (timeline.end[ahead] == timeline.start[behind]) & (timeline.end[ahead] > timeline.start[ahead])
    blocker = np.full(len(schedule), NONE, np.int64)
    for ends in (partner[behind[waited]], behind[waited]):
        blocker[ends] = ahead[waited]
    return blocker
