"""Ways to break a schedule, and to change one without breaking it: the oracle says which it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from pipeplan.model.op import NO_GROUP, NO_MICROBATCH, Kind, Op
from tests.torture.schedules.oracle import COPIES, MESSAGES, STAGE_WIDE
from tests.torture.schedules.shapes import Rows

Mutation = Callable[[Random, Rows], None]
"""Changes rows in place."""


def mutated(random: Random, rows: Rows) -> tuple[Rows, str]:
    """Copies of the rows with one thing changed, rarely two or nothing, and what was done in words."""
    changed = [list(row) for row in rows]
    done: list[str] = []
    for _ in range(random.choices((0, 1, 2), (1, 16, 3))[0]):
        mutation = random.choice(MUTATIONS)
        mutation(random, changed)
        done.append(mutation.__name__)
    return changed, ", ".join(done) or "nothing"


def _spot(random: Random, rows: Rows, *kinds: Kind) -> tuple[list[Op], int] | None:
    """A row, and the number of an op in it: of these kinds where any are given, else often of a special one."""
    special = kinds or (SPECIAL if random.random() < 0.33 else ())
    spots = [(row, number) for row in rows for number, op in enumerate(row) if not special or op.kind in special]
    if not spots and not kinds:
        spots = [(row, number) for row in rows for number in range(len(row))]
    return random.choice(spots) if spots else None


def drop(random: Random, rows: Rows) -> None:
    if spot := _spot(random, rows):
        del spot[0][spot[1]]


def double(random: Random, rows: Rows) -> None:
    """Once more on its rank, or on any."""
    if spot := _spot(random, rows):
        row = random.choice([spot[0], random.choice(rows)])
        row.insert(random.randint(0, len(row)), replace(spot[0][spot[1]], group=NO_GROUP))


def move_to_another_rank(random: Random, rows: Rows) -> None:
    if spot := _spot(random, rows):
        row = random.choice(rows)
        row.insert(random.randint(0, len(row)), spot[0].pop(spot[1]))


def move_on_its_rank(random: Random, rows: Rows) -> None:
    if spot := _spot(random, rows):
        row, number = spot
        op = row.pop(number)
        row.insert(min(max(number + random.choice((-9, -3, -1, 1, 3, 9)), 0), len(row)), op)


def swap_neighbours(random: Random, rows: Rows) -> None:
    if (spot := _spot(random, rows)) and spot[1] + 1 < len(spot[0]):
        row, number = spot
        row[number], row[number + 1] = row[number + 1], row[number]


def swap_of_one_kind(random: Random, rows: Rows) -> None:
    """Two of one kind on one rank: with receives, channels cross."""
    if spot := _spot(random, rows):
        row, number = spot
        at = random.choice([other for other, op in enumerate(row) if op.kind == row[number].kind])
        row[number], row[at] = row[at], row[number]


def hasten(random: Random, rows: Rows) -> None:
    """An op right behind another of its kind and stage, or its microbatch's last: what makes ranks wait for each other."""
    if spot := _spot(random, rows, Kind.F, Kind.B, Kind.I):
        row, number = spot
        op = row.pop(number)
        own = [
            at for at, other in enumerate(row[:number]) if (other.stage, other.microbatch) == (op.stage, op.microbatch)
        ]
        row.insert(max(own, default=-1) + 1, replace(op, group=NO_GROUP))


def swap_with_what_it_needs(random: Random, rows: Rows) -> None:
    """W before its I, RELOAD before its OFFLOAD, a backward before its forward, and the like."""
    if spot := _spot(random, rows):
        row, number = spot
        op = row[number]
        same = [at for at, other in enumerate(row) if other.stage == op.stage and other.microbatch == op.microbatch]
        at = random.choice(same)
        row[number], row[at] = row[at], row[number]


def swap_rows(random: Random, rows: Rows) -> None:
    one, other = random.randrange(len(rows)), random.randrange(len(rows))
    rows[one], rows[other] = rows[other], rows[one]


