"""Checks that messages between ranks reach the ops that need them, in order and without waiting in a circle.

A channel leads from one rank to another. Point-to-point messages carry no tag: the k-th receive on a channel gets the
k-th message sent on it, no matter which message it expects. So every result that goes to another rank needs one send
and one receive, and on every channel the order of sends must be the order of receives. If it is not, and all messages
have the same shape, nothing fails: the gradients are silently wrong.

PyTorch's own lowering breaks this rule if it defers receives (``defer_pp_recv``), for ZBV, InterleavedZeroBubble and
DualPipeV, and its own simulation does not notice.

On *communication streams*, a rank posts a send or receive when it comes to it, and goes on. A message begins when both ends
are posted and nothing is ahead of them on their streams. So ranks wait for each other if what must happen first runs in a
circle: an op waits for its receive, a message for the messages ahead of it on both streams and for the ops after which its
ends are posted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN, op_of, present, rank_of
from pipeplan.model import (
    COMMUNICATION_KINDS,
    RECEIVE_KINDS,
    SEND_WAIT_KINDS,
    Bools,
    Dependencies,
    Kind,
    Op,
    Schedule,
    Streams,
    among,
)

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


def _partner(op: Op) -> Op:
    kind, step = PARTNER[op.kind]
    return Op(kind, op.stage + step, op.microbatch, op.slice)


def _missing(schedule: Schedule, kind: Kind, key: int) -> Finding:
    op = op_of(schedule, kind, key)
    other = _partner(op)
    rest = str(op).removeprefix(f"{op.stage}{op.kind.name}")
    then = _MISSING[kind].format(there=rank_of(schedule, other), other=other, stage=op.stage, rest=rest)
    return finding("message", f"rank {rank_of(schedule, op)}", f"{op} is missing: {then}")


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


_STREAMS: dict[Streams, str] = {
    "rank": "a stream for each rank",
    "direction": "a stream for activations and one for gradients",
    "edge": "a stream for each pair of ranks",
}


def check_streams(schedule: Schedule, needs: Dependencies, streams: Streams) -> Iterator[Finding]:
    """Yield the circle of messages and ops that wait for each other, if there is one.

    Messages and channels must be valid.
    """
    waits = _Waits(schedule, needs, streams)
    circle = waits.circle()
    if circle:
        steps = [waits.spelled(node, ahead) for node, ahead in zip(circle, circle[1:] + circle[:1], strict=True)]
        message = f"deadlock with {_STREAMS[streams]}, messages and ops wait for each other: {'; '.join(steps)}"
        yield finding("streams", schedule.place(circle[0]), message, circle[0], tuple(circle[1:]))


@dataclass(frozen=True, slots=True)
class _Wait:
    """An op or message that must be done first, and the rank on which another one waits for it."""

    ahead: int
    rank: int


class _Waits:
    """Graph of the ops and messages that every op and message of a schedule waits for.

    A message is known by the position of its SEND, an overlapped pair by that of its first op.
    """

    def __init__(self, schedule: Schedule, needs: Dependencies, streams: Streams) -> None:
        self.schedule = schedule
        kind, arrival = schedule.columns.kind, needs.arrival
        self._message = among(kind, COMMUNICATION_KINDS).tolist()
        receives = among(kind, RECEIVE_KINDS)
        self._node: list[int] = np.where(receives, arrival, np.arange(len(schedule)) - schedule.joined).tolist()
        self._other = {int(arrival[op]): int(op) for op in np.flatnonzero(receives)}
        needed = np.where((arrival >= 0) & among(kind[arrival], RECEIVE_KINDS), arrival, -1)
        waits_for_send = among(kind, SEND_WAIT_KINDS)
        self._needed: list[int] = np.where(waits_for_send, needs.own_stage, needed).tolist()
        self.of: list[list[_Wait]] = [[] for _ in range(len(schedule))]
        for rank in range(schedule.ranks):
            self._follow(rank, streams)

    def _follow(self, rank: int, streams: Streams) -> None:
        """Add what the ops of a rank wait for, in the order of its row."""
        before = -1
        last_on: dict[tuple[bool, int], int] = {}
        for op in range(*self.schedule.offsets[rank : rank + 2].tolist()):
            node = self._node[op]
            ahead = [before]
            if self._message[op]:
                stream = self._stream(op, streams)
                ahead.append(last_on.get(stream, -1))
                last_on[stream] = node
            else:
                ahead.append(self._node[self._needed[op]] if self._needed[op] >= 0 else -1)
                before = node
            self.of[node] += [_Wait(other, rank) for other in ahead if other >= 0 and other != node]

    def _stream(self, op: int, streams: Streams) -> tuple[bool, int]:
        """Return which one of its rank's streams an end of a message takes."""
        kind = Kind(self.schedule.columns.kind[op])
        if streams == "direction":
            return kind in (Kind.SEND_B, Kind.RECV_B), 0
        if streams == "edge":
            send = self._node[op]
            peer = send if send != op else self._other[send]
            return send == op, int(self.schedule.rank[peer])
        return False, 0

    def circle(self) -> list[int]:
        """Return ops and messages that wait for each other, each for the next and the last for the first; else empty."""
        behind: list[list[int]] = [[] for _ in self.of]
        for node, ahead in enumerate(self.of):
            for wait in ahead:
                behind[wait.ahead].append(node)
        missing = [len(ahead) for ahead in self.of]
        done = [node for node, count in enumerate(missing) if not count]
        for node in done:
            for other in behind[node]:
                missing[other] -= 1
                if not missing[other]:
                    done.append(other)
        node = next((node for node, count in enumerate(missing) if count), -1)
        # Whatever is not done waits for something that is not done, so following it ends in a circle.
        path: dict[int, int] = {}
        while node >= 0 and node not in path:
            path[node] = len(path)
            node = next(wait.ahead for wait in self.of[node] if missing[wait.ahead])
        circle = list(path)[path[node] :] if path else []
        # An op that waits for an op before it in the row adds nothing: what waits for the one waits for the other.
        return [
            node
            for node, ahead in zip(circle, circle[1:] + circle[:1], strict=True)
            if self._message[node] or self._message[ahead]
        ]

    def spelled(self, node: int, ahead: int) -> str:
        """Return why an op or message waits for the next one of a circle, in words."""
        schedule = self.schedule
        if not self._message[node]:
            end = self._end(ahead, int(schedule.rank[node]))
            return f"{schedule.op(node)} on rank {schedule.rank[node]} waits for {schedule.op(end)}"
        if self._message[ahead]:
            rank = next(wait.rank for wait in self.of[node] if wait.ahead == ahead)
            here, there = self._end(node, rank), self._end(ahead, rank)
            return f"{schedule.op(here)} on rank {rank} is behind {schedule.op(there)} on its stream"
        here = self._end(node, int(schedule.rank[ahead]))
        return f"{schedule.op(here)} on rank {schedule.rank[ahead]} is posted after {schedule.op(ahead)}"

    def _end(self, message: int, rank: int) -> int:
        """Return the end of a message that is on a rank."""
        return message if self.schedule.rank[message] == rank else self._other[message]
