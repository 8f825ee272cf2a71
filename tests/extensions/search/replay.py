"""What an order of ops takes and holds, counted for the independent tests alone, in whole numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipeplan.model import Kind, Op, Placement, Schedule, from_ops
from pipeplan.model.op import NO_GROUP
from tests.extensions.search.case import WholeCase


class Job(NamedTuple):
    """One op: its kind is F, B, I or W."""

    kind: str
    stage: int
    microbatch: int


Turn = tuple[Job, ...]
"""What a rank does at once: one job, or a forward and the backward that it overlaps with, in this order."""

Rows = Sequence[Sequence[Turn]]


class BrokenRuleError(Exception):
    """An order that breaks a rule of the problem."""


@dataclass(frozen=True)
class Replay:
    """When jobs start and end, each as soon as it can, in whole units of time."""

    start: dict[Job, int]
    end: dict[Job, int]
    rank_of: tuple[int, ...]

    @property
    def makespan(self) -> int:
        return max(self.end.values())

    @property
    def span(self) -> int:
        """The longest time from a rank's first start to its last end."""
        longest = 0
        for rank in set(self.rank_of):
            here = [job for job in self.start if self.rank_of[job.stage] == rank]
            longest = max(longest, max(self.end[job] for job in here) - min(self.start[job] for job in here))
        return longest

    def value(self, objective: str) -> int:
        return self.makespan if objective == "makespan" else self.span


def replay(shop: WholeCase, rows: Rows) -> Replay:
    """Run the rows; raises :class:`BrokenRuleError` for what must not be."""
    _require_complete(shop, rows)
    for rank, row in enumerate(rows):
        _require_room(shop, rank, row)
    present = {job for row in rows for turn in row for job in turn}
    start: dict[Job, int] = {}
    end: dict[Job, int] = {}
    turns = [0] * len(rows)
    free = [0] * len(rows)
    moved = True
    while moved:
        moved = False
        for rank, row in enumerate(rows):
            while turns[rank] < len(row):
                turn = row[turns[rank]]
                needed = [(need, delay) for job in turn for need, delay in needs(shop, job, present)]
                if any(need not in end for need, _ in needed):
                    break
                begin = max([free[rank], *(end[need] + delay for need, delay in needed)])
                free[rank] = begin + duration(shop, turn)
                start |= dict.fromkeys(turn, begin)
                end |= dict.fromkeys(turn, free[rank])
                turns[rank] += 1
                moved = True
    if any(turn < len(row) for turn, row in zip(turns, rows, strict=True)):
        raise BrokenRuleError("ranks wait for each other")
    return Replay(start, end, shop.case.rank_of)


def needs(shop: WholeCase, job: Job, present: set[Job]) -> list[tuple[Job, int]]:
    """The jobs that must have ended before a job starts, each with the transfer that comes between."""
    kind, stage, microbatch = job
    if kind == "W":
        return [(Job("I", stage, microbatch), 0)]
    if kind == "F":
        before = stage - 1
        return [] if stage == 0 else [(Job("F", before, microbatch), shop.transfer_between(before, stage))]
    own = [(Job("F", stage, microbatch), 0)]
    if stage == shop.case.stages - 1:
        return own
    full = Job("B", stage + 1, microbatch)
    source = full if full in present else Job("I", stage + 1, microbatch)
    return [*own, (source, shop.transfer_between(stage + 1, stage))]


def duration(shop: WholeCase, turn: Turn) -> int:
    if len(turn) == 2:
        forward, backward = turn
        return shop.pair_time(forward.stage, backward.kind, backward.stage)
    return shop.times[turn[0].kind][turn[0].stage]


def change(shop: WholeCase, job: Job) -> int:
    """What a job adds to what its rank holds."""
    activation, kept = shop.activation[job.stage], shop.kept[job.stage]
    return {"F": activation, "B": -activation, "I": kept - activation, "W": -kept}[job.kind]


def _require_complete(shop: WholeCase, rows: Rows) -> None:
    """Every forward once, and every backward once: whole or, where that is allowed, in halves."""
    count = Counter(job for row in rows for turn in row for job in turn)
    if len(rows) != shop.case.ranks:
        raise BrokenRuleError(f"{len(rows)} rows")
    for stage in range(shop.case.stages):
        for microbatch in range(shop.case.microbatches):
            found = [count.pop(Job(kind, stage, microbatch), 0) for kind in "FBIW"]
            if found not in [[1, 1, 0, 0], [1, 0, 1, 1]] or (found[2] and not shop.case.split):
                raise BrokenRuleError(f"stage {stage}, microbatch {microbatch}: F, B, I, W occur {found} times")
    if count:
        raise BrokenRuleError(f"unknown jobs: {count}")
    for rank, row in enumerate(rows):
        for turn in row:
            if any(shop.case.rank_of[job.stage] != rank for job in turn):
                raise BrokenRuleError(f"{turn} is on rank {rank}")
            if "".join(job.kind for job in turn) not in {*"FBIW", "FB", "FI"}:
                raise BrokenRuleError(f"{turn} is no forward with a backward")


def _require_room(shop: WholeCase, rank: int, row: Sequence[Turn]) -> None:
    cap, held = shop.caps[rank], 0
    for turn in row:
        for job in turn:
            held += change(shop, job)
            if cap is not None and held > cap:
                raise BrokenRuleError(f"rank {rank} holds {held} after {job}, of {cap}")


def rows_of(schedule: Schedule) -> Rows:
    """The turns of a schedule; in a pair the forward comes first, however it is written."""
    rows = []
    for row in schedule:
        turns: list[Turn] = []
        group = NO_GROUP
        for op in row:
            job = Job(op.kind.name, op.stage, op.microbatch)
            if op.group != NO_GROUP and op.group == group:
                turns[-1] = tuple(sorted((*turns[-1], job), key=lambda one: one.kind != "F"))
            else:
                turns.append((job,))
            group = op.group
        rows.append(turns)
    return rows


def schedule_of(shop: WholeCase, rows: Rows) -> Schedule:
    """The rows as a schedule of pipeplan."""
    group = 0
    columns = []
    for row in rows:
        ops: list[Op] = []
        for turn in row:
            group += 1
            number = group if len(turn) > 1 else NO_GROUP
            ops += [Op(Kind[job.kind], job.stage, job.microbatch, group=number) for job in turn]
        columns.append(from_ops(ops))
    return Schedule.from_rows(Placement.of(shop.case.rank_of), shop.case.microbatches, columns)
