"""Insertion of sends and receives into a schedule of compute ops.

Both modes keep every channel (from one rank to another) first in, first out. Point-to-point messages carry no tag, so
the k-th receive on a channel gets the k-th message sent on it, no matter which message it expects.

``early``
    A receive is placed at the earliest step at which its message can arrive. All ranks follow one total order of events
    (every op at its step if each op takes one unit of time), in which both ends of a transfer are adjacent. So no two
    ranks ever wait for each other, even if sends and receives block until they meet. Each transfer may also be delayed
    by some steps. The times of a run may take the place of the steps: a receive is then placed before the op that runs
    when its message is sent, and so does not delay sends of earlier results.
``late``
    A receive is placed right before the op that needs it, or before the receive of a later message of its channel,
    whichever comes first. Buffers are held for the shortest time. Sends must not block, because two ranks may both send
    before they receive.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import (
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    SEND_WAIT_KINDS,
    Columns,
    Dependencies,
    Floats,
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
    """All transfers between ranks: the positions of their producers and consumers, and their two ends."""

    producer: NDArray[np.intp]
    consumer: NDArray[np.intp]
    sends: Columns
    recvs: Columns

    def __len__(self) -> int:
        return len(self.producer)


def insert_communication(
    schedule: Schedule, *, receives: Receives = "early", delays: Ints | None = None, ends: Floats | None = None
) -> Schedule:
    """Return the schedule with a SEND and a RECV for every result that goes to another rank.

    Existing communication is removed first.

    Parameters
    ----------
    receives
        Placement of receives.
    delays
        For early receives: number of steps by which to delay the transfer of each op's result, shape (ops,) of the
        schedule without communication. No transfer is delayed beyond the step before its consumer.
    ends
        For early receives: end of each op in a run of the schedule without communication, shape (ops,); the order of these
        times replaces that of the steps.

    Raises
    ------
    DeadlockError
        If ranks wait for each other, so that some results are never sent.
    """
    compute = without_communication(schedule)
    needs = dependencies(compute)
    step = _steps(compute, needs)
    messages = _messages(compute, needs)
    if ends is not None:
        timed = _steps_in_time(compute, ends)
        # Of ops so short that times cannot tell them apart, the steps can.
        step = timed if (timed[messages.producer] < timed[messages.consumer]).all() else step
    if receives == "late":
        return _late(compute, messages)
    sent = step[messages.producer]
    if delays is not None:
        sent = np.minimum(sent + np.maximum(delays[messages.producer], 0), step[messages.consumer] - 1)
    return _early(compute, messages, step, sent)


def without_communication(schedule: Schedule) -> Schedule:
    """Return the schedule without its SENDs and RECVs, and without the waits for SENDs."""
    return schedule.keep(~among(schedule.columns.kind, (*COMMUNICATION_KINDS, *SEND_WAIT_KINDS)))


def _steps(schedule: Schedule, needs: Dependencies) -> NDArray[np.int32]:
    run = progress(schedule, needs)
    if not run.complete:
        stuck = int(np.flatnonzero(run.step == 0)[0])
        raise DeadlockError(f"{schedule.place(stuck)} never runs, so its result is never sent")
    return run.step


def _steps_in_time(schedule: Schedule, ends: Floats) -> NDArray[np.int32]:
    """Return the step of each op if every end of a compute op begins a new one; other ops have that of the op before."""
    ends = np.where(among(schedule.columns.kind, COMPUTE_KINDS), ends, -np.inf)
    for first, stop in pairwise(schedule.offsets.tolist()):
        ends[first:stop] = np.maximum.accumulate(ends[first:stop])
    return np.unique(ends, return_inverse=True)[1].astype(np.int32)


def _messages(schedule: Schedule, needs: Dependencies) -> _Messages:
    """Return all transfers. Each end has the number of the stage on its own rank, as in PyTorch."""
    consumer = np.flatnonzero(crosses_ranks(schedule, needs.arrival))
    producer = needs.arrival[consumer].astype(np.intp)
    columns = schedule.columns
    forward = columns.kind[producer] == Kind.F
    indices = columns.microbatch[producer], columns.slice[producer]
    sends = ops(np.where(forward, Kind.SEND_F, Kind.SEND_B), columns.stage[producer], *indices)
    recvs = ops(np.where(forward, Kind.RECV_F, Kind.RECV_B), columns.stage[consumer], *indices)
    return _Messages(producer, consumer, sends, recvs)


def _early(
    schedule: Schedule, messages: _Messages, step: NDArray[np.int32], sent: NDArray[np.signedinteger]
) -> Schedule:
    """Return ops and both ends of each transfer in one total order, with transfers after all ops of their step."""
    turn = np.empty(len(messages), np.int64)
    turn[np.lexsort((schedule.rank[messages.producer], sent))] = np.arange(1, len(messages) + 1)
    when = np.concatenate((step, sent, sent))
    then = np.concatenate((np.zeros(len(schedule), np.int64), turn, turn))
    return _merged(schedule, messages, when, then)


def _late(schedule: Schedule, messages: _Messages) -> Schedule:
    """Return the schedule with sends right after their producer and receives right before they are due."""
    due = _due(schedule, messages)
    position = np.arange(len(schedule))
    behind = messages.producer + schedule.begins_pair[messages.producer]
    before = due - schedule.joined[due]
    when = np.concatenate((3 * position, 3 * behind + 1, 3 * before - 1))
    then = np.concatenate((position, messages.producer + len(schedule), messages.producer))
    return _merged(schedule, messages, when, then)


def _due(schedule: Schedule, messages: _Messages) -> NDArray[np.intp]:
    """Return the op before which each message must be received: its consumer, or that of a later message on its channel."""
    count = len(schedule)
    channel = schedule.rank[messages.producer].astype(np.int64) * schedule.ranks + schedule.rank[messages.consumer]
    order = np.lexsort((messages.producer, channel))[::-1]
    # The order goes from the last channel to the first. The numbers of each channel are below all previous ones, so that the
    # running minimum restarts at every channel.
    earliest = np.minimum.accumulate((channel * count + messages.consumer)[order])
    due = np.empty(len(messages), np.intp)
    due[order] = earliest - channel[order] * count
    return due


def _merged(
    schedule: Schedule, messages: _Messages, when: NDArray[np.signedinteger], then: NDArray[np.int64]
) -> Schedule:
    """Return ops, sends and receives, sorted on each rank by ``when``, then ``then``, then the schedule's order."""
    rank = schedule.rank
    ranks = np.concatenate((rank, rank[messages.producer], rank[messages.consumer]))
    order = np.lexsort((np.arange(len(ranks)), then, when, ranks))
    return schedule.arranged(concatenate(schedule.columns, messages.sends, messages.recvs)[order], ranks)
