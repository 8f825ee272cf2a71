"""Recomputed and offloaded activations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import HOST_KINDS, Kind, Schedule, format_schedule, parse_schedule
from pipeplan.passes import (
    insert_communication,
    insert_offload,
    insert_recompute,
    split_backward,
    without_communication,
    without_recompute,
)
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS, without_copies


def test_every_backward_makes_its_forward_again_first():
    plan = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    assert format_schedule(insert_recompute(plan)) == "0F0 0F1 0R0 0B0 0R1 0B1\n1F0 1R0 1B0 1F1 1R1 1B1"
    assert format_schedule(insert_recompute(plan, [1])) == "0F0 0F1 0B0 0B1\n1F0 1R0 1B0 1F1 1R1 1B1"


def test_a_pair_is_not_torn_apart():
    plan = parse_schedule("0F0 (0F1;0I0)OVERLAP_F_B 0W0 0B1")
    assert format_schedule(insert_recompute(plan)) == "0F0 0R0 (0F1;0I0)OVERLAP_F_B 0W0 0R1 0B1"


def test_what_is_recomputed_already_is_left_alone():
    plan = parse_schedule("0F0 0R0 0F1 0B0 0B1")
    assert format_schedule(insert_recompute(plan)) == "0F0 0R0 0F1 0B0 0R1 0B1"


@settings(max_examples=40, deadline=None)
@given(PLANS, st.booleans(), st.data())
def test_recompute_is_right_and_can_be_taken_out(plan: Schedule, split: bool, data: st.DataObject):
    plan = split_backward(plan) if split else plan
    stages = data.draw(st.sets(st.integers(0, plan.stages - 1)))
    recomputed = insert_recompute(plan, stages)
    assert check(recomputed).valid
    assert without_recompute(recomputed) == plan
    assert insert_recompute(recomputed, stages) == recomputed
    assert len(recomputed) - len(plan) == len(stages) * plan.microbatches * plan.slices
    held = simulate(recomputed, Settings().costs(plan.placement)).memory.peak_activation
    assert (held <= simulate(plan, Settings().costs(plan.placement)).memory.peak_activation + 1e-9).all()
    assert set(recomputed.columns.stage[recomputed.where(Kind.R)].tolist()) == stages


PLAN = "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3"


def offloaded(text: str, *args, **kwargs) -> str:
    return format_schedule(insert_offload(parse_schedule(text), *args, **kwargs))


def test_copies_stand_an_op_apart():
    assert offloaded("0F0 0F1 0F2 0F3 0F4 0B0 0B1 0B2 0B3 0B4", [(0, 0)]) == (
        "0F0 0F1 0OFFLOAD0 0F2 0F3 0RELOAD0 0F4 0B0 0B1 0B2 0B3 0B4"
    )
    both = offloaded("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3")
    assert both == (
        "0F0 0F1 0OFFLOAD0 0F2 0OFFLOAD1 0RELOAD0 0F3 0OFFLOAD2 0RELOAD1 0B0 0OFFLOAD3 0RELOAD2 0B1 0RELOAD3 0B2 0B3"
    )
    apart = offloaded("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", offload_behind=0, reload_ahead=[2])
    assert apart.startswith("0F0 0OFFLOAD0 0F1 0OFFLOAD1 0RELOAD0 0F2")


def test_what_would_save_nothing_is_kept_unless_it_is_asked_for_by_itself():
    assert offloaded("0F0 0B0 0F1 0B1", [0]) == "0F0 0B0 0F1 0B1"
    assert offloaded("0F0 0F1 0F2 0B0 0B1 0B2", [0]) == "0F0 0F1 0F2 0B0 0B1 0B2"
    assert offloaded("0F0 0B0 0F1 0B1", [(0, 1)]) == "0F0 0B0 0F1 0OFFLOAD1 0RELOAD1 0B1"
    assert offloaded("0F0 0F1 0F2 0B0 0B1 0B2", [(0, 0)]) == "0F0 0OFFLOAD0 0F1 0RELOAD0 0F2 0B0 0B1 0B2"


def test_copies_do_not_tear_a_pair_apart():
    text = "0F0 (0F1;0I0)OVERLAP_F_B 0W0 (0F2;0I1)OVERLAP_F_B 0W1 0I2 0W2"
    assert offloaded(text, [(0, 0), (0, 1)], offload_behind=0, reload_ahead=0) == (
        "0F0 0OFFLOAD0 0RELOAD0 (0F1;0I0)OVERLAP_F_B 0OFFLOAD1 0W0 0RELOAD1 (0F2;0I1)OVERLAP_F_B 0W1 0I2 0W2"
    )


@pytest.mark.parametrize(
    ("what", "says"),
    [([2], "stages 0 to 1"), ([(2, 0)], "stages 0 to 1"), ([(0, 3)], r"microbatches \[3\].* microbatches 0 to 0")],
)
def test_what_is_not_there(what, says):
    plan = parse_schedule("0F0 0B0\n1F0 1B0")
    for change, field in ((insert_offload, "offload"), (insert_recompute, "recompute")):
        with pytest.raises(ShapeError, match=says) as caught:
            change(plan, what)
        assert caught.value.field == field


@pytest.mark.parametrize("count", [-1, [1, 2, 3]])
def test_counts_that_cannot_be(count):
    with pytest.raises(ShapeError, match="one for each of the 1 stages"):
        offloaded("0F0 0B0", reload_ahead=count)


@settings(max_examples=40, deadline=None)
@given(PLANS, st.booleans(), st.booleans(), st.integers(0, 2), st.integers(0, 2), st.data())
def test_an_offload_is_right_and_can_be_taken_out(
    plan: Schedule, split: bool, told: bool, behind: int, ahead: int, data: st.DataObject
):
    plan = split_backward(plan) if split else plan
    plan = insert_communication(plan) if told else plan
    stages = data.draw(st.sets(st.integers(0, plan.stages - 1)))
    single = data.draw(st.sets(st.tuples(st.integers(0, plan.stages - 1), st.integers(0, plan.microbatches - 1))))
    moved = insert_offload(plan, [*stages, *single], offload_behind=behind, reload_ahead=ahead)
    assert check(moved).valid
    assert without_copies(moved) == plan
    assert insert_offload(moved, single) == moved
    columns = moved.columns[moved.where(Kind.RELOAD)]
    result = set(zip(columns.stage.tolist(), columns.microbatch.tolist(), strict=True))
    assert single <= result
    assert all(stage in stages or (stage, microbatch) in single for stage, microbatch in result)
    costs = Settings(offload_times=0.1).costs(plan.placement)
    held = simulate(moved, costs).memory.peak_activation
    assert (held <= simulate(plan, costs).memory.peak_activation + 1e-9).all()


@settings(max_examples=20, deadline=None)
@given(PLANS, st.data())
def test_a_microbatch_is_recomputed_or_offloaded(plan: Schedule, data: st.DataObject):
    single = data.draw(st.sets(st.tuples(st.integers(0, plan.stages - 1), st.integers(0, plan.microbatches - 1))))
    first = insert_recompute(plan, single)
    assert len(first) == len(plan) + len(single) * plan.slices
    both = insert_offload(first, range(plan.stages), offload_behind=0, reload_ahead=0)
    assert check(both).valid
    assert without_copies(both) == first
    assert insert_recompute(insert_offload(plan, single), single) == insert_offload(plan, single)
    assert without_communication(both).kinds.isdisjoint(HOST_KINDS) == (len(both) == len(first))
