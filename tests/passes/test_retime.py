import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Schedule, dependencies, format_schedule, parse_schedule, progress
from pipeplan.passes import retime, split_backward
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS, without_copies
from tests.simulation.saving import saving_problems


def test_a_weight_gradient_moves_into_a_bubble():
    """Rank 0 waits two steps for 0I1, and could do 0W0 meanwhile."""
    late = parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1\n1F0 1I0 1W0 1F1 1I1 1W1")
    assert format_schedule(retime(late)) == "0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1"


def test_weight_gradients_that_find_no_bubble_stay():
    plan = parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1")
    assert retime(plan) == plan


@settings(max_examples=20, deadline=None)
@given(saving_problems())
def test_copies_never_hold_more(problem):
    schedule, costs = problem
    schedule = split_backward(schedule)
    again = retime(schedule)
    assert check(again).valid
    assert without_copies(again) == retime(without_copies(schedule))
    held = simulate(again, costs).memory.peak_activation
    assert (held <= simulate(schedule, costs).memory.peak_activation + 1e-9).all()


def test_a_schedule_that_deadlocks_has_no_steps():
    with pytest.raises(DeadlockError, match="never runs"):
        retime(parse_schedule("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0"))


@settings(max_examples=40, deadline=None)
@given(PLANS.map(split_backward))
def test_nothing_is_later_nothing_holds_more_and_the_rest_keeps_its_order(plan: Schedule):
    moved = retime(plan)
    assert check(moved).valid
    assert retime(moved) == moved
    rest = plan.columns.kind != Kind.W
    assert moved.keep(moved.columns.kind != Kind.W) == plan.keep(rest)
    assert moved.keep(moved.columns.kind == Kind.W) == plan.keep(~rest)
    assert _steps(moved).max() <= _steps(plan).max()
    costs = Settings(times_per="stage").costs(plan.placement)
    if not plan.joined.any():  # a pair is one step, and takes the time of two ops
        assert simulate(moved, costs).timeline.makespan <= simulate(plan, costs).timeline.makespan + 1e-9
    held, before = (simulate(each, costs).memory.activations for each in (moved, plan))
    forwards = moved.columns.kind == Kind.F, plan.columns.kind == Kind.F
    assert (held[forwards[0]] <= before[forwards[1]] + 1e-9).all()


def _steps(schedule: Schedule) -> np.ndarray:
    return progress(schedule, dependencies(schedule)).step
