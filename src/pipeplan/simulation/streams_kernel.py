"""The simulator's hot loop for messages that run in order on communication streams, beside the computation.

A rank runs its row. When it comes to a SEND or RECV, it *posts* the message's end and goes on. Posted ends form a queue on
their stream, in the order of the row. A message begins when both its ends are posted and both are first in their queues::

    rank 0    F0 | F1 | F2                SEND_F0 is posted when F0 has ended, RECV_B7 right after it
    stream       SEND_F0 ==  RECV_B7 ......... ====
                                           SEND_F1, posted when F1 has ended, begins behind RECV_B7

A message therefore waits for up to four events: two posts, and the end of the message before it on each of the two streams.
The loop counts the events that are still missing, and times a message when its last one is there. Ops and events are
handled once each, so the time is linear in the ops.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.model import Floats, Ints, Ints32
from pipeplan.simulation.timing_kernel import RowTimes, ScheduleRows, ready_beside, stack_all, time_beside


class Messages(NamedTuple):
    """Sends and receives. A message is known by the smaller number of its two ends.

    ========== ================================================================================================
    partner    other end of a send or receive, -1 for all other ops
    following  next end on the stream of a send or receive, else -1
    needed     end of the same rank's message that the op needs: the receive of an input, or the send that an op
               such as WAIT_SEND_F waits for; else -1
    rank_of    rank of the op
    ========== ================================================================================================
    """

    partner: Annotated[Ints32, "ops"]
    following: Annotated[Ints32, "ops"]
    needed: Annotated[Ints32, "ops"]
    rank_of: Annotated[Ints32, "ops"]


class MessageState(NamedTuple):
    """State of the messages.

    ========== ================================================================================================
    ready      latest event that the message has had so far; 0 at first
    missing    events that the message still waits for: at first 2, and 1 more for each end that is not the
               first of its stream
    waits_for  end of a message for which each rank waits, else -1
    begun      messages that have begun, but have not been handled yet
    ========== ================================================================================================
    """

    ready: Annotated[Floats, "ops"]
    missing: Annotated[Ints, "ops"]
    waits_for: Annotated[Ints, "ranks"]
    begun: Annotated[Ints, "ops"]


def time_ops_on_streams(rows: ScheduleRows, messages: Messages, times: RowTimes, state: MessageState) -> int:
    """Time every op that can run. Return how many were timed."""
    joined, duration, channel = rows.joined, rows.duration, rows.channel
    partner, following, rank_of = messages.partner, messages.following, messages.rank_of
    start, end, stack = times.start, times.end, times.stack
    ready, missing, waits_for, begun = state.ready, state.missing, state.waits_for, state.begun
    channels = len(channel) > 0
    top = stack_all(rows, times)
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        waits_for[rank] = -1
        op = times.cursor[rank]
        stop = rows.offsets[rank + 1]
        clock = times.free[rank]
        while op < stop:
            other = partner[op]
            if other >= 0:
                # The rank posts this end of a message, and goes on.
                posted = min(op, other)
                ready[posted] = max(ready[posted], clock)
                missing[posted] -= 1
                begun[0] = posted
                pending = 1 if missing[posted] == 0 else 0
                # Each message that begins frees the heads of its two streams when it ends, where others may begin.
                while pending > 0:
                    pending -= 1
                    first = begun[pending]
                    arrived = ready[first] + duration[first]
                    done += 2
                    for side in range(2):
                        here = first if side == 0 else partner[first]
                        start[here] = ready[first]
                        end[here] = arrived
                        behind = following[here]
                        if behind >= 0:
                            later = min(behind, partner[behind])
                            ready[later] = max(ready[later], arrived)
                            missing[later] -= 1
                            if missing[later] == 0:
                                begun[pending] = later
                                pending += 1
                        # A rank that waited for this message can go on.
                        if waits_for[rank_of[here]] == here:
                            stack[top] = rank_of[here]
                            top += 1
                op += 1
                continue
            # The pair or the single op from op to after.
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            # Every other op starts when its rank is free, and its messages, activations and parameters are there.
            blocker = -1
            begin = clock
            for member in range(op, after):
                needed = messages.needed[member]
                if needed >= 0:
                    if end[needed] < 0:
                        blocker = needed
                        break
                    begin = max(begin, end[needed])
            if blocker >= 0:
                waits_for[rank] = blocker
                break
            if channels:
                if channel[op] >= 0:
                    clock = time_beside(rows, op, rank, clock, times)
                    op = after
                    done += 1
                    continue
                begin = ready_beside(rows, op, after, begin, end)
            # It runs, alone or as a pair.
            clock = begin + duration[op]
            for member in range(op, after):
                start[member] = begin
                end[member] = clock
            done += after - op
            op = after
        times.cursor[rank] = op
        times.free[rank] = clock
    return done
