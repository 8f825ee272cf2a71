"""The obvious slow simulator of sharded stages: events one after the other in time, at every level of communication.

Ranks, links and streams are looked at again at every event, and whatever can begin then begins. It shares nothing with the
simulator but the model's data types; how long ops and messages take is that of :mod:`tests.slow_simulator`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from pipeplan.costs import Costs
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Op, Schedule, Timeline
from tests.slow_simulator import (
    PARTNERS,
    PASSES,
    Key,
    duration,
    key,
    lost_before,
    lost_behind,
    needs,
    size,
    transfer_time,
    turns,
)

Place = tuple[int, int]
"""Rank, and place in its row."""

COMPUTES = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)
COLLECTIVES = (Kind.UNSHARD, Kind.REDUCE_GRAD)
SENDS = (Kind.SEND_F, Kind.SEND_B)
WAITS = {Kind.WAIT_SEND_F: Kind.SEND_F, Kind.WAIT_SEND_B: Kind.SEND_B}


class Line:
    """Something that carries one op at a time, in order: a stream, or a link."""

    def __init__(self) -> None:
        self.queue: list[Place] = []
        self.free = 0.0


class Events:
    """A run of a schedule, event after event.

    Attributes
    ----------
    begun, ended
        Times of the ops that have begun.
    """

    def __init__(
        self,
        schedule: Schedule,
        costs: Costs,
        communication: str,
        later: tuple[float, ...] | None = None,
        *,
        streams: str = "rank",
    ) -> None:
        # ``later``: when each rank's collectives may begin; ``streams``: what messages share a stream.
        self.schedule, self.costs, self.communication, self.streams = schedule, costs, communication, streams
        if communication == "blocking":
            self.costs = replace(costs, overhead=replace(costs.overhead, message_time=0.0))
        self.message_time = costs.overhead.message_time if communication == "blocking" else 0.0
        self.rows = [schedule[rank] for rank in range(schedule.ranks)]
        self.turns = [list(turns(row)) for row in self.rows]
        self.turn, self.place = [0] * schedule.ranks, [0] * schedule.ranks
        self.free = [0.0] * schedule.ranks
        self.lines: dict[tuple[object, ...], Line] = {}
        self.begun: dict[Place, float] = {}
        self.ended: dict[Place, float] = {}
        self.freed: dict[Key, tuple[float, int]] = {}
        self.arrived: dict[tuple[Key, int], float] = {}
        self.received: dict[tuple[Key, int], float] = {}
        self.back: dict[Key, float] = {}
        self.gathered: dict[tuple[int, int], Place | None] = {}
        self.reduced: dict[tuple[int, int], Place] = {}
        self.present = {key(op) for row in self.rows for op in row if op.kind not in PARTNERS}
        self.at = {key(op): (rank, place) for rank, row in enumerate(self.rows) for place, op in enumerate(row)}
        self.now = 0.0
        self.coming: list[float] = [0.0]
        for rank, begins in enumerate(later or ()):
            self.line("collectives", rank).free = self.happens(begins)
        self.sharded = {(rank, op.stage) for rank, row in enumerate(self.rows) for op in row if op.kind == Kind.UNSHARD}
        # Copies to the host stand in line from the start, in the order of their row.
        for rank, row in enumerate(self.rows):
            for place, op in enumerate(row):
                if op.kind == Kind.OFFLOAD:
                    self.line("to host", rank).queue.append((rank, place))

    def timeline(self) -> Timeline:
        """Run to the end, and return the times of all ops. Raises DeadlockError where a message never begins."""
        self.run()
        places = [(rank, place) for rank, row in enumerate(self.rows) for place in range(len(row))]
        if any(place not in self.ended for place in places):
            raise DeadlockError("a message never begins")
        start, end = (np.array([times[place] for place in places]) for times in (self.begun, self.ended))
        return Timeline(self.schedule, start, end)

    def run(self) -> Events:
        """Run to the end. Raises DeadlockError where it is not reached."""
        while self.coming:
            self.now = heappop(self.coming)
            while any(self.advance(rank) for rank in range(self.schedule.ranks)) or any(self.carry()):
                pass
        if any(turn < len(row) for turn, row in zip(self.turn, self.turns, strict=True)):
            raise DeadlockError("nobody can go on")
        return self

    def line(self, *name: object) -> Line:
        return self.lines.setdefault(name, Line())

    def stream(self, place: Place) -> Line:
        """The stream that one end of a message takes on its rank."""
        op = self.op(place)
        return self.line("stream", *stream_name(op, place[0], self.at[partner(op)][0], self.streams))

    def happens(self, time: float) -> float:
        heappush(self.coming, time)
        return time

    def over(self, place: Place) -> bool:
        return self.ended.get(place, float("inf")) <= self.now

    def op(self, place: Place) -> Op:
        return self.rows[place[0]][place[1]]

    def advance(self, rank: int) -> bool:
        """Let a rank come to its next turn; whether anything happened."""
        if self.turn[rank] == len(self.turns[rank]) or self.free[rank] > self.now:
            return False
        turn, place = self.turns[rank][self.turn[rank]], (rank, self.place[rank])
        op = turn[0]
        if op.kind in COMPUTES:
            goes = self.compute(rank, turn)
        elif op.kind in PARTNERS and self.communication == "blocking":
            return self.meet(rank, op)
        else:
            goes = self.pass_by(rank, op, place)
        if goes:
            self.go_on(rank, len(turn))
        return goes

    def go_on(self, rank: int, ops: int) -> None:
        self.turn[rank] += 1
        self.place[rank] += ops

    def pass_by(self, rank: int, op: Op, place: Place) -> bool:
        """Come to an op that takes no time on its rank."""
        here = rank, op.stage
        if op.kind in COLLECTIVES:
            self.line("collectives", rank).queue.append(place)
            if op.kind == Kind.UNSHARD:
                self.gathered[here] = place
            else:
                self.reduced[here] = place
            return True
        if op.kind in PARTNERS:
            self.stream(place).queue.append(place)
            return True
        if op.kind == Kind.RELOAD:
            self.line("from host", rank).queue.append(place)
            return True
        if op.kind == Kind.OFFLOAD:
            return self.over(place)
        if op.kind == Kind.WAIT_REDUCE_GRAD and not self.over(self.reduced[here]):
            return False
        if op.kind in WAITS and not self.over(self.at[WAITS[op.kind], op.stage, op.microbatch, op.slice]):
            return False
        if op.kind == Kind.RESHARD:
            self.gathered[here] = None
        self.begun[place] = self.ended[place] = self.now
        return True

    def compute(self, rank: int, turn: tuple[Op, ...]) -> bool:
        """Begin an op or pair whose parameters and inputs are there."""
        for op in turn:
            gathering = self.gathered.get((rank, op.stage))
            if (rank, op.stage) in self.sharded and (gathering is None or not self.over(gathering)):
                return False
            if any(
                self.there(need, rank) > self.now
                for need in needs(op, self.present, self.schedule.stages, self.schedule.slices)
            ):
                return False
        start = self.now + lost_before(turn, self.schedule, self.costs)
        end = start + duration(turn, self.schedule, self.costs)
        self.free[rank] = self.happens(end + lost_behind(turn, self.schedule, self.costs))
        for number, op in enumerate(turn):
            place = rank, self.place[rank] + number
            self.begun[place], self.ended[place] = start, end
            self.freed[key(op)] = self.free[rank], rank
            self.hand_on(rank, op)
        return True

    def hand_on(self, rank: int, op: Op) -> None:
        """Send a result to the rank of the neighboring stage, unless messages do so."""
        stage = op.stage + (1 if op.kind == Kind.F else -1)
        copy = op.microbatch * self.schedule.placement.copies // self.schedule.microbatches
        ranks = self.schedule.placement.rank_of[copy]
        if op.kind not in PASSES or not 0 <= stage < len(ranks) or ranks[stage] == rank:
            return
        if self.communication == "contended":
            self.line("link", rank, ranks[stage]).queue.append(self.at[key(op)])
        if self.communication == "edge":
            taken = transfer_time(min(op.stage, stage), op, self.schedule, self.costs)
            self.arrived[key(op), ranks[stage]] = self.happens(self.free[rank] + taken)

    def there(self, need: Key, rank: int) -> float:
        """When what an op needs is there, as far as is known."""
        if need[0] == Kind.RELOAD:
            return self.back.get(need, float("inf"))
        freed, sender = self.freed.get(need, (float("inf"), rank))
        if sender == rank:
            return freed
        table = self.received if self.communication in ("streams", "blocking") else self.arrived
        return table.get((need, rank), float("inf"))

    def meet(self, rank: int, op: Op) -> bool:
        """Begin a message when both ranks have come to it."""
        other = self.at[partner(op)]
        peer = other[0]
        if self.place[peer] != other[1] or self.free[peer] > self.now:
            return False
        self.message((rank, self.place[rank]), other)
        self.free[rank] = self.free[peer] = self.ended[other]
        self.go_on(rank, 1)
        self.go_on(peer, 1)
        return True

    def message(self, one: Place, other: Place) -> None:
        op = self.op(one)
        taken = transfer_time(min(op.stage, self.op(other).stage), op, self.schedule, self.costs) + self.message_time
        for end in (one, other):
            self.begun[end], self.ended[end] = self.now, self.happens(self.now + taken)
            if (at_end := self.op(end)).kind in (Kind.RECV_F, Kind.RECV_B):
                sent = self.op(other if end == one else one)
                kinds = (Kind.F,) if at_end.kind == Kind.RECV_F else (Kind.B, Kind.I)
                for kind in kinds:
                    self.received[(kind, sent.stage, sent.microbatch, sent.slice), end[0]] = self.now + taken

    def carry(self) -> Iterator[bool]:
        """Let every line begin the first op in it that can; yield whether it did."""
        for (sort, *name), line in list(self.lines.items()):
            if not line.queue or line.free > self.now:
                continue
            place = line.queue[0]
            op, taken = self.op(place), 0.0
            if sort == "stream":
                other = self.at[partner(op)]
                far = self.stream(other)
                if far.free > self.now or far.queue[:1] != [other]:
                    continue
                self.message(place, other)
                far.queue.pop(0)
                far.free = self.ended[other]
                line.free = self.ended[place]
            elif sort == "link":
                if self.freed[key(op)][0] > self.now:
                    continue
                forth = op.stage if op.kind == Kind.F else op.stage - 1
                line.free = self.happens(self.now + transfer_time(forth, op, self.schedule, self.costs))
                self.arrived[key(op), name[1]] = line.free  # type: ignore[index]
            elif sort == "collectives":
                times = self.costs.unshard if op.kind == Kind.UNSHARD else self.costs.reduce
                taken = 0.0 if times is None else float(times[op.stage])
                line.free = self.lasts(place, taken)
            else:
                forward = Kind.F, op.stage, op.microbatch, op.slice
                if sort == "to host" and self.freed.get(forward, (float("inf"), 0))[0] > self.now:
                    continue
                taken = self.costs.require_offload()[op.stage] * size(op.stage, op, self.costs) / self.schedule.slices
                line.free = self.lasts(place, float(taken))
                if sort == "from host":
                    self.back[key(op)] = line.free
            line.queue.pop(0)
            yield True

    def lasts(self, place: Place, taken: float) -> float:
        self.begun[place], self.ended[place] = self.now, self.happens(self.now + taken)
        return self.ended[place]


def partner(op: Op) -> Key:
    kind, step = PARTNERS[op.kind]
    return kind, op.stage + step, op.microbatch, op.slice


def stream_name(op: Op, rank: int, peer: int, streams: str) -> tuple[object, ...]:
    """The stream that one end of a message takes on its rank."""
    if streams == "rank":
        return (rank,)
    if streams == "direction":
        return rank, "activations" if op.kind in (Kind.SEND_F, Kind.RECV_F) else "gradients"
    return (rank, rank, peer) if op.kind in SENDS else (rank, peer, rank)


def slow_peaks(schedule: Schedule, costs: Costs) -> list[float]:
    """The most bytes that every rank holds, without static ones: what an op allocates, it allocates before it frees."""
    memory, peaks = costs.memory, []
    for row in schedule:
        ops = list(row)
        again = {(op.stage, op.microbatch, op.slice) for op in ops if op.kind == Kind.R}
        activations = peak = 0.0
        gathered, unreduced = dict[int, float](), dict[int, float]()
        for op in ops:
            stage, freed = op.stage, 0.0
            share = (float(memory.factors[stage, op.microbatch]) if memory.factors.size else 1.0) / schedule.slices
            whole, late, kept, moved = (
                float(sizes[stage]) * share
                for sizes in (memory.activation, memory.freed_by_weight, memory.recompute_keeps, memory.offloaded)
            )
            match op.kind:
                case Kind.F:
                    activations += kept if (stage, op.microbatch, op.slice) in again else whole
                case Kind.R:
                    activations += whole - kept
                case Kind.RELOAD:
                    activations += moved
                case Kind.OFFLOAD:
                    freed = moved
                case Kind.UNSHARD:
                    gathered[stage] = float(memory.parameters[stage])
                case Kind.RESHARD:
                    del gathered[stage]
                case Kind.WAIT_REDUCE_GRAD:
                    del unreduced[stage]
                case Kind.B:
                    unreduced[stage], freed = float(memory.gradients[stage]), whole
                case Kind.W:
                    unreduced[stage], freed = float(memory.gradients[stage]), late
                case Kind.I:
                    freed = whole - late
            sharded = sum(gathered.values()) + sum(unreduced.values())
            peak = max(peak, activations + sharded)
            activations -= freed
            peak = max(peak, activations + sharded)
        peaks.append(peak)
    return peaks


def sharded_levels(schedule: Schedule, costs: Costs) -> list[list[tuple[float, float]]]:
    """For every rank, the bytes of gathered parameters and of unreduced gradients after each op of its row."""
    memory, ranks = costs.memory, []
    for row in schedule:
        parameters: dict[int, float] = {}
        gradients: dict[int, float] = {}
        levels = []
        for op in row:
            if op.kind == Kind.UNSHARD:
                parameters[op.stage] = float(memory.parameters[op.stage])
            elif op.kind == Kind.RESHARD:
                del parameters[op.stage]
            elif op.kind in (Kind.B, Kind.W):
                gradients[op.stage] = float(memory.gradients[op.stage])
            elif op.kind == Kind.WAIT_REDUCE_GRAD:
                del gradients[op.stage]
            levels.append((sum(parameters.values()), sum(gradients.values())))
        ranks.append(levels)
    return ranks
