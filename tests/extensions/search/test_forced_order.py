"""What limits force to come before what, between microbatches."""

import numpy as np
import pytest

from pipeplan.extensions.search.exact.integer_problem import (
    NEVER,
    IntegerProblem,
    Job,
    Shift,
    least_shifts,
    shifts_of_limit,
)
from pipeplan.model import Kind, Placement
from tests.extensions.search.problems import problem


def test_a_stage_of_which_three_fit_frees_one_before_the_fourth():
    shifts = set(shifts_of_limit([2], {2: 4}, {2: 4}, 13, Kind.I))
    assert shifts == {Shift((Kind.I, 2), (Kind.F, 2), 3), Shift((Kind.W, 2), (Kind.F, 2), 3)}


def test_both_stages_of_a_rank_are_held_on_the_way_back():
    # Of five activations: a microbatch on its way back holds two, so a third one does not get that far.
    shifts = set(shifts_of_limit([0, 3], {0: 1, 3: 1}, {}, 5, Kind.I))
    assert Shift((Kind.I, 3), (Kind.F, 3), 2) in shifts
    assert Shift((Kind.I, 0), (Kind.F, 0), 5) in shifts
    assert Shift((Kind.I, 0), (Kind.F, 3), 4) in shifts
    assert Shift((Kind.I, 3), (Kind.F, 0), 5) in shifts


def test_shifts_add_up_along_chains():
    least = least_shifts(3, [(0, 1, 2), (1, 2, 3), (0, 2, 7)])
    assert np.array_equal(least, [[NEVER, 2, 5], [NEVER, NEVER, 3], [NEVER, NEVER, NEVER]])


@pytest.mark.parametrize(("first", "second", "known"), [(0, 1, False), (0, 2, True), (1, 2, False), (1, 3, True)])
def test_a_job_is_known_to_come_before_what_its_memory_is_needed_for(first, second, known):
    integers = IntegerProblem(problem(Placement.linear(2), 4, limit=2))
    freeing, taking = Job(Kind.W, 0, 0, first), Job(Kind.F, 0, 0, second)
    assert integers.leads_to(freeing, taking) == known
    assert not integers.leads_to(taking, freeing)
