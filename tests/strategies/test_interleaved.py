from dataclasses import replace
from math import inf

import pytest

from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError, ShapeError
from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, from_ops
from pipeplan.model.op import Op
from pipeplan.strategies import interleaved
from pipeplan.strategies.interleaved import (
    group_size,
    in_groups,
    interleaved_1f1b,
    interleaved_1f1b_overlap,
    interleaved_zb,
)
from pipeplan.strategies.one_f_one_b import eager_1f1b, forward_with_backward
from pipeplan.strategies.protocol import Shape, Strategy
from pipeplan.strategies.zero_bubble import zb_h1
from tests.slow_simulator import slow_simulate, worst_bubble

ALL = pytest.mark.parametrize("strategy", interleaved.FAMILY, ids=lambda strategy: strategy.name)


def test_one_chunk_is_eager_1f1b() -> None:
    assert interleaved_1f1b(interleaved_1f1b.shape(4, 7, 1)) == eager_1f1b(eager_1f1b.shape(4, 7))


@pytest.mark.parametrize("microbatches", [4, 7])
def test_zero_bubble_with_one_chunk_is_zb_h1(microbatches: int) -> None:
    one_chunk = interleaved_zb(interleaved_zb.shape(4, microbatches, 1))
    assert one_chunk == zb_h1(zb_h1.shape(4, microbatches))


@pytest.mark.parametrize(
    ("ranks", "microbatches", "group"),
    [(4, 8, 4), (4, 10, 5), (4, 7, 7), (4, 3, 3), (4, 9, 4), (5, 11, 6), (6, 13, 7), (1, 5, 1)],
)
def test_default_group(ranks: int, microbatches: int, group: int) -> None:
    assert group_size(Shape(ranks, microbatches, 3 if ranks > 4 else 2), "interleaved-1f1b") == group


def test_turns_are_those_of_megatrons_schedule_table() -> None:
    chunk, microbatch = in_groups(5, 2, 3)  # Its example: PP2 N3M5 with VP2.
    assert microbatch.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]
    assert chunk.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]


def test_a_deadlock_of_megatron_is_refused_with_its_rule_and_a_group_that_runs() -> None:
    message = (
        r"\(variant megatron\) deadlocks: 12 microbatches are in groups of 5 with a last group of 2, and two neighboring "
        "groups must sum to at least 8 with 5 ranks; group size 6"
    )
    with pytest.raises(ShapeError, match=message):
        interleaved_1f1b(interleaved_1f1b.shape(5, 12, group_size=5, variant="megatron"))


def test_overlapped_pairs_need_a_group_or_two_that_reach_all_ranks() -> None:
    assert interleaved_1f1b_overlap(interleaved_1f1b_overlap.shape(5, 9, group_size=3)).microbatches == 9
    with pytest.raises(ShapeError, match=r"groups of 2 with a last group of 1.* at least 5 with 5 ranks; group size 3"):
        interleaved_1f1b_overlap(interleaved_1f1b_overlap.shape(5, 9, group_size=2))


def test_megatrons_variant_is_its_order_and_refuses_exactly_its_deadlocks() -> None:
    refused = 0
    for shape in small_shapes_with_groups():
        schedule = in_groups_whatever_comes(interleaved_1f1b, shape)
        megatrons = replace(shape, variant="megatron")
        try:
            assert interleaved_1f1b(megatrons) == schedule
            assert slow_simulate(schedule, Settings().costs(schedule.placement)).makespan > 0
        except ShapeError:
            refused += 1
            with pytest.raises(DeadlockError):
                slow_simulate(schedule, Settings().costs(schedule.placement))
    assert refused > 0


@ALL
def test_the_warm_up_is_the_usual_one_unless_it_deadlocks_or_groups_are_small(strategy: Strategy) -> None:
    shorter = 0
    for shape in small_shapes_with_groups():
        usual = in_groups_whatever_comes(strategy, shape)
        try:
            schedule = strategy(shape)
        except ShapeError:
            assert strategy is interleaved_1f1b_overlap
            continue
        shorter += schedule != usual
        if schedule != usual and (shape.group_size or 1) >= shape.ranks:
            with pytest.raises(DeadlockError):
                slow_simulate(usual, Settings().costs(usual.placement))
    assert shorter > 0


