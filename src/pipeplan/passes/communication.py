"""From a compute schedule to one that says when each transfer is sent and received.

Both forms keep every channel (one rank to another) first-in-first-out, because point-to-point messages carry no tag: the
k-th receive on a channel gets the k-th message sent on it, whatever either side believes it to be.

``early``
    A receive stands as soon as its message can be there. All ranks follow one total order of events (every op at its step
    when each op takes one unit of time), in which a transfer's two ends stand together; so no two ranks ever wait for each
    other, even where sends and receives block until they meet. Each transfer may also stand some steps later.
``late``
    A receive stands right before the op that needs it, or before the receive of a later message of its channel, whichever
    comes first. Buffers are held shortest. Sends must not block: two ranks may each send before they receive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import DeadlockError
from pipeplan.model import (
    COMMUNICATION_KINDS,
    SEND_WAIT_KINDS,
    Columns,
    Dependencies,
    Ints,
    Kind,
    Schedule,
    among,
    concatenate,
    crosses_ranks,
    dependencies,
    ops,
    progress,
)

Receives = Literal["early", "late"]


@dataclass(frozen=True, slots=True, eq=False)
class _Messages:
    """Every transfer between ranks: the positions of its producer and consumer, and its two ends."""

    producer: NDArray[np.intp]
    consumer: NDArray[np.intp]
    sends: Columns
    recvs: Columns

    def __len__(self) -> int:
        return len(self.producer)


def insert_communication(schedule: Schedule, *, receives: Receives = "early", delays: Ints | None = None) -> Schedule:
    """The schedule with a SEND and a RECV for every result that goes to another rank.

    A schedule that holds communication already loses it first.

    Parameters
    ----------
    receives
        When a receive stands.
    delays
        With early receives: how many steps later each op's result is sent than at its own step, shape (ops,) of the schedule
        without communication. None is sent later than right before its consumer's step.

    Raises
    ------
    DeadlockError
        If ranks wait for each other: then there is no moment at which to send.
    """
    compute = without_communication(schedule)
    needs = dependencies(compute)
    step = _steps(compute, needs)
    messages = _messages(compute, needs)
    if receives == "late":
        return _late(compute, messages)
    sent = step[messages.producer]
    if delays is not None:
        sent = np.minimum(sent + np.maximum(delays[messages.producer], 0), step[messages.consumer] - 1)
    return _early(compute, messages, step, sent)


def without_communication(schedule: Schedule) -> Schedule:
    """The schedule without its SENDs and RECVs, and without the waits for the SENDs."""
    return schedule.keep(~among(schedule.columns.kind, (*COMMUNICATION_KINDS, *SEND_WAIT_KINDS)))


def _steps(schedule: Schedule, needs: Dependencies) -> NDArray[np.int32]:
    run = progress(schedule, needs)
    if not run.complete:
        stuck = int(np.flatnonzero(run.step == 0)[0])
        raise DeadlockError(f"{schedule.place(stuck)} never runs, so there is no moment at which to send its result")
    return run.step


def _messages(schedule: Schedule, needs: Dependencies) -> _Messages:
    """The transfers; their ends are named as PyTorch does, by the stage at which they stand."""
    consumer = np.flatnonzero(crosses_ranks(schedule, needs.arrival))
    producer = needs.arrival[consumer].astype(np.intp)
    columns = schedule.columns
    forward = columns.kind[producer] == Kind.F
    what = columns.microbatch[producer], columns.slice[producer]
    sends = ops(np.where(forward, Kind.SEND_F, Kind.SEND_B), columns.stage[producer], *what)
    recvs = ops(np.where(forward, Kind.RECV_F, Kind.RECV_B), columns.stage[consumer], *what)
    return _Messages(producer, consumer, sends, recvs)


def _early(
    schedule: Schedule, messages: _Messages, step: NDArray[np.int32], sent: NDArray[np.signedinteger]
) -> Schedule:
    """Ops and both ends of each transfer in one total order: a transfer behind all of the step at which it is sent."""
    turn = np.empty(len(messages), np.int64)
    turn[np.lexsort((schedule.rank[messages.producer], sent))] = np.arange(1, len(messages) + 1)
    when = np.concatenate((step, sent, sent))
    then = np.concatenate((np.zeros(len(schedule), np.int64), turn, turn))
    return _merged(schedule, messages, when, then)


def _late(schedule: Schedule, messages: _Messages) -> Schedule:
    """Sends right behind their producer, receives right before the op at which they are due; pairs stay together."""
    due = _due(schedule, messages)
    position = np.arange(len(schedule))
    behind = messages.producer + np.append(schedule.joined[1:], False)[messages.producer]
    before = due - schedule.joined[due]
    when = np.concatenate((3 * position, 3 * behind + 1, 3 * before - 1))
    then = np.concatenate((position, messages.producer + len(schedule), messages.producer))
    return _merged(schedule, messages, when, then)


def _due(schedule: Schedule, messages: _Messages) -> NDArray[np.intp]:
    """The op before which each message must be received: its consumer, or that of a later message of its channel."""
    count = len(schedule)
    channel = schedule.rank[messages.producer].astype(np.int64) * schedule.ranks + schedule.rank[messages.consumer]
    order = np.lexsort((messages.producer, channel))[::-1]
    # Walked from the last channel to the first, each channel's numbers are below all before: the minimum starts anew.
    earliest = np.minimum.accumulate((channel * count + messages.consumer)[order])
    due = np.empty(len(messages), np.intp)
    due[order] = earliest - channel[order] * count
    return due


def _merged(
    schedule: Schedule, messages: _Messages, when: NDArray[np.signedinteger], then: NDArray[np.int64]
) -> Schedule:
    """Ops, sends and receives, sorted on each rank by ``when`` and ``then``; of equals the schedule's order stands."""
    rank = schedule.rank
    ranks = np.concatenate((rank, rank[messages.producer], rank[messages.consumer]))
    order = np.lexsort((np.arange(len(ranks)), then, when, ranks))
    columns = concatenate(schedule.columns, messages.sends, messages.recvs)[order]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(ranks, minlength=schedule.ranks)))).astype(np.int64)
    return replace(schedule, columns=columns, offsets=offsets)
