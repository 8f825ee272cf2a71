"""Split and merged backwards, weight backwards moved into bubbles, and these passes together."""

import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError, InputError, ShapeError
from pipeplan.model import Kind, Schedule, dependencies, format_schedule, parse_schedule, progress
from pipeplan.passes import Rearrangement, merge_backward, retime, split_backward
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS, without_copies
from tests.simulation.saving import saving_problems


def test_a_backward_is_its_two_halves():
    split = split_backward(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"))
    assert format_schedule(split) == "0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1"


def test_the_input_half_stays_in_its_pair():
    whole = parse_schedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1")
    split = split_backward(whole)
    assert format_schedule(split) == "0F0 (0F1;0I0)OVERLAP_F_B 0W0 0I1 0W1"
    assert merge_backward(split) == whole


@pytest.mark.parametrize(
    ("halves", "merged"),
    [
        ("0F0 0I0 0W0", "0F0 0B0"),
        ("0F0 0F1 0I0 0I1 0W0 0W1", "0F0 0F1 0I0 0I1 0W0 0W1"),
        ("0F0 0F1 0I0 0I1 0W1 0W0", "0F0 0F1 0I0 0B1 0W0"),
        ("0F0 1F0 1I0 0I0 0W0 1W0", "0F0 1F0 1I0 0B0 1W0"),
        ("0F0 0F1 0B0 0I1 0W1", "0F0 0F1 0B0 0B1"),
    ],
)
def test_only_halves_side_by_side_merge(halves: str, merged: str):
    assert format_schedule(merge_backward(parse_schedule(halves))) == merged


@settings(max_examples=40, deadline=None)
@given(PLANS)
def test_splitting_and_merging_undo_each_other(plan: Schedule):
    split = split_backward(plan)
    assert not split.has(Kind.B)
    assert check(split).valid
    assert merge_backward(split) == merge_backward(plan)
    assert split_backward(merge_backward(split)) == split
    assert check(merge_backward(plan)).valid


@settings(max_examples=20, deadline=None)
@given(PLANS)
def test_splitting_costs_no_time(plan: Schedule):
    """Each pass on its own rank takes as long as before; what waits for the input's gradient can only come earlier."""
    costs = Settings().costs(plan.placement)
    split = split_backward(plan)
    before, after = simulate(plan, costs).timeline, simulate(split, costs).timeline
    assert after.makespan <= before.makespan + 1e-9
    assert after.work.tolist() == pytest.approx(before.work.tolist())


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
    held, before = (simulate(schedule, costs).memory.activations for schedule in (moved, plan))
    forwards = moved.columns.kind == Kind.F, plan.columns.kind == Kind.F
    assert (held[forwards[0]] <= before[forwards[1]] + 1e-9).all()


def _steps(schedule: Schedule) -> np.ndarray:
    return progress(schedule, dependencies(schedule)).step


PLAN = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")


@given(PLANS)
@settings(max_examples=20, deadline=None)
def test_passes_are_done_in_their_order(schedule):
    assert not Rearrangement()
    assert Rearrangement()(schedule) is schedule
    wanted = Rearrangement(split_backward=True, retime=True, merge_backward=True)
    assert wanted(schedule) == merge_backward(retime(split_backward(schedule)))


def test_what_undoes_itself_is_refused():
    with pytest.raises(InputError, match="split_backward and merge_backward undo each other"):
        Rearrangement(split_backward=True, merge_backward=True)


def test_nothing_to_retime_is_said():
    with pytest.raises(ShapeError, match=r"no weight backwards \(W\) to retime: add split_backward"):
        Rearrangement(retime=True)(PLAN)
