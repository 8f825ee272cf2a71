import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.model import Kind, Schedule, among, parse_schedule
from pipeplan.passes import lower_for_torch
from tests.passes.plans import PLANS

RIGHT = "0UNSHARD 0F0 0F1 0B0 0B1 0REDUCE_GRAD 0RESHARD"


def rules(text: str, *, reduce_grad: bool | None = None) -> list[tuple[str, str]]:
    schedule = parse_schedule(text, keep_duplicates=True)
    return [(problem.rule, problem.where) for problem in check(schedule, reduce_grad=reduce_grad).problems]


def test_gathered_used_reduced_given_back():
    assert rules(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "rule", "where"),
    [
        ("0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD", "reduce-grad", "rank 0"),
        ("0UNSHARD 0F0 0F1 0B0 0REDUCE_GRAD 0B1 0RESHARD", "reduce-grad", "rank 0, op 4 (0REDUCE_GRAD)"),
        ("0F0 0F1 0B0 0I1 0REDUCE_GRAD 0W1", "reduce-grad", "rank 0, op 4 (0REDUCE_GRAD)"),
        (RIGHT.replace("0REDUCE_GRAD", "0REDUCE_GRAD 0REDUCE_GRAD"), "reduce-grad", "rank 0, op 6 (0REDUCE_GRAD)"),
        ("0F0 0UNSHARD 0F1 0B0 0B1 0REDUCE_GRAD 0RESHARD", "sharding", "rank 0, op 0 (0F0)"),
        ("0UNSHARD 0F0 0F1 0B0 0RESHARD 0B1 0REDUCE_GRAD", "sharding", "rank 0, op 5 (0B1)"),
        (RIGHT.replace("0F1", "0UNSHARD 0F1 0RESHARD"), "sharding", "rank 0, op 3 (0F1)"),
        (RIGHT + " 0RESHARD", "sharding", "rank 0, op 7 (0RESHARD)"),
    ],
)
def test_what_is_wrong_and_where(text: str, rule: str, where: str):
    assert (rule, where) in rules(text)
    assert {result for result, _ in rules(text)} == {rule}


def test_a_plan_of_compute_needs_no_reduction_unless_asked():
    plain = "0F0 0B0\n1F0 1B0"
    assert rules(plain) == []
    assert rules(plain, reduce_grad=True) == [("reduce-grad", "rank 0"), ("reduce-grad", "rank 1")]
    assert rules("0F0 1F0 1B0 1REDUCE_GRAD 0B0", reduce_grad=False) == []


@settings(max_examples=30, deadline=None)
@given(PLANS.filter(lambda plan: plan.placement.copies == 1 and plan.slices == 1))
def test_what_is_lowered_for_pytorch_is_right(plan: Schedule):
    lowered = lower_for_torch(plan, waits=True)
    report = check(lowered)
    assert report.problems == ()
    assert {note.rule for note in report.notes} <= {"buffers"}
    lost = lowered.keep(~among(lowered.columns.kind, (Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)))
    assert {problem.rule for problem in check(lost).problems} == {"reduce-grad"}
