"""Moves: each can be taken back, none proposes by changing, and a new one is a function of three and a row."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeplan.costs import MicrobatchFactors
from pipeplan.extensions.search import Choices
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.kernels.arrays import OutsideMoves, Reach, StepOptions, Target
from pipeplan.extensions.search.kernels.random_kernel import draw_weighted
from pipeplan.extensions.search.moves import (
    MOVES,
    Move,
    decision_kernel,
    mode_kernel,
    numbered_kernel,
    shift_kernel,
    turn_kernel,
)
from pipeplan.foundation.errors import InputError
from pipeplan.model import Placement
from tests.extensions.search import swap_kernel
from tests.extensions.search.problems import PLACEMENTS, problem
from tests.extensions.search.test_evaluate import walked

REACH = Reach(places=5, stages=4, microbatches=4)


def everything_gains(placement):
    """Costs on which full backwards are shorter and overlapping gains, and everything may be decided."""
    choices = Choices(recompute=True, offload=True)
    free = problem(placement, 4, (6.0, 4.0, tuple(np.linspace(4.0, 5.0, placement.stages)), 1.0), limit=2)
    ones = np.ones(placement.stages)
    costs = replace(free.costs, backward=7.0 * ones, overlap=8.0 * ones, offload=ones)
    return replace(free, costs=costs, choices=choices)


def different_microbatches(placement):
    """The same with microbatches of which each takes another time, and no overlap."""
    alike = everything_gains(placement)
    table = np.broadcast_to(np.array([1.0, 3.0, 2.0, 0.5]), (placement.stages, 4))
    memory = replace(alike.costs.memory, factors=table)
    limits = replace(alike.limits, values=4 * alike.limits.values)
    costs = replace(alike.costs, memory=memory, factors=MicrobatchFactors(table, table, table, table))
    return replace(alike, costs=costs, limits=limits)


TURNS = [move for move in MOVES if not move.can_gain(Encoder(everything_gains(Placement.v(3))))]


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(PLACEMENTS), st.integers(1, 10**6), st.data())
def test_a_move_is_taken_back_whole(move, placement, seed, data):
    encoder = Encoder(different_microbatches(placement) if move in TURNS else everything_gains(placement))
    assume(placement.name != "linear" or move.name != "change whose weight backward is next")
    assert move.can_gain(encoder)
    decisions = encoder.from_order(encoder.one_by_one()).copy().decisions
    decisions.mode[:] = np.arange(seed, seed + encoder.positions) % 3
    change, random = encoder.empty_change(), np.array([seed])
    place = data.draw(st.integers(0, encoder.positions - 1))
    before = [array.copy() for array in decisions]
    move.propose(encoder.flat, REACH, decisions, place, change, random)
    assert all(np.array_equal(*pair) for pair in zip(before, decisions, strict=True))
    if move.apply(encoder.flat, decisions, change):
        move.undo(encoder.flat, decisions, change)
    assert all(np.array_equal(*pair) for pair in zip(before, decisions, strict=True))


def test_microbatches_are_moved_where_they_differ():
    assert [move.name for move in TURNS] == [
        "move a microbatch to another turn",
        "exchange two microbatches",
        "move a microbatch on some stages",
    ]
    for move in TURNS:
        encoder = Encoder(different_microbatches(Placement.bidirectional(4)))
        decisions, change = encoder.from_order(encoder.one_by_one()).copy().decisions, encoder.empty_change()
        before, random = decisions.turn.copy(), np.array([3])
        for place in range(encoder.positions):
            move.propose(encoder.flat, REACH, decisions, place, change, random)
            move.apply(encoder.flat, decisions, change)
        assert (decisions.turn != before).any()
        turns = decisions.turn.reshape(encoder.classes, encoder.turns)
        assert (np.sort(turns, axis=1) == np.arange(encoder.turns)).all()


def test_moves_that_cannot_gain_are_not_drawn():
    encoder = Encoder(problem(Placement.v(3), 4))
    gaining = {move.name for move in MOVES if move.can_gain(encoder)}
    shifts = {"shift an op", "shift on stages", "shift on stages and microbatches"}
    assert gaining >= {"force a weight backward", *shifts}
    assert gaining.isdisjoint({"overlap a pair", "make backwards full", "keep, recompute or offload"})


def test_weights_say_how_often_a_move_is_drawn():
    weights, random = np.array([3, 0, 1]), np.array([1])
    drawn = np.bincount([draw_weighted(random, weights) for _ in range(4000)], minlength=3)
    assert drawn[1] == 0
    assert drawn[0] / 4000 == pytest.approx(0.75, abs=0.03)


def test_without_weights_that_move_anything_forward_the_order_stays():
    still = tuple(replace(move, weight=move.weight * (move.name == "force a weight backward")) for move in MOVES)
    encoder = Encoder(problem(Placement.v(3), 4, limit=2))
    decisions, _, _ = walked(encoder, 200, moves=still)
    start, _, _ = walked(encoder, 0)
    assert np.array_equal(decisions.order, start.order)
    assert decisions.forced.any()


SWAP = Move(
    name="swap neighbours", weight=5, propose=swap_kernel.propose, apply=swap_kernel.apply, undo=swap_kernel.undo
)


def test_numbers_call_the_functions_of_the_table(monkeypatch):
    """Of each row: the search calls the functions by the row's number, tests and plugins by the row."""
    called = []

    def noted(function):
        return lambda *_: called.append(function)

    for module in (decision_kernel, mode_kernel, shift_kernel, turn_kernel):
        for name, function in [(name, each) for name, each in vars(module).items() if callable(each)]:
            monkeypatch.setattr(module, name, noted(function))
    outside = OutsideMoves(*([noted(getattr(SWAP, name))] for name in OutsideMoves._fields))
    options = StepOptions(0, np.ones(14, np.int64), outside, REACH, Target(0, 0.0), 0, np.zeros(1))
    for number, move in enumerate((*MOVES, replace(SWAP, number=len(MOVES)))):
        assert move.number == number
        encoder = Encoder(problem(Placement.v(3), 4))
        decisions, change = encoder.from_order(encoder.one_by_one()).decisions, encoder.empty_change()
        numbered_kernel.propose(number, options, encoder.flat, decisions, 0, change, np.array([1]))
        numbered_kernel.apply(number, outside, encoder.flat, decisions, change)
        numbered_kernel.undo(number, outside, encoder.flat, decisions, change)
        assert called == [move.propose, move.apply, move.undo]
        called.clear()


def test_a_weight_below_0_is_refused():
    with pytest.raises(InputError, match="swap neighbours: the weight must be at least 0, not -1"):
        replace(SWAP, weight=-1)
