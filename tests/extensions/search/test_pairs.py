"""Searches whose pairs take a time of both stages: by a list, a table or segments."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.extensions.search import Choices, Problem, search
from pipeplan.model import Placement
from tests.extensions.search.problems import PLACEMENTS
from tests.torture.schedules.evaluations import moved
from tests.torture.schedules.random_costs import PAIR_KINDS, overlapping


@pytest.mark.parametrize("more", [{}, {"communication": "contended"}, {"choices": Choices(split=False)}, {"slices": 2}])
@pytest.mark.parametrize("number", range(len(PLACEMENTS)))
@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_candidates_are_worth_what_their_schedules_take(kind, number, more):
    """Flat and wide problems, pairs with I and with full backwards."""
    problem = Problem(PLACEMENTS[number], 4, overlapping(kind, PLACEMENTS[number], number), **more)
    for seed in range(4):
        moved(Random(seed), problem)


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
