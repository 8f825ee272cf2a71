"""ELF's generators of schedules, executed beside our strategies.

ELF splits every backward; where a weight half stands right behind its input half, the two are our full backward.
"""

from collections.abc import Callable

from elf.registry import SCHEDULERS
from elf.scheduling.scheduling import OperationType

from pipeplan.model import Kind, Op, Placement
from pipeplan.strategies import Shape, strategy

KINDS = {
    OperationType.FORWARD: Kind.F,
    OperationType.BACKWARD_INPUTS: Kind.I,
    OperationType.BACKWARD_PARAMS: Kind.W,
}
SHAPES = [(ranks, microbatches) for ranks in range(2, 10) for microbatches in range(1, 3 * ranks + 2)]

Rows = list[list[Op]]


def theirs(name: str, placement: Placement, microbatches: int) -> Rows:
    """Each rank's ops; the losses, which ELF schedules apart, are left out."""
    rows: Rows = [[] for _ in range(placement.ranks)]
    for operation in SCHEDULERS.get(name)(list(placement.rank_of[0]), microbatches):
        if operation.op in KINDS:
            rows[operation.rank].append(Op(KINDS[operation.op], operation.block_id, operation.mb_id))
    return rows


def ours(name: str, ranks: int, microbatches: int, chunks: int = 1) -> Rows:
    return [list(row) for row in strategy(name)(Shape(ranks, microbatches, chunks))]


def with_full_backwards(rows: Rows) -> Rows:
    """The rows with each weight half that stands right behind its input half merged with it."""
    merged: Rows = []
    for row in rows:
        merged.append([])
        for op in row:
            before = merged[-1][-1] if merged[-1] else None
            if op.kind is Kind.W and before == Op(Kind.I, op.stage, op.microbatch):
                merged[-1][-1] = Op(Kind.B, op.stage, op.microbatch)
            else:
                merged[-1].append(op)
    return merged


def without_weights(rows: Rows) -> Rows:
    return [[op for op in row if op.kind is not Kind.W] for row in rows]


def last_weights_by_stage(rows: Rows) -> Rows:
    """The rows with the weight halves at their end in the order of stages, not of their input halves."""
    ordered = []
    for row in rows:
        end = max(place for place, op in enumerate(row) if op.kind is not Kind.W) + 1
        ordered.append(row[:end] + sorted(row[end:], key=lambda op: op.stage))
    return ordered


def leading_forwards(row: list[Op]) -> int:
    return next((place for place, op in enumerate(row) if op.kind is not Kind.F), len(row))


def test_gpipe_and_1f1b_are_the_same(ran: Callable[[str], None]) -> None:
    for name, ours_is in (("afab", "gpipe"), ("1f1b", "1f1b")):
        for ranks, microbatches in SHAPES:
            found = with_full_backwards(theirs(name, Placement.linear(ranks), microbatches))
            assert found == ours(ours_is, ranks, microbatches), (name, ranks, microbatches)
    ran(f"afab against gpipe and 1f1b against 1f1b, op by op: {2 * len(SHAPES)} shapes")


def test_zb_h1_is_the_same_but_for_weights_with_few_microbatches(ran: Callable[[str], None]) -> None:
    """ELF lets a rank's number of weight halves wait even where its forwards have run out: 2 <= m <= p - 2."""
    same = 0
    for ranks, microbatches in SHAPES:
        found, own = theirs("zbh1", Placement.linear(ranks), microbatches), ours("zb-h1", ranks, microbatches)
        assert without_weights(found) == without_weights(own), (ranks, microbatches)
        assert (found == own) == (not 2 <= microbatches <= ranks - 2), (ranks, microbatches)
        same += found == own
    ran(
        f"zbh1 against zb-h1: {same} of {len(SHAPES)} shapes op by op, the others (2 <= m <= p - 2) but for where a W stands"
    )


def test_zb_h2_is_the_same_but_for_weights(ran: Callable[[str], None]) -> None:
    """ELF lets all weight halves wait until a rank has one forward left; ours start after 2p - 1 forwards.

    So they agree with one microbatch and with 2p; with more ELF holds more.
    """
    for ranks, microbatches in SHAPES:
        found, own = theirs("zbh2", Placement.linear(ranks), microbatches), ours("zb-h2", ranks, microbatches)
        assert without_weights(found) == without_weights(own), (ranks, microbatches)
        assert (found == own) == (microbatches in (1, 2 * ranks)), (ranks, microbatches)
    ran(f"zbh2 against zb-h2: forwards and input halves of {len(SHAPES)} shapes; where Ws stand differs but for m = 2p")


def test_zbv_is_the_same_where_theirs_is_defined(ran: Callable[[str], None]) -> None:
    """At m = 2p, the only one it is made for; the last weight halves are done stage by stage there."""
    for ranks in range(1, 13):
        found = theirs("zbv", Placement.v(ranks), 2 * ranks)
        assert found == last_weights_by_stage(ours("zbv", ranks, 2 * ranks, chunks=2)), ranks
    ran("zbv against zbv at m = 2p: 12 shapes, but for the order of each rank's last Ws (by stage)")


def test_hanayo_is_the_same_with_as_many_microbatches_as_ranks(ran: Callable[[str], None]) -> None:
    shapes = [(ranks, chunks) for ranks in range(1, 9) for chunks in (2, 4, 6, 8)]
    for ranks, chunks in shapes:
        found = with_full_backwards(theirs("hanayo", Placement.wave(ranks, chunks), ranks))
        assert found == ours("hanayo", ranks, ranks, chunks), (ranks, chunks)
    ran(f"hanayo against hanayo at m = p, op by op: {len(shapes)} shapes")


def test_interleaved_1f1b_warms_up_differently(ran: Callable[[str], None]) -> None:
    """ELF warms up with vp - rank forwards, Megatron (and we) with (v - 1)p + 2(p - 1 - rank) and the first pair's."""
    shapes = [(ranks, chunks) for ranks in (2, 4, 6, 8) for chunks in (2, 3, 4)]
    for ranks, chunks in shapes:
        found = theirs("1f1b", Placement.loop(ranks, chunks), 2 * ranks)
        own = ours("interleaved-1f1b", ranks, 2 * ranks, chunks)
        assert [leading_forwards(row) for row in found] == [chunks * ranks - rank for rank in range(ranks)]
        expected = [(chunks - 1) * ranks + 2 * (ranks - 1 - rank) + 1 for rank in range(ranks)]
        assert [leading_forwards(row) for row in own] == expected
    ran(f"1f1b on several chunks against interleaved-1f1b: another warm-up, {len(shapes)} shapes")
