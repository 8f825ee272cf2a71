from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.model import Kind, Schedule, format_schedule, parse_schedule
from pipeplan.passes import insert_recompute, split_backward, without_recompute
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS


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
