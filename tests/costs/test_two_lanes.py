"""Times of pairs from segments, against an event simulator of two lanes."""

from fractions import Fraction
from functools import partial
from itertools import chain, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from pipeplan.costs import Layer, Segments, Settings
from pipeplan.foundation.errors import CostError
from pipeplan.model import Kind, Placement
from tests.costs.two_lanes import NAMES, backward, of_lists, pair, random_op

HAND = {
    # I and F of one layer: c, a, c; the forward's exchange is hidden but for 1.
    "c2 a1 c1 | | c1 a2 c1": (6, 1, 2),
    # W joins the computations of I; the exchange of I waits for W, and all of both is hidden.
    "c2 a1 c1 | c1 c1 | c1 a2 c1": (7, 0, 3),
    # Other counts: all of W comes last, and f1 waits for it.
    "c2 a1 c1 | c3 | c1 a2 c1": (8, 0, 3),
    # Nothing computes beside an exchange at the start.
    "a1 c1 | | a2 c1": (4, 2, 1),
    # Neighbors of one lane are one piece, which an exchange of 0 splits.
    "c1 c2 a1 a2 | | c4 a1 c1": (9, 1, 3),
    "c1 a0 c2 a3 | | c4 a1 c1": (10, 2, 2),
    # What the longer list has left goes on alone.
    "c1 | | c1 a2 c1 a2 c1": (8, 4, 0),
}
"""I | W | F, and what they take together, with exposed and hidden communication."""


def parsed(text):
    words = (part.split() for part in text.split("|"))
    inputs, weights, forward = (
        tuple(({"c": "compute", "a": "all_to_all"}[word[0]], Fraction(word[1:])) for word in part) for part in words
    )
    return forward, inputs, weights


@pytest.mark.parametrize("text", HAND)
def test_the_event_simulator_takes_what_is_counted_by_hand(text):
    ran = pair(*parsed(text))
    assert (ran.time, ran.exposed, ran.hidden) == HAND[text]


def test_the_event_simulator_delays_weights_and_slows_computation_beside_communication():
    forward, inputs, weights = parsed("c2 a1 c1 | c1 c1 | c1 a2 c1")
    delayed = pair(forward, inputs, weights, delayed=True)
    computed = [(piece.op, piece.begin, piece.end) for piece in delayed.pieces if piece.lane == "compute"]
    assert computed == [("b", 0, 2), ("w", 2, 3), ("f", 3, 4), ("b", 4, 5), ("w", 5, 6), ("f", 6, 7)]
    talked = [(piece.op, piece.begin, piece.end) for piece in delayed.pieces if piece.lane != "compute"]
    assert talked == [("b", 2, 3), ("f", 4, 6)]
    # Alone, its exchange is hidden behind W at 2/3 of the speed: c2, then w1 beside a1, then c1 and w1.
    assert pair((), inputs, weights, Fraction(3, 2), delayed=True).time == Fraction(16, 3)
    assert pair(forward, inputs, (), Fraction(3, 2)).time == Fraction(19, 3)


def random_stages(random, value, count, **options):
    return [of_lists(*random_op(random, value, **options)) for _ in range(count)]


def test_2000_random_pairs_take_what_the_event_simulator_says():
    """Without slowdown, none takes less than its longer op or more than both in sequence."""
    pairs = 0
    for seed in range(460):
        random = Random(f"pairs {seed}")
        slowdown = random.choice((1, random.uniform(1, 1.5)))
        delayed, inputs = random.random() < 0.5, random.random() < 0.4
        value = random.choice((partial(random.randint, 1, 3), partial(random.uniform, 0.01, 4)))
        stages = random_stages(random, value, random.randint(1, 3))
        segments = Segments(tuple(stages), slowdown=slowdown, delayed_weights=delayed)
        stage = np.arange(len(stages))
        together = segments.together(stage[:, None], stage, inputs=inputs)
        for one, other in np.ndindex(together.time.shape):
            lists = stages[one].forward, stages[other].backward_input, () if inputs else stages[other].backward_weight
            ran = pair(*lists, slowdown, delayed=delayed)
            ours = [float(times[one, other]) for times in (together.time, together.exposed, together.hidden)]
            assert ours == pytest.approx([ran.time, ran.exposed, ran.hidden], rel=1e-9, abs=1e-9), (seed, one, other)
            assert_same_lanes(segments.lanes(one, other, inputs), ran, inputs)
            alone = total(lists[0]), float(pair((), *lists[1:], slowdown, delayed=delayed).time)
            assert ours[0] >= max(alone) - 1e-9
            assert slowdown > 1 or ours[0] <= sum(alone) + 1e-9
            pairs += 1
    assert pairs >= 2000


