"""Do the messages between ranks reach those for whom they are meant?

A channel is one rank's way to another. Its point-to-point messages carry no tag: the k-th receive on a channel gets the
k-th message sent on it, whatever either side believes it to be. So for every result that goes to another rank there must be
one send and one receive, and on every channel the order of sends must be the order of receives. Where it is not, nothing
fails as long as the messages have one shape: the gradients are wrong, silently.

PyTorch's own lowering breaks the rule where it defers receives (``defer_pp_recv``), for ZBV, InterleavedZeroBubble and
DualPipeV, and its own simulation passes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.finding import Finding
from pipeplan.checking.structure import SHOWN, present
from pipeplan.model import COMMUNICATION_KINDS, RECEIVE_KINDS, Bools, Dependencies, Kind, Op, Schedule

PARTNER = {
    Kind.SEND_F: (Kind.RECV_F, +1),
    Kind.RECV_F: (Kind.SEND_F, -1),
    Kind.SEND_B: (Kind.RECV_B, -1),
    Kind.RECV_B: (Kind.SEND_B, +1),
}
"""The other end of a message: its kind, and the step to its stage."""

_MISSING = {
    Kind.SEND_F: "rank {there} would take the next message of this channel for it, or wait for ever at {other}",
    Kind.SEND_B: "rank {there} would take the next message of this channel for it, or wait for ever at {other}",
    Kind.RECV_F: "{stage}F{rest} would run without its input, and {other} would be taken by the channel's next receive",
    Kind.RECV_B: "the backward would run without its gradient, and {other} would be taken by the channel's next receive",
}


def communicates(schedule: Schedule) -> bool:
    """Whether a schedule says when it sends and receives."""
    return not schedule.kinds.isdisjoint(COMMUNICATION_KINDS)


def check_messages(schedule: Schedule) -> Iterator[Finding]:
    """A send and a receive for every result that goes to another rank, and no others. Needs a right structure."""
    onward = _onward(schedule)
    beyond = np.zeros((1, onward.shape[1]), np.bool_)
    leaves, arrives = np.concatenate((onward, beyond)).ravel(), np.concatenate((beyond, onward)).ravel()
    expected = {Kind.SEND_F: leaves, Kind.RECV_B: leaves, Kind.RECV_F: arrives, Kind.SEND_B: arrives}
    for kind in COMMUNICATION_KINDS:
        missing = np.flatnonzero(expected[kind] & ~present(schedule, kind))
        yield from (_missing(schedule, kind, key) for key in missing[:SHOWN].tolist())
        if len(missing) > SHOWN:
            yield Finding("message", "", f"{len(missing) - SHOWN} more {kind.name} are missing")
        where = schedule.where(kind)
        extra = where[~expected[kind][schedule.key[where]]]
        yield from (_extra(schedule, position) for position in extra[:SHOWN].tolist())


def _onward(schedule: Schedule) -> Bools:
    """Whether the next stage is on another rank: shape (stages - 1, microbatches * slices)."""
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
    return Finding("message", f"rank {_rank_of(schedule, op)}", f"{op} is missing: {then}")


def _extra(schedule: Schedule, position: int) -> Finding:
    op = schedule.op(position)
    other = _partner(op)
    if not 0 <= other.stage < schedule.stages:
        why = f"stage {op.stage} is at the end of the model, where nothing is to be sent or received"
    else:
        why = f"stages {op.stage} and {other.stage} are on one rank, which hands the result on by itself"
    then = "it would wait for ever" if op.kind in RECEIVE_KINDS else "nobody would receive it"
    return Finding("message", schedule.place(position), f"is one too many: {why}; {then}", position)


def check_channels(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """On every channel, messages are received in the order in which they are sent: the first that is not, for each.

    Needs :func:`check_messages` to find nothing.
    """
    receives = schedule.where(*RECEIVE_KINDS)
    sends = needs.arrival[receives]
    sender, receiver = schedule.rank[sends].astype(np.int64), schedule.rank[receives]
    channel = sender * schedule.ranks + receiver
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
    """A receive that gets another's message: ``counts`` are its number on the channel, those out of order, and all."""
    number, wrong, messages = counts
    sender, receiver = schedule.rank[sent], schedule.rank[receive]
    message = (
        f"is receive {number} on the channel from rank {sender} to rank {receiver}, and message {number} there is "
        f"{schedule.op(sent)}: messages carry no tag, so it would get that one's data, and where the shapes agree nothing "
        f"fails but the gradients are wrong ({wrong} of {messages} messages on this channel are out of order)"
    )
    return Finding("channel", schedule.place(receive), message, receive)
