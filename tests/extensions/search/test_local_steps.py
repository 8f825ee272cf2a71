"""Steps of the annealing that are timed in part: they lead where steps lead that are timed whole."""

import numpy as np
import pytest

from pipeplan.extensions.search import Choices
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.annealing import WAITS, kernel_by
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.engines.local_steps import LocalSteps, Steps, local_moves
from pipeplan.extensions.search.kernels.annealing_kernel import annealing_by
from pipeplan.extensions.search.kernels.arrays import AnnealingState, Reach
from pipeplan.extensions.search.moves import MOVES
from pipeplan.model import Placement
from tests.extensions.search.problems import problem

REACH = Reach(places=3, stages=3, microbatches=3)

CASES = [
    (problem(Placement.v(4), 16, limit=3), 1.0),
    (problem(Placement.v(4), 16), 1.0),
    (problem(Placement.linear(4), 32, limit=4, objective="span"), 5.0),
    (problem(Placement.loop(3, 2), 24, limit=5), 0.2),
    (problem(Placement.bidirectional(4), 32, limit=6), 1.0),
    (problem(Placement.v(4), 16, limit=3, choices=Choices(split=False)), 2.0),
]


def annealed(encoder, moves, steps, heat, *, locally):
    start = list_schedule(encoder, earliest(encoder), 10.0)
    decisions, best = start.copy().decisions, start.copy().decisions
    value = encoder.score(decisions, 0.25)
    state = AnnealingState(np.full(2, value), np.array([heat, 0.999]), np.array([7]), encoder.empty_chain())
    if locally:
        how = Steps(moves=moves, reach=REACH, critical=10, target=encoder.target(0.25))
        local, done = LocalSteps(encoder, how, decisions, best, state), 0
        while done < steps:
            done += local.make(min(steps - done, 70))
    else:
        weights = np.array([move.weight for move in moves], np.int64)
        inputs = (encoder.flat, weights, REACH, 10, encoder.target(0.25), WAITS, steps)
        outputs = (decisions, best, state, encoder.empty_change(), encoder.empty_timing())
        kernel_by(annealing_by, moves, encoder.evaluator.function)(inputs, outputs, work=0)
    return decisions, best, state


@pytest.mark.parametrize(("case", "heat"), CASES)
def test_they_lead_where_steps_lead_that_are_timed_whole(case, heat):
    encoder = Encoder(case)
    moves = local_moves(encoder, MOVES)
    assert moves
    whole, parts = (annealed(encoder, moves, 300, heat, locally=locally) for locally in (False, True))
    assert parts[2].random == whole[2].random
    assert parts[2].value.tolist() == whole[2].value.tolist()
    assert (
        parts[2].critical[: 1 + parts[2].critical[0]].tolist() == whole[2].critical[: 1 + whole[2].critical[0]].tolist()
    )
    for one, other in zip(parts[:2], whole[:2], strict=True):
        assert one.order.tolist() == other.order.tolist()
        assert one.forced.tolist() == other.forced.tolist()
    assert encoder.score(parts[1], 0.25) == parts[2].value[1]


@pytest.mark.slow
def test_they_time_a_part():
    encoder = Encoder(problem(Placement.v(4), 60, limit=4))
    moves = local_moves(encoder, MOVES)
    start = list_schedule(encoder, earliest(encoder), 10.0)
    state = AnnealingState(np.full(2, start.value), np.array([1.0, 0.999]), np.array([7]), encoder.empty_chain())
    how = Steps(moves=moves, reach=REACH, critical=10, target=encoder.target())
    local = LocalSteps(encoder, how, start.copy().decisions, start.copy().decisions, state)
    local.make(40)
    timed = local.visits - encoder.positions
    assert 0 < timed < 0.5 * 40 * encoder.positions


def test_they_are_not_for_short_schedules_nor_for_what_they_do_not_know():
    assert not local_moves(Encoder(problem(Placement.v(3), 4, limit=2)), MOVES)
    others = tuple(move for move in MOVES if move.name == "make backwards full")
    assert not local_moves(Encoder(problem(Placement.v(4), 16)), others)
    assert not local_moves(Encoder(problem(Placement.v(4), 16, communication="contended")), MOVES)