def assert_same_lanes(ours, ran, inputs):
    """Either op works at the same times on either lane."""
    assert {piece.kind for piece in ours} - {Kind.W} == {Kind.F, Kind.I if inputs else Kind.B}
    theirs = [(piece.op == "f", piece.lane == "compute", piece.begin, piece.end) for piece in ran.pieces]
    ours = [(piece.kind == Kind.F, piece.lane == "compute", piece.begin, piece.end) for piece in ours]
    np.testing.assert_allclose(working(ours), working(theirs), rtol=1e-9, atol=1e-9)


def working(pieces):
    """Spells of work: pieces of one op and lane that follow each other at once are one."""
    spells: list[Any] = []
    for *of, begin, end in sorted(piece for piece in pieces if piece[3] > piece[2] + 1e-9):
        if spells and spells[-1][:2] == of and begin < spells[-1][3] + 1e-9:
            spells[-1][3] = end
        else:
            spells.append([*of, begin, end])
    return np.array(spells, float)


def test_a_stage_has_the_lists_of_its_layers_forward_in_order_and_backward_in_reverse():
    for seed in range(40):
        random = Random(f"layers {seed}")
        different = random_stages(random, partial(random.uniform, 0.1, 2), random.randint(1, 4), weights_talk=0)
        layers = [layer for layer in different for _ in range(2)]
        bounds = [0, random.randint(1, len(layers) - 1), len(layers)]
        delayed, slowdown = random.random() < 0.5, random.uniform(1, 1.5)
        costs = Settings(
            layers=[
                Layer(**{name: total(getattr(one, name)) for name in NAMES}, count=2, segments=one) for one in different
            ],
            layers_per_stage=(bounds[1], len(layers) - bounds[1]),
            pair_slowdown=slowdown,
            delayed_weights=delayed,
        ).costs(Placement.linear(2))
        of_stages = [layers[first:stop] for first, stop in pairwise(bounds)]
        for one, other in np.ndindex(2, 2):
            forward = chain.from_iterable(layer.forward for layer in of_stages[one])
            back = (backward(layer.backward_input, layer.backward_weight) for layer in reversed(of_stages[other]))
            ran = pair(tuple(forward), tuple(chain.from_iterable(back)), (), slowdown, delayed=delayed)
            assert costs.segments is not None
            assert costs.segments.together(one, other).time == pytest.approx(ran.time, rel=1e-9)
        assert costs.forward.tolist() == pytest.approx([sum(total(one.forward) for one in some) for some in of_stages])


def total(segments):
    return float(sum(time for _, time in segments))


def test_alone_an_op_takes_its_sum_and_a_backward_with_delayed_weights_its_two_lanes():
    random, stage = Random(1), np.arange(4)
    stages = random_stages(random, partial(random.uniform, 0.1, 2), 4)
    alone = [[total(getattr(lists, name)) for lists in stages] for name in NAMES]
    for delayed in (False, True):
        costs = Settings(segments=stages, pair_slowdown=1.25, delayed_weights=delayed).costs(Placement.linear(4))
        lists = ((one.backward_input, one.backward_weight) for one in stages)
        full = [float(pair((), *own, 1.25, delayed=delayed).time) for own in lists]
        pairs = costs.pair_times(stage, stage[::-1], costs.backward[::-1])
        for factor, scaled in ((1, costs), (2, costs.scaled(2.0))):
            ours = [getattr(scaled, name) for name in (*NAMES, "backward")]
            np.testing.assert_allclose(ours, factor * np.array([*alone, full]), rtol=1e-9)
            together = scaled.pair_times(stage, stage[::-1], scaled.backward[::-1])
            np.testing.assert_allclose(together, factor * pairs, rtol=1e-9)
        whole = costs.unsplit()  # its I is a full backward
        np.testing.assert_allclose(whole.pair_times(stage, stage[::-1], whole.backward[::-1], True), pairs)


@pytest.mark.parametrize("slowdown", [0.5, float("nan"), float("inf")])
def test_a_slowdown_is_a_factor_of_at_least_1(slowdown):
    with pytest.raises(CostError, match="pair slowdown must be at least 1 and finite"):
        Segments((), slowdown)
