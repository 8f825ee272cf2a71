"""The obvious slow simulator of communication streams: events in a heap, queues in deques; and an executor without times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import numpy as np

from pipeplan.costs import Costs
from pipeplan.errors import DeadlockError
from pipeplan.model import Kind, Op, Schedule, Timeline
from tests.slow_simulator import (
    PARTNERS,
    Key,
    duration,
    key,
    lost_before,
    lost_behind,
    size,
    transfer_time,
    turns,
)

COMES_FROM = {Kind.F: Kind.RECV_F, Kind.B: Kind.RECV_B, Kind.I: Kind.RECV_B}
WAITS = {Kind.WAIT_SEND_F: Kind.SEND_F, Kind.WAIT_SEND_B: Kind.SEND_B}
SENDS = (Kind.SEND_F, Kind.SEND_B)


def other_end(op: Op) -> Key:
    """The other end of a message."""
    kind, step = PARTNERS[op.kind]
    return kind, op.stage + step, op.microbatch, op.slice


def awaited_messages(turn: tuple[Op, ...], present: set[Key]) -> list[Key]:
    """The ends of messages that must be over before a turn of the same rank."""
    ends = []
    for op in turn:
        kind = COMES_FROM.get(op.kind) or WAITS.get(op.kind)
        if kind is not None and (kind, op.stage, op.microbatch, op.slice) in present:
            ends.append((kind, op.stage, op.microbatch, op.slice))
    return ends


def stream_name(op: Op, rank: int, peer: int, streams: str) -> tuple[object, ...]:
    """The stream that one end of a message takes on its rank."""
    if streams == "rank":
        return (rank,)
    if streams == "direction":
        return rank, "activations" if op.kind in (Kind.SEND_F, Kind.RECV_F) else "gradients"
    return (rank, rank, peer) if op.kind in SENDS else (rank, peer, rank)


class Executor:
    """Runs the rows without times: ranks and queues go on in turn, until nothing changes any more."""

    def __init__(self, schedule: Schedule, streams: str) -> None:
        self.rows = [list(turns(schedule[rank])) for rank in range(schedule.ranks)]
        home = {key(op): rank for rank, row in enumerate(schedule) for op in row}
        present, over = set(home), set[Key]()
        at = [0] * schedule.ranks
        queues: dict[tuple[object, ...], deque[Key]] = {}
        posted: dict[Key, tuple[object, ...]] = {}
        changed = True
        while changed:
            changed = False
            for rank, row in enumerate(self.rows):
                while at[rank] < len(row):
                    turn = row[at[rank]]
                    if turn[0].kind in PARTNERS:
                        name = stream_name(turn[0], rank, home[other_end(turn[0])], streams)
                        queues.setdefault(name, deque()).append(key(turn[0]))
                        posted[key(turn[0])] = name
                    elif any(end not in over for end in awaited_messages(turn, present)):
                        break
                    at[rank] += 1
                    changed = True
            for queue in list(queues.values()):
                while queue:
                    here = queue[0]
                    there = other_end(Op(*here))
                    if there not in posted or queues[posted[there]][0] != there:
                        break
                    queue.popleft()
                    queues[posted[there]].popleft()
                    over |= {here, there}
                    changed = True
        self.stuck = any(at[rank] < len(row) for rank, row in enumerate(self.rows)) or any(queues.values())
        """True where the rows never end, or a message never does."""


def slow_streams(schedule: Schedule, costs: Costs, streams: str) -> Timeline:
    """Every rank runs its row; messages wait in queues beside it, and begin where both ends are first.

    Raises
    ------
    DeadlockError
        Where something is left when nothing happens any more.
    """
    run = _Run(schedule, costs, streams)
    order = [key(op) for row in schedule for op in row]
    left = [str(Op(*one)) for one in order if one not in run.times]
    if left:
        raise DeadlockError(f"never done: {', '.join(left)}")
    start, end = (np.array([run.times[one][side] for one in order]) for side in (0, 1))
    return Timeline(schedule, start, end)


class _Run:
    def __init__(self, schedule: Schedule, costs: Costs, streams: str) -> None:
        self.schedule, self.costs, self.streams = schedule, costs, streams
        self.rows = [deque(turns(schedule[rank])) for rank in range(schedule.ranks)]
        self.home = {key(op): rank for rank, row in enumerate(schedule) for op in row}
        self.busy = [False] * schedule.ranks
        self.queues: dict[tuple[object, ...], deque[Key]] = {}
        self.posted: dict[Key, tuple[object, ...]] = {}
        self.times: dict[Key, tuple[float, float]] = {}
        self.freed: dict[Key, float] = {}
        self.to_host, self.from_host = [0.0] * schedule.ranks, [0.0] * schedule.ranks
        self.moving: set[Key] = set()
        self.over: set[Key] = set()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.number = count()
        self.now = 0.0
        for rank in range(schedule.ranks):
            self._go_on(rank)
        while self.events:
            self.now, _, event = heappop(self.events)
            event()

    def _at(self, moment: float, event: Callable[[], None]) -> None:
        heappush(self.events, (moment, next(self.number), event))

    def _go_on(self, rank: int) -> None:
        """Post messages, and start the next op where all that it needs is there now."""
        row = self.rows[rank]
        while row and not self.busy[rank]:
            turn = row[0]
            first = turn[0]
            if first.kind in PARTNERS:
                row.popleft()
                queue = stream_name(first, rank, self.home[other_end(first)], self.streams)
                self.queues.setdefault(queue, deque()).append(key(first))
                self.posted[key(first)] = queue
                self._begin(queue)
            elif any(end not in self.over for end in awaited_messages(turn, set(self.home))):
                return
            elif first.kind in (Kind.OFFLOAD, Kind.RELOAD):
                row.popleft()
                self._copy(rank, first)
            else:
                back = [self.freed.get((Kind.RELOAD, *key(op)[1:]), 0.0) for op in turn if op.kind in (Kind.B, Kind.I)]
                if max(back, default=0.0) > self.now:
                    self._at(max(back), lambda: self._go_on(rank))
                    return
                row.popleft()
                self._compute(rank, turn)

    def _compute(self, rank: int, turn: tuple[Op, ...]) -> None:
        computes = turn[0].kind in (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)
        start = self.now + (lost_before(turn, self.schedule, self.costs) if computes else 0.0)
        end = start + (duration(turn, self.schedule, self.costs) if computes else 0.0)
        freed = end + (lost_behind(turn, self.schedule, self.costs) if computes else 0.0)
        for op in turn:
            self.times[key(op)], self.freed[key(op)] = (start, end), freed
        self._occupy(rank, freed)

    def _occupy(self, rank: int, until: float) -> None:
        self.busy[rank] = True

        def free() -> None:
            self.busy[rank] = False
            self._go_on(rank)

        self._at(until, free)

    def _copy(self, rank: int, op: Op) -> None:
        time = self.costs.require_offload()[op.stage] * size(op.stage, op, self.costs) / self.schedule.slices
        if op.kind == Kind.OFFLOAD:
            begin = max(self.freed[Kind.F, op.stage, op.microbatch, op.slice], self.to_host[rank])
            self.to_host[rank] = begin + time
            self._occupy(rank, max(self.now, begin + time))
        else:
            begin = max(self.now, self.from_host[rank])
            self.from_host[rank] = begin + time
        self.times[key(op)], self.freed[key(op)] = (begin, begin + time), begin + time

    def _begin(self, queue: tuple[object, ...]) -> None:
        """Start the first message of a queue where its other end is first, too."""
        if not self.queues[queue]:
            return
        here = self.queues[queue][0]
        there = other_end(Op(*here))
        if here in self.moving or there not in self.posted or self.queues[self.posted[there]][0] != there:
            return
        self.moving |= {here, there}
        op = Op(*here)
        end = self.now + transfer_time(min(op.stage, there[1]), op, self.schedule, self.costs)
        self.times[here] = self.times[there] = self.now, end

        def done() -> None:
            self.over.update((here, there))
            both = queue, self.posted[there]
            for one in both:
                self.queues[one].popleft()
            for one in both:
                self._begin(one)
            for rank in (self.home[here], self.home[there]):
                self._go_on(rank)

        self._at(end, done)
