"""Steps of the annealing that are timed in part: they lead where steps lead that are timed whole."""

import numpy as np
import pytest

from pipeplan.extensions.search import Choices
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.annealing import step_options, walk_from
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.engines.steps import LocalSteps, local_moves
from pipeplan.extensions.search.kernels.arrays import AnnealingState
from pipeplan.extensions.search.moves import MOVES
from pipeplan.model import Placement
from tests.extensions.search.problems import problem
from tests.extensions.search.walks import REACH, annealed

CASES = [
    (problem(Placement.v(4), 16, limit=3), 1.0),
    (problem(Placement.v(4), 16), 1.0),
    (problem(Placement.linear(4), 32, limit=4, objective="span"), 5.0),
    (problem(Placement.loop(3, 2), 24, limit=5), 0.2),
    (problem(Placement.bidirectional(4), 32, limit=6), 1.0),
    (problem(Placement.v(4), 16, limit=3, choices=Choices(split=False)), 2.0),
]


@pytest.mark.parametrize(("case", "heat"), CASES)
def test_they_lead_where_steps_lead_that_are_timed_whole(case, heat):
    encoder = Encoder(case)
    moves = local_moves(encoder, MOVES)
    assert moves
    start = list_schedule(encoder, earliest(encoder), 10.0)
    whole, parts = (
        annealed(encoder, start, moves, steps=300, heat=heat, seed=7, spread=0.25, how=how)
        for how in ("as a search", "in part")
    )
    assert parts.state.random == whole.state.random
    assert parts.state.value.tolist() == whole.state.value.tolist()
    length = 1 + whole.state.critical[0]
    assert parts.state.critical[:length].tolist() == whole.state.critical[:length].tolist()
    for one, other in ((parts.decisions, whole.decisions), (parts.best, whole.best)):
        assert one.order.tolist() == other.order.tolist()
        assert one.forced.tolist() == other.forced.tolist()
    assert encoder.score(parts.best, 0.25) == parts.state.value[1]


@pytest.mark.slow
def test_they_time_a_part():
    encoder = Encoder(problem(Placement.v(4), 60, limit=4))
    moves = local_moves(encoder, MOVES)
    start = list_schedule(encoder, earliest(encoder), 10.0)
    state = AnnealingState(np.full(2, start.value), np.array([1.0, 0.999]), np.array([7]), encoder.empty_chain())
    options = step_options(encoder, moves, REACH, 10, encoder.target())
    local = LocalSteps(encoder, moves, options, walk_from(encoder, start.copy().decisions, state))
    local.make(40)
    timed = local.visits - encoder.positions
    assert 0 < timed < 0.5 * 40 * encoder.positions


def test_they_are_not_for_short_schedules_nor_for_what_they_do_not_know():
    assert not local_moves(Encoder(problem(Placement.v(3), 4, limit=2)), MOVES)
    others = tuple(move for move in MOVES if move.name == "make backwards full")
    assert not local_moves(Encoder(problem(Placement.v(4), 16)), others)
    assert not local_moves(Encoder(problem(Placement.v(4), 16, communication="contended")), MOVES)