def another_number(random: Random, rows: Rows) -> None:
    """Another stage, microbatch or slice, in range or not."""
    if spot := _spot(random, rows):
        row, number = spot
        name = random.choice(("stage", "microbatch", "slice"))
        row[number] = replace(row[number], **{name: getattr(row[number], name) + random.choice((-1, 1, 2, 1000))})


def no_microbatch(random: Random, rows: Rows) -> None:
    if spot := _spot(random, rows):
        row, number = spot
        there = row[number].microbatch != NO_MICROBATCH
        row[number] = replace(row[number], microbatch=NO_MICROBATCH if there else 0)


def another_kind(random: Random, rows: Rows) -> None:
    if spot := _spot(random, rows):
        row, number = spot
        # The oracle has no rule for waits for reductions.
        row[number] = replace(row[number], kind=random.choice([kind for kind in Kind if kind != Kind.WAIT_REDUCE_GRAD]))


def merge_a_backward(random: Random, rows: Rows) -> None:
    """I as B; whether its W goes too is a matter of chance."""
    if spot := _spot(random, rows, Kind.I):
        row, number = spot
        op = row[number]
        row[number] = replace(op, kind=Kind.B)
        late = [at for at, other in enumerate(row) if other == Op(Kind.W, op.stage, op.microbatch, op.slice)]
        if late and random.random() < 0.7:
            del row[late[0]]


def add_an_op(random: Random, rows: Rows) -> None:
    """Of any kind, beside what is there of its stage and microbatch."""
    if spot := _spot(random, rows):
        row, number = spot
        kind = random.choice((Kind.R, Kind.OFFLOAD, Kind.RELOAD, Kind.SEND_F, Kind.RECV_B, Kind.UNSHARD, Kind.W))
        row.insert(random.choice((number, number + 1)), replace(row[number], kind=kind, group=NO_GROUP))


def ungroup(random: Random, rows: Rows) -> None:
    """One op of a group, or all of it."""
    grouped = [(row, number) for row in rows for number, op in enumerate(row) if op.group != NO_GROUP]
    if grouped:
        row, number = random.choice(grouped)
        chosen = (
            {number} if random.random() < 0.5 else {at for at, op in enumerate(row) if op.group == row[number].group}
        )
        row[:] = [replace(op, group=NO_GROUP) if at in chosen else op for at, op in enumerate(row)]


def group(random: Random, rows: Rows) -> None:
    """Any two or three neighbours."""
    if spot := _spot(random, rows):
        row, number = spot
        fresh = max((op.group for row in rows for op in row), default=0) + 1
        for at in range(number, min(number + random.choice((1, 2, 2, 2, 3)), len(row))):
            row[at] = replace(row[at], group=fresh)


def group_forward_and_backward(random: Random, rows: Rows) -> None:
    """A forward and the backward behind it, where they stand together."""
    back = {Kind.B, Kind.I}
    pairs = [
        (row, number)
        for row in rows
        for number in range(len(row) - 1)
        if row[number].kind == Kind.F and row[number + 1].kind in back
    ]
    if pairs:
        row, number = random.choice(pairs)
        fresh = max((op.group for row in rows for op in row), default=0) + 1
        row[number : number + 2] = [replace(op, group=fresh) for op in row[number : number + 2]]


MUTATIONS: tuple[Mutation, ...] = (
    drop, double, move_to_another_rank, move_on_its_rank, swap_neighbours, swap_of_one_kind, swap_with_what_it_needs,
    swap_rows, another_number, no_microbatch, another_kind, merge_a_backward, add_an_op, hasten, ungroup, group,
    group_forward_and_backward,
)  # fmt: skip

SPECIAL: tuple[Kind, ...] = (*MESSAGES, *COPIES, *STAGE_WIDE)
"""Kinds that few schedules have: where there are any, one mutation in three is of such an op."""
