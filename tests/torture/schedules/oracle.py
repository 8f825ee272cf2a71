"""Is a schedule right? Said once more, op by op with plain dictionaries, sharing nothing with the package but its ops.

It takes what waits for what from :func:`tests.slow_simulator.needs`, walks every row as a rank would, and gives each thing
that is wrong as a :class:`Finding`: the checker must give the same, and the simulator must stop where it says that ranks do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import NamedTuple

from pipeplan.model import MemoryRule, Placement
from pipeplan.model.op import NO_GROUP, NO_MICROBATCH, Kind, Op
from tests.slow_simulator import FACING, WITHOUT_MICROBATCH, Key, key, needs

Spot = tuple[int, int]
"""A rank, and the number of an op in its row."""

MESSAGES = {Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B}
STAGE_WIDE = {Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD}
COPIES = {Kind.OFFLOAD, Kind.RELOAD}
COMPUTE = {Kind.F, Kind.B, Kind.I, Kind.W, Kind.R}
WAITS = {
    Kind.SEND_F: Kind.WAIT_SEND_F,
    Kind.SEND_B: Kind.WAIT_SEND_B,
    Kind.WAIT_SEND_F: Kind.SEND_F,
    Kind.WAIT_SEND_B: Kind.SEND_B,
}
"""The wait for a send, and the send of a wait."""

WITHIN = 1e-9
"""The share of a limit by which rounded sums may pass it."""


class Finding(NamedTuple):
    """What is wrong: the rule, the rank, the number of the op in its row (None for one that is not there), and the op."""

    rule: str
    rank: int
    number: int | None
    op: str

    def __str__(self) -> str:
        where = "" if self.number is None else f", op {self.number}"
        return f"{self.rule} at rank {self.rank}{where} ({self.op})"


@dataclass(frozen=True)
class Oracle:
    """A schedule as rows of ops, whether they make a schedule or not."""

    placement: Placement
    microbatches: int
    slices: int
    rows: Sequence[Sequence[Op]]

    @cached_property
    def where(self) -> dict[Key, Spot]:
        """Where each op stands; of one that stands twice, where it stands last."""
        return {key(op): (rank, number) for rank, row in enumerate(self.rows) for number, op in enumerate(row)}

    @cached_property
    def kinds(self) -> set[Kind]:
        return {op.kind for row in self.rows for op in row}

    def spots(self) -> Iterator[tuple[Spot, Op]]:
        """Every op, rank after rank."""
        for rank, row in enumerate(self.rows):
            for number, op in enumerate(row):
                yield (rank, number), op

    def cells(self) -> Iterator[tuple[int, int, int]]:
        """Every stage, microbatch and slice."""
        return product(range(self.placement.stages), range(self.microbatches), range(self.slices))

    def holder(self, stage: int, microbatch: int) -> int:
        """The rank of a stage for a microbatch."""
        return self.placement.rank_of[max(microbatch, 0) * self.placement.copies // self.microbatches][stage]

    def waits(self, op: Op) -> list[Key]:
        return list(needs(op, self.where, self.placement.stages, self.slices))

    # All of it

    def findings(self, memory: MemoryRule | None = None, *, buffers: int | None = None) -> set[Finding]:
        """All that is wrong, in the stages in which a checker can speak of it."""
        return self._content(buffers) | (set() if memory is None else set(self.over_limits(memory)))

    def _content(self, buffers: int | None) -> set[Finding]:
        wrong = set(self.structure())
        if wrong:
            return wrong
        wrong |= {*self.sharding(), *self.reductions()}
        communicates = bool(self.kinds & MESSAGES)
        lost = (set(self.messages()) if communicates else set()) | set(self.awaited())
        wrong |= lost
        if lost:
            return wrong
        late = set(self.order())
        wrong |= late
        if late:
            return wrong
        wrong |= {*self.deadlock(), *(self.channels() if communicates else ())}
        if not wrong and communicates and buffers is not None:
            wrong |= set(self.waiting(buffers))
        return wrong

    # Is everything there, once, in its place?

    def structure(self) -> Iterator[Finding]:
        seen = Counter[Key]()
        for (rank, number), op in self.spots():
            if (op.microbatch == NO_MICROBATCH) != (op.kind in WITHOUT_MICROBATCH):
                yield Finding("microbatch", rank, number, str(op))
            if op.kind not in WITHOUT_MICROBATCH and op.microbatch != NO_MICROBATCH:
                seen[key(op)] += 1
                if seen[key(op)] == 2:
                    yield Finding("duplicate", rank, number, str(op))
            dealt = self.placement.copies == 1 or op.microbatch != NO_MICROBATCH
            if dealt and self.holder(op.stage, op.microbatch) != rank:
                yield Finding("rank", rank, number, str(op))
        yield from self._absent()
        yield from self._pairs()

    def _absent(self) -> Iterator[Finding]:
        for cell in self.cells():
            has = {kind for kind in Kind if (kind, *cell) in self.where}
            rank, back = self.holder(*cell[:2]), has & {Kind.B, Kind.I, Kind.W}
            lacks = [("incomplete", Kind.F)] * (Kind.F not in has)
            if not back or (Kind.B in back and len(back) > 1):
                lacks.append(("incomplete", Kind.B))
            lacks += [("incomplete", Kind.W)] * (back == {Kind.I}) + [("incomplete", Kind.I)] * (back == {Kind.W})
            lacks += [("offload", Kind.RELOAD)] * (has & COPIES == {Kind.OFFLOAD})
            lacks += [("offload", Kind.OFFLOAD)] * (has & COPIES == {Kind.RELOAD})
            lacks += [("offload", Kind.R)] * (Kind.R in has and bool(has & COPIES))
            for rule, kind in lacks:
                yield Finding(rule, rank, None, str(Op(kind, *cell)))

    def _pairs(self) -> Iterator[Finding]:
        for rank, row in enumerate(self.rows):
            start = 0
            for run in runs(row):
                wrong = range(len(run)) if len(run) == 1 and run[0].group != NO_GROUP else range(2, len(run))
                spoilt = set(wrong)
                if len(run) > 1 and (run[0].kind != Kind.F or run[1].kind not in {Kind.B, Kind.I}):
                    spoilt.add(1)
                for number in spoilt:
                    yield Finding("overlap", rank, start + number, str(run[number]))
                start += len(run)

    # Stages as a whole

    def sharding(self) -> Iterator[Finding]:
        """Every compute op between an UNSHARD of its stage and the RESHARD behind it."""
        if not self.kinds & {Kind.UNSHARD, Kind.RESHARD}:
            return
        gathered = Counter[tuple[int, int]]()
        for (rank, number), op in self.spots():
            gathered[rank, op.stage] += (op.kind == Kind.UNSHARD) - (op.kind == Kind.RESHARD)
            there = gathered[rank, op.stage]
            if (op.kind in COMPUTE and there != 1) or (op.kind in STAGE_WIDE and there not in {0, 1}):
                yield Finding("sharding", rank, number, str(op))

    def reductions(self) -> Iterator[Finding]:
        """One REDUCE_GRAD behind all that adds to a stage's gradients."""
        if not self.kinds & STAGE_WIDE:
            return
        last: dict[tuple[int, int], int] = {}
        reduced: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (rank, number), op in self.spots():
            if op.kind in {Kind.B, Kind.W}:
                last[rank, op.stage] = number
            elif op.kind == Kind.REDUCE_GRAD:
                reduced[rank, op.stage].append(number)
        for rank, stage in last:
            if not reduced[rank, stage]:
                yield Finding("reduce-grad", rank, None, f"{stage}REDUCE_GRAD")
        for (rank, stage), numbers in reduced.items():
            early = [number for number in numbers[:1] if number < last.get((rank, stage), -1)]
            for number in early + numbers[1:]:
                yield Finding("reduce-grad", rank, number, f"{stage}REDUCE_GRAD")

    # Messages

    def expected(self) -> set[Key]:
        """The ends of all messages between ranks."""
        ends: set[Key] = set()
        for stage, microbatch, part in self.cells():
            after = stage + 1
            if after < self.placement.stages and self.holder(stage, microbatch) != self.holder(after, microbatch):
                ends |= {(kind, stage, microbatch, part) for kind in (Kind.SEND_F, Kind.RECV_B)}
                ends |= {(kind, after, microbatch, part) for kind in (Kind.RECV_F, Kind.SEND_B)}
        return ends

    def messages(self) -> Iterator[Finding]:
        """A SEND and a RECV for every result that goes to another rank, and no others."""
        expected = self.expected()
        for kind, stage, microbatch, part in expected - set(self.where):
            yield Finding("message", self.holder(stage, microbatch), None, str(Op(Kind(kind), stage, microbatch, part)))
        for (rank, number), op in self.spots():
            if op.kind in MESSAGES and key(op) not in expected:
                yield Finding("message", rank, number, str(op))

    def awaited(self) -> Iterator[Finding]:
        """A wait for every SEND if there is any wait for one, and a SEND for every wait."""
        if not self.kinds & {Kind.WAIT_SEND_F, Kind.WAIT_SEND_B}:
            return
        for (rank, number), op in self.spots():
            if op.kind in WAITS and (WAITS[op.kind], *key(op)[1:]) not in self.where:
                yield Finding("wait", rank, number, str(op))

    def channels(self) -> Iterator[Finding]:
        """The k-th receive of a channel gets its k-th message; the first that is another's, on each."""
        sent: dict[tuple[int, int], list[Key]] = defaultdict(list)
        received: dict[tuple[int, int], list[tuple[int, Op, Key]]] = defaultdict(list)
        for (rank, number), op in self.spots():
            if op.kind in FACING:
                kind, step = FACING[op.kind]
                message = kind, op.stage + step, op.microbatch, op.slice
                received[self.where[message][0], rank].append((number, op, message))
            elif op.kind in MESSAGES:
                step = 1 if op.kind == Kind.SEND_F else -1
                sent[rank, self.holder(op.stage + step, op.microbatch)].append(key(op))
        for (sender, rank), there in received.items():
            for (number, op, message), came in zip(there, sent[sender, rank], strict=True):
                if message != came:
                    yield Finding("channel", rank, number, str(op))
                    break

    def waiting(self, most: int) -> Iterator[Finding]:
        """The first op on each rank at which more received messages wait than this."""
        for rank, row in enumerate(self.rows):
            held = 0
            for number, op in enumerate(row):
                held += op.kind in FACING
                if op.kind in COMPUTE:
                    held -= sum(need[0] in FACING for need in self.waits(op))
                if held > most:
                    yield Finding("buffers", rank, number, str(op))
                    break

    # Does it run?

    def order(self) -> Iterator[Finding]:
        """On each rank, every op behind all that it waits for there; what it waits for is in the schedule."""
        for rank, row in enumerate(self.rows):
            begun: set[Key] = set()
            number = 0
            for run in runs(row):
                for op in run:
                    for need in self.waits(op):
                        spot = self.where.get(need)
                        if spot is None or (spot[0] == rank and need not in begun):
                            yield Finding("order", rank, number, str(op))
                    number += 1
                begun |= {key(op) for op in run}

    def apart(self) -> Iterator[Finding]:
        """What nobody hands on: a message that none sends, and what stands on another rank than an op of its own stage."""
        for (rank, number), op in self.spots():
            if op.kind in FACING and not self.waits(op):
                yield Finding("apart", rank, number, str(op))
            for need in self.waits(op):
                handed = need[1] != op.stage
                if not handed and need in self.where and self.where[need][0] != rank:
                    yield Finding("apart", rank, number, str(op))

    def deadlock(self) -> Iterator[Finding]:
        """The op at which each rank stops for ever."""
        for rank, number in self.stuck(meet=False):
            yield Finding("deadlock", rank, number, str(self.rows[rank][number]))

    def stuck(self, *, meet: bool) -> list[Spot]:
        """Where ranks stop for ever; ``meet``: every SEND and RECV blocks until both ranks have come to them."""
        rows = [list(runs(row)) for row in self.rows]
        turn, done = [0] * len(rows), set[Key]()
        moved = True
        while moved:
            moved = False
            for rank, row in enumerate(rows):
                while turn[rank] < len(row) and self._goes(rank, rows, turn, done, meet):
                    done |= {key(op) for op in row[turn[rank]]}
                    turn[rank] += 1
                    moved = True
        return [(rank, sum(map(len, row[: turn[rank]]))) for rank, row in enumerate(rows) if turn[rank] < len(row)]

    def _goes(self, rank: int, rows: list[list[Sequence[Op]]], turn: list[int], done: set[Key], meet: bool) -> bool:
        run = rows[rank][turn[rank]]
        if not meet or run[0].kind not in MESSAGES:
            return all(need in done for op in run for need in self.waits(op))
        other = _facing(run[0])
        if other in done:
            return True
        peer = self.where[other][0]
        return turn[peer] < len(rows[peer]) and other in {key(op) for op in rows[peer][turn[peer]]}

    # Memory

    def over_limits(self, rule: MemoryRule) -> Iterator[Finding]:
        """The first op on each rank at which it holds more than it may."""
        for rank, row in enumerate(self.rows):
            limit = float(rule.limit[rank])
            for number, held in enumerate(self.levels(rank, rule)):
                if held > limit + WITHIN * max(limit, 1.0):
                    yield Finding("memory", rank, number, str(row[number]))
                    break

    def levels(self, rank: int, rule: MemoryRule) -> list[float]:
        """What a rank holds after each of its ops."""
        row = self.rows[rank]
        again = {key(op)[1:] for op in row if op.kind == Kind.R}
        return list(accumulate(self._change(op, rule, key(op)[1:] in again) for op in row))

    def _change(self, op: Op, rule: MemoryRule, again: bool) -> float:
        """What an op adds to what its rank holds."""
        whole, late = float(rule.activation[op.stage]), float(rule.freed_by_weight[op.stage])
        kept, moved = float(rule.recompute_keeps[op.stage]), float(rule.offloaded[op.stage])
        changes = {
            Kind.F: kept if again else whole,
            Kind.R: whole - kept,
            Kind.B: -whole,
            Kind.I: late - whole,
            Kind.W: -late,
            Kind.OFFLOAD: -moved,
            Kind.RELOAD: moved,
        }
        size = float(rule.factors[op.stage, op.microbatch]) if rule.factors.size and op.kind in changes else 1.0
        return changes.get(op.kind, 0.0) * size / self.slices


def runs(row: Sequence[Op]) -> Iterator[Sequence[Op]]:
    """What a rank does one after the other: ops alone, and those of one group that stand together."""
    start = 0
    for stop in range(1, len(row) + 1):
        if stop == len(row) or row[stop].group == NO_GROUP or row[stop].group != row[start].group:
            yield row[start:stop]
            start = stop


def _facing(op: Op) -> Key:
    """The other end of a message."""
    steps = {Kind.SEND_F: (Kind.RECV_F, 1), Kind.SEND_B: (Kind.RECV_B, -1), **FACING}
    kind, step = steps[op.kind]
    return kind, op.stage + step, op.microbatch, op.slice
