"""The steady state: patterns found, read off and proven."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.errors import InputError
from pipeplan.model import Placement
from pipeplan.simulation import simulate
from pipeplan.solver import Choices, Pattern, steady_state
from pipeplan.solver.budget import Budget
from pipeplan.solver.periodic.least_period import LeastPeriod, least_period
from pipeplan.solver.periodic.repeated import Repeated, is_plain
from pipeplan.solver.periodic.steady_states import repeated_pattern
from pipeplan.strategies import strategy
from tests.solver.periodic.all_orders import by_trying_all_orders
from tests.solver.problems import problem

TIMES = (10.0, 12.0, 8.0, 1.0)


def proven(case, microbatches=1):
    known = LeastPeriod(microbatches, Repeated(case, 1).least_period(), None)
    return least_period(known, case, Budget(None, 1, lambda: 0.0))


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_least_period_of_one_microbatch_is_that_of_the_best_order(limit):
    case = problem(Placement.linear(2), 4, (5.0, 7.0, 3.0, 1.0), limit)
    known = proven(case)
    assert known.is_least
    assert not list(known.pattern.faults())
    assert known.pattern.period == pytest.approx(by_trying_all_orders(case), abs=1.0)


def test_a_period_of_two_microbatches_is_no_longer_than_two_of_one():
    case = problem(Placement.v(2), 8, TIMES, 1.5)
    one, two = proven(case), proven(case, 2)
    assert one.is_least
    assert two.is_least
    assert two.pattern.per_microbatch <= one.pattern.per_microbatch
    assert two.pattern.per_microbatch >= Repeated(case, 1).least_period()
    assert not list(two.pattern.faults())


def test_what_several_microbatches_share_need_not_be_whole_for_each():
    case = problem(Placement.linear(2), 2, (2.0, 2.0, 1.0, 3.0), limit=2)
    two = proven(case, 2)
    assert two.pattern is not None
    assert list(two.pattern.faults()) == []
    assert two.is_least
    assert two.pattern.per_microbatch == two.bound == Repeated(case, 1).least_period() == 7.5


def test_unequal_stages_and_weights_that_free_a_part():
    case = problem(Placement.v(2), 8, ((5.0, 6.0, 4.0, 7.0), (6.0, 8.0, 5.0, 7.0), 3.0, 0.5), 1.5)
    memory = replace(case.costs.memory, freed_by_weight=0.4 * case.costs.memory.activation)
    case = replace(case, costs=replace(case.costs, memory=memory))
    known = proven(case)
    assert known.is_least
    assert not list(known.pattern.faults())
    full = proven(replace(case, choices=Choices(split=False)))
    assert full.is_least
    assert full.pattern.per_microbatch >= known.pattern.per_microbatch * (1 - 1e-3)


@pytest.mark.parametrize("change", ["earlier", "shorter"])
def test_a_wrong_pattern_has_faults(change):
    pattern = proven(problem(Placement.v(2), 8, TIMES, 1.5)).pattern
    last = max(pattern.starts, key=pattern.starts.__getitem__)
    if change == "earlier":
        wrong = replace(pattern, starts={**pattern.starts, last: 0.0})
    else:
        wrong = replace(pattern, period=0.8 * pattern.period)
    assert list(wrong.faults())


def test_a_pattern_repeated_is_one_of_more_microbatches():
    pattern = proven(problem(Placement.v(2), 8, TIMES, 1.5)).pattern
    twice = pattern.repeated(2)
    assert not list(twice.faults())
    assert (twice.microbatches, twice.per_microbatch) == (2, pattern.per_microbatch)
    assert [len(row) for row in twice.rows] == [2 * len(row) for row in pattern.rows]


def test_too_much_held_is_a_fault():
    case = problem(Placement.v(2), 8, TIMES, 2.5)
    pattern = proven(case).pattern
    tight = problem(Placement.v(2), 8, TIMES, 1)
    assert any("holds" in fault for fault in replace(pattern, problem=tight).faults())


def test_what_a_long_schedule_repeats_is_read_off():
    case = problem(Placement.linear(4), 24, (10.0, 10.0, 10.0, 0.0), 4)
    schedule = strategy("zb-h1")
    timeline = simulate(schedule(schedule.shape(4, 24)), case.costs).timeline
    pattern = repeated_pattern(case, timeline, 4)
    assert pattern is not None
    assert (pattern.microbatches, pattern.per_microbatch) == (1, 30.0)
    assert [len(row) for row in pattern.rows] == [3, 3, 3, 3]
    assert [str(op) for op in pattern.rows[3]] == ["3F3", "3I3", "3W0"]


def test_a_run_that_is_too_short_repeats_nothing():
    case = problem(Placement.linear(4), 4, limit=4)
    schedule = strategy("1f1b")
    assert repeated_pattern(case, simulate(schedule(schedule.shape(4, 4)), case.costs).timeline, 4) is None


def test_the_answer_is_within_its_bounds():
    case = problem(Placement.v(2), 8, TIMES, 1.5)
    found = steady_state(case, seconds=1.0, most=2)
    assert found.best is not None
    assert found.best.per_microbatch >= found.bound
    assert found.gap == found.best.per_microbatch / found.bound - 1
    assert isinstance(found.best, Pattern)
    assert [known.microbatches for known in found.periods] == [1, 2]
    one, two = (known.pattern.per_microbatch for known in found.periods if known.pattern is not None)
    assert two <= one
    assert all(known.bound <= known.pattern.per_microbatch for known in found.periods if known.pattern)


def test_where_full_backwards_gain_only_work_bounds_the_period():
    case = problem(Placement.v(2), 8, TIMES, 1.5)
    case = replace(case, costs=replace(case.costs, backward=np.full(4, 15.0)))
    assert not is_plain(case)
    assert Repeated(case, 1).least_period() == 2 * (10 + 15)


@pytest.mark.parametrize(
    ("more", "field"), [({"seconds": 0}, "seconds"), ({"most": 0}, "most"), ({"slices": 2}, "slices")]
)
def test_what_cannot_be(more, field):
    case = problem(Placement.v(2), 8, limit=2, slices=more.pop("slices", 1))
    with pytest.raises(InputError) as error:
        steady_state(case, **more)
    assert error.value.field == field
