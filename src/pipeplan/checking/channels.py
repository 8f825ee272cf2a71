"""Checks that messages between ranks reach the ops that need them.

A channel leads from one rank to another. Point-to-point messages carry no tag: the k-th receive on a channel gets the
k-th message sent on it, no matter which message it expects. So every result that goes to another rank needs one send
and one receive, and on every channel the order of sends must be the order of receives. If it is not, and all messages
have the same shape, nothing fails: the gradients are silently wrong.

PyTorch's own lowering breaks this rule if it defers receives (``defer_pp_recv``), for ZBV, InterleavedZeroBubble and
DualPipeV, and its own simulation does not notice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN, present
from pipeplan.model import COMMUNICATION_KINDS, RECEIVE_KINDS, Bools, Dependencies, Kind, Op, Schedule

PARTNER = {
    Kind.SEND_F: (Kind.RECV_F, +1),
    Kind.RECV_F: (Kind.SEND_F, -1),
    Kind.SEND_B: (Kind.RECV_B, -1),
    Kind.RECV_B: (Kind.SEND_B, +1),
}
"""Other end of a message: its kind, and the offset of its stage."""

_MISSING = {
    Kind.SEND_F: "rank {there} would take the next message of this channel for it, or wait forever at {other}",
    Kind.SEND_B: "rank {there} would take the next message of this channel for it, or wait forever at {other}",
    Kind.RECV_F: "{stage}F{rest} would run without its input, and the channel's next receive would take {other}",
    Kind.RECV_B: "the backward would run without its gradient, and the channel's next receive would take {other}",
}


def has_messages(schedule: Schedule) -> bool:
    """Return True if the schedule contains sends or receives."""
    return not schedule.kinds.isdisjoint(COMMUNICATION_KINDS)


def check_messages(schedule: Schedule) -> Iterator[Finding]:
    """Yield results that cross ranks without a send or a receive, and superfluous sends and receives.

    :func:`check_structure` must have found no problem.
    """
    # leaves: results that stage s sends on; arrives: the same results, by the stage that receives them.
    onward = _onward(schedule)
    beyond = np.zeros((1, onward.shape[1]), np.bool_)
    leaves, arrives = np.concatenate((onward, beyond)).ravel(), np.concatenate((beyond, onward)).ravel()
    expected = {Kind.SEND_F: leaves, Kind.RECV_B: leaves, Kind.RECV_F: arrives, Kind.SEND_B: arrives}
    for kind in COMMUNICATION_KINDS:
        missing = np.flatnonzero(expected[kind] & ~present(schedule, kind))
        yield from (_missing(schedule, kind, key) for key in missing[:SHOWN].tolist())
        if len(missing) > SHOWN:
            yield finding("message", "", f"{len(missing) - SHOWN} more {kind.name} are missing")
        where = schedule.where(kind)
        extra = where[~expected[kind][schedule.key[where]]]
        yield from (_superfluous_message(schedule, position) for position in extra[:SHOWN].tolist())


def _onward(schedule: Schedule) -> Bools:
    """Return a mask of the results that go to another rank, shape (stages - 1, microbatches * slices)."""
    microbatches = np.arange(schedule.microbatches, dtype=np.int32)
    copies = schedule.placement.copy_of(microbatches, schedule.microbatches)
    ranks = schedule.placement.table[copies].T
    return np.repeat(ranks[:-1] != ranks[1:], schedule.slices, axis=1)


def _op_of(schedule: Schedule, kind: Kind, key: int) -> Op:
    stage, rest = divmod(key, schedule.microbatches * schedule.slices)
    return Op(kind, stage, *divmod(rest, schedule.slices))


def _partner(op: Op) -> Op:
    kind, step = PARTNER[op.kind]
    return Op(kind, op.stage + step, op.microbatch, op.slice)


def _rank_of(schedule: Schedule, op: Op) -> int:
    copy = schedule.placement.copy_of(np.array([op.microbatch], np.int32), schedule.microbatches)
    return schedule.placement.rank_of[int(copy[0])][op.stage]


def _missing(schedule: Schedule, kind: Kind, key: int) -> Finding:
    op = _op_of(schedule, kind, key)
    other = _partner(op)
    rest = str(op).removeprefix(f"{op.stage}{op.kind.name}")
    then = _MISSING[kind].format(there=_rank_of(schedule, other), other=other, stage=op.stage, rest=rest)
    return finding("message", f"rank {_rank_of(schedule, op)}", f"{op} is missing: {then}")


def _superfluous_message(schedule: Schedule, position: int) -> Finding:
    op = schedule.op(position)
    other = _partner(op)
    if not 0 <= other.stage < schedule.stages:
        why = f"stage {op.stage} is at the end of the model and has no neighbor there"
    else:
        why = f"stages {op.stage} and {other.stage} are on the same rank and need no message"
    then = "it would wait forever" if op.kind in RECEIVE_KINDS else "no rank would receive it"
    return finding("message", schedule.place(position), f"is superfluous: {why}; {then}", position)


def check_channels(schedule: Schedule, needs: Dependencies, *, by_direction: bool = False) -> Iterator[Finding]:
    """Yield the first message of each channel that is received out of order.

    :func:`check_messages` must have found no problem. With ``by_direction``, activations and gradients have channels of
    their own.
    """
    receives = schedule.where(*RECEIVE_KINDS)
    sends = needs.arrival[receives]
    sender, receiver = schedule.rank[sends].astype(np.int64), schedule.rank[receives]
    channel = sender * schedule.ranks + receiver
    if by_direction:
        channel = 2 * channel + (schedule.columns.kind[receives] == Kind.RECV_B)
    by_receive = np.argsort(channel, kind="stable")
    by_send = np.lexsort((sends, channel))
    wrong = by_receive != by_send
    if not wrong.any():
        return
    _, starts = np.unique(channel[by_receive], return_index=True)
    for start, stop in zip(starts, np.append(starts[1:], len(channel)), strict=True):
        out_of_order = np.flatnonzero(wrong[start:stop])
        if out_of_order.size:
            first = int(start + out_of_order[0])
            counts = int(out_of_order[0]) + 1, len(out_of_order), int(stop - start)
            yield _disorder(schedule, int(receives[by_receive[first]]), int(sends[by_send[first]]), counts)


def _disorder(schedule: Schedule, receive: int, sent: int, counts: tuple[int, int, int]) -> Finding:
    """Describe a receive that gets another message.

    ``counts`` are the receive's number on the channel, and the numbers of messages out of order and in all.
    """
    number, wrong, messages = counts
    sender, receiver = schedule.rank[sent], schedule.rank[receive]
    message = (
        f"is receive {number} on the channel from rank {sender} to rank {receiver}, but message {number} there is "
        f"{schedule.op(sent)}: messages carry no tag, so it would get that data; if the shapes agree, gradients are "
        f"silently wrong ({wrong} of {messages} messages on this channel are out of order)"
    )
    return finding("channel", schedule.place(receive), message, receive)