# Ranks wait for a chunk to return: by the formula of equal groups of p/2 to p microbatches, in forwards of one rank.
SMALL_GROUPS = {(4, 2, 2, 5): 23 / 2, (6, 3, 2, 5): 36 / 2, (8, 5, 2, 5): 34 / 2, (8, 4, 3, 2): 53 / 3}


@pytest.mark.parametrize(("shape", "idle"), SMALL_GROUPS.items())
def test_small_groups_cost_what_the_formula_says(shape: tuple[int, int, int, int], idle: float) -> None:
    ranks, group, chunks, groups = shape
    small = interleaved_1f1b.shape(ranks, group * groups, chunks, group_size=group)
    assert interleaved_1f1b.bubble.value(small) == pytest.approx(idle)
    assert worst_bubble(interleaved_1f1b(small)) == pytest.approx(idle)


def test_idle_time_that_grows_beyond_a_group_each_has_no_formula() -> None:
    """Shapes with more idle time than p - 1 forwards and backwards per group."""
    shapes: list[tuple[Strategy, tuple[int, int, int, int]]] = [
        (interleaved_1f1b, (8, 15, 8, 2)),
        (interleaved_1f1b, (16, 51, 3, 7)),
        (interleaved_zb, (8, 17, 5, 2)),
        (interleaved_1f1b_overlap, (3, 7, 6, 3)),
        (interleaved_1f1b_overlap, (4, 11, 4, 5)),
    ]
    for strategy, (ranks, microbatches, chunks, group) in shapes:
        shape = strategy.shape(ranks, microbatches, chunks, group_size=group)
        work = 2 if strategy is interleaved_zb else 3
        assert worst_bubble(strategy(shape)) > work * (ranks - 1) * -(-microbatches // group)
        assert strategy.bubble.value(shape) == inf


def small_shapes_with_groups() -> list[Shape]:
    return [
        Shape(ranks, group + last, chunks, group_size=group)
        for ranks in (1, 2, 3, 5)
        for chunks in (1, 2, 3)
        for group in range(1, 2 * ranks)
        for last in range(min(group, 5))
    ]


def in_groups_whatever_comes(strategy: Strategy, shape: Shape) -> Schedule:
    """The strategy's schedule, deadlock or not, written with plain loops."""
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    g = shape.group_size or m
    turns = [
        (chunk, microbatch)
        for first in range(0, m, g)
        for chunk in range(v)
        for microbatch in range(first, min(first + g, m))
    ]
    rows = []
    for rank in range(p):
        forwards = from_ops(Op(Kind.F, chunk * p + rank, microbatch) for chunk, microbatch in turns)
        last_first = [((v - 1 - chunk) * p + rank, microbatch) for chunk, microbatch in turns]
        rows.append(_row(strategy, forwards, last_first, p - 1 - rank, (v - 1) * g, rank))
    return Schedule.from_rows(Placement.loop(p, v), m, rows)


def _row(
    strategy: Strategy, forwards: Columns, backwards: list[tuple[int, int]], behind: int, groups: int, rank: int
) -> Columns:
    full = from_ops(Op(Kind.B, *where) for where in backwards)
    if strategy is interleaved_1f1b_overlap:
        return forward_with_backward(forwards, full, 2 * behind + groups + 1)
    if strategy is interleaved_1f1b:
        warm_up = 2 * behind + groups
        return concatenate(forwards[:warm_up], alternate(forwards[warm_up:], full))
    warm_up = behind + groups
    row = list(forwards[:warm_up])
    rest = list(forwards[warm_up:])
    for turn, where in enumerate(backwards):
        row += [*rest[turn : turn + 1], Op(Kind.I, *where)]
        if turn >= rank:
            row.append(Op(Kind.W, *backwards[turn - rank]))
    return from_ops([*row, *(Op(Kind.W, *where) for where in backwards[max(len(backwards) - rank, 0) :])])
