import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.model import Kind, Schedule, format_schedule, parse_schedule
from pipeplan.passes import merge_backward, split_backward
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS


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
