"""Checks that a schedule can run if its messages run in order on communication streams.

A rank posts a send or receive when it comes to it, and goes on. A message begins when both ends are posted and nothing is
ahead of them on their streams. So ranks wait for each other if what must happen first runs in a circle: an op waits for its
receive, a message for the messages ahead of it on both streams and for the ops after which its ends are posted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.checking.findings import Finding, finding
from pipeplan.model import (
    COMMUNICATION_KINDS,
    RECEIVE_KINDS,
    SEND_WAIT_KINDS,
    Dependencies,
    Kind,
    Schedule,
    Streams,
    among,
)

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
