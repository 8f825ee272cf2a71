"""Searches whose pairs take a time of both stages: by a list, a table or segments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Costs, Settings
from pipeplan.extensions.search import Choices, Problem, search
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.moves import MOVES, moves_for
from pipeplan.model import Kind, Placement
from pipeplan.simulation import simulate
from tests.extensions.search.problems import PLACEMENTS
from tests.extensions.search.walks import annealed
from tests.overlapping import overlapping

KINDS = ["list", "matrix", "segments"]


@pytest.mark.parametrize("more", [{}, {"communication": "contended"}, {"choices": Choices(split=False)}, {"slices": 2}])
@pytest.mark.parametrize("number", range(len(PLACEMENTS)))
@pytest.mark.parametrize("kind", KINDS)
def test_the_value_is_the_simulators(kind, number, more):
    """Flat and wide problems, pairs with I and with full backwards."""
    problem = Problem(PLACEMENTS[number], 4, overlapping(kind, PLACEMENTS[number], number), **more)
    encoder = Encoder(problem)
    start, moves = list_schedule(encoder, earliest(encoder), 10.0), moves_for(encoder, MOVES)
    joined = 0
    for seed in range(1, 4):
        walk = annealed(encoder, start, moves, steps=300, heat=5.0, seed=seed)
        for decisions in (walk.decisions, walk.best):
            candidate = encoder.evaluate(decisions)
            schedule = encoder.decode(candidate)
            joined += int(schedule.joined.sum())
            timeline = simulate(schedule, problem.costs, communication=problem.communication).timeline
            assert problem.value(timeline) == candidate.value
            assert encoder.encode(schedule).value <= candidate.value
    assert joined


@pytest.mark.parametrize("kind", KINDS)
def test_stages_whose_backwards_gain_are_those_with_a_forward_that_saves(kind):
    for seed, placement in enumerate(PLACEMENTS):
        costs = overlapping(kind, placement, seed)
        problem = Problem(placement, 4, costs)
        shorter = costs.backward < costs.backward_input + costs.backward_weight
        assert problem.full_gains.tolist() == (shorter | _saves(placement, costs, Kind.B)).tolist()
        assert problem.pairs_gain == bool((_saves(placement, costs, Kind.B) | _saves(placement, costs, Kind.I)).any())


def _saves(placement: Placement, costs: Costs, kind: Kind) -> np.ndarray:
    backward = costs.backward if kind is Kind.B else costs.backward_input
    saves = np.zeros(placement.stages, np.bool_)
    for rank in range(placement.ranks):
        held = {stage for copy in range(placement.copies) for stage in placement.stages_on(rank, copy)}
        for one in held:
            for other in held:
                pair = np.array([one]), np.array([other]), backward[[other]]
                saves[other] |= costs.pair_times(*pair, kind is Kind.I)[0] < costs.forward[one] + backward[other]
    return saves


def test_the_search_pairs_the_stages_that_save():
    """Forwards of stage 0 save 2 with backwards of stage 1, and all other pairs nothing."""
    placement = Placement.loop(1, 2)
    costs = Settings(forward_times=2, backward_times=4, times_per="stage").costs(placement)
    problem = Problem(placement, 6, replace(costs, overlap=np.array([[6.0, 4.0], [6.0, 6.0]])))
    result = search(problem, evaluations=20_000, seed=1)
    columns = result.schedule.columns
    second = np.flatnonzero(result.schedule.joined)
    pairs = {(int(columns.stage[place - 1]), int(columns.stage[place])) for place in second}
    assert pairs == {(0, 1)}
    # The first forward has no backward to run beside it.
    assert result.value == 6 * 12 - 5 * 2 == problem.bound.value
    check(result.schedule).require_valid()


def test_without_pairs_that_save_on_a_rank_none_are_searched():
    """What forwards save with backwards of another rank is no gain."""
    costs = Settings(forward_times=2, backward_times=4).costs(Placement.linear(2))
    problem = Problem(Placement.linear(2), 4, replace(costs, overlap=np.array([[6.0, 4.0], [4.0, 6.0]])))
    assert not problem.pairs_gain
    assert not problem.full_gains.any()
    assert search(problem, evaluations=500).optimal
