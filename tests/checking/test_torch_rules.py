"""Rules of PyTorch's runtime: order of losses, stage-wide ops and ops that wait."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.checking.torch_rules import check_losses
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import WAIT_KINDS, Kind, Schedule, among, format_schedule, order_of_losses, parse_schedule
from pipeplan.passes import in_order_of_losses, lower_for_torch, without_communication, without_waits
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy
from tests.passes.plans import PLANS

SWAPPED = "0F0 0F1 0B0 0B1\n1F1 1F0 1B1 1B0"


def test_losses_out_of_order_are_wrong_in_pytorch_alone():
    report = check(parse_schedule(SWAPPED))
    assert (report.valid, [note.rule for note in report.notes]) == (True, ["losses"])
    (problem,) = check(parse_schedule(SWAPPED), pytorch=True).problems
    assert (problem.rule, problem.where) == ("losses", "rank 1, op 0 (1F1)")


def test_pytorch_stops_at_a_backward_whose_loss_it_does_not_have():
    for last, place in {"1F1 1B1 1F0 1B0": "op 1 (1B1)", "1F1 1I1 1F0 1I0 1W1 1W0": "op 1 (1I1)"}.items():
        schedule = parse_schedule(f"0F0 0F1 0B0 0B1\n{last}")
        (problem,) = check(schedule, pytorch=True).problems
        assert problem.where == f"rank 1, {place}"
        assert "1 loss: it stores them" in problem.message
        assert "stops with 'Loss for microbatch 1 is not available'" in problem.message
        assert [note.rule for note in check(schedule).notes] == ["losses"]
    assert "makes gradients wrong" in check(parse_schedule(SWAPPED), pytorch=True).problems[0].message


def test_two_copies_of_a_model_have_losses_of_their_own():
    dualpipe = strategy("dualpipe")
    assert not list(check_losses(dualpipe(dualpipe.shape(2, 4))))


def test_microbatches_are_numbered_as_their_losses_come():
    assert format_schedule(in_order_of_losses(parse_schedule(SWAPPED))) == "0F1 0F0 0B1 0B0\n1F0 1F1 1B0 1B1"


@settings(max_examples=40, deadline=None)
@given(PLANS, st.randoms(use_true_random=False))
def test_any_numbering_is_put_in_order(plan: Schedule, random):
    """A schedule under other numbers is the same one once its numbers follow its losses."""
    shuffled = list(range(plan.microbatches))
    random.shuffle(shuffled)
    numbers = np.array(shuffled, np.int32)[plan.columns.microbatch]
    other = replace(plan, columns=replace(plan.columns, microbatch=numbers))
    if plan.placement.copies > 1 or plan.slices > 1:
        return
    ordered = in_order_of_losses(other)
    assert order_of_losses(ordered).tolist() == list(range(plan.microbatches))
    assert ordered == in_order_of_losses(plan)
    assert check(ordered).valid
    assert not list(check_losses(ordered))


SHARDED = "0UNSHARD 0F0 0F1 0B0 0B1 0REDUCE_GRAD 0RESHARD"


def rules(text: str, **options: bool | None) -> list[tuple[str, str]]:
    schedule = parse_schedule(text, keep_duplicates=True)
    return [(problem.rule, problem.where) for problem in check(schedule, **options).problems]  # type: ignore[arg-type]


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


ROWS = (
    "0F0 0SEND_F0 0RECV_B0 0B0 0WAIT_SEND_F0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD",
    "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 1WAIT_SEND_B0",
)
RIGHT = "\n".join(ROWS)
TOO_EARLY = RIGHT.replace("0F0 ", "0F0 0WAIT_SEND_F0 ").replace("B0 0WAIT_SEND_F0", "B0")
AGAIN = RIGHT.replace("1WAIT_REDUCE_GRAD", "1WAIT_REDUCE_GRAD 1WAIT_REDUCE_GRAD")
TWO_AT_ONCE = "0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD 1WAIT_REDUCE_GRAD 0WAIT_REDUCE_GRAD"


def test_each_send_and_each_reduction_is_waited_for():
    assert rules(RIGHT, waits=True) == rules(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "rule", "where"),
    [
        (RIGHT.replace("0WAIT_SEND_F0 ", ""), "wait", "rank 0, op 1 (0SEND_F0)"),
        (RIGHT.replace("1WAIT_SEND_B0", ""), "wait", "rank 1, op 3 (1SEND_B0)"),
        (RIGHT.replace("0WAIT_SEND_F0", "0WAIT_SEND_F0 0WAIT_SEND_F0"), "duplicate", "rank 0, op 5 (0WAIT_SEND_F0)"),
        (RIGHT.replace("0WAIT_SEND_F0", "0WAIT_SEND_B0 0WAIT_SEND_F0"), "wait", "rank 0, op 4 (0WAIT_SEND_B0)"),
        (TOO_EARLY, "order", "rank 0, op 1 (0WAIT_SEND_F0)"),
        (RIGHT.replace(" 0WAIT_REDUCE_GRAD", ""), "wait", "rank 0, op 5 (0REDUCE_GRAD)"),
        (AGAIN, "wait", "rank 1, op 6 (1WAIT_REDUCE_GRAD)"),
        (RIGHT.replace("1REDUCE_GRAD 1W", "1WAIT_REDUCE_GRAD 1REDUCE_GRAD 1W"), "wait", "rank 1, op 4 (1WAIT_REDUCE_GRAD)"),
        (TWO_AT_ONCE, "wait", "rank 0, op 5 (0REDUCE_GRAD)"),
        ("0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD", "reduce-grad", "rank 0"),
        ("0UNSHARD 0F0 0F1 0B0 0REDUCE_GRAD 0B1 0RESHARD", "reduce-grad", "rank 0, op 4 (0REDUCE_GRAD)"),
        ("0F0 0F1 0B0 0I1 0REDUCE_GRAD 0W1", "reduce-grad", "rank 0, op 4 (0REDUCE_GRAD)"),
        (SHARDED.replace("0REDUCE_GRAD", "0REDUCE_GRAD 0REDUCE_GRAD"), "reduce-grad", "rank 0, op 6 (0REDUCE_GRAD)"),
        ("0F0 0UNSHARD 0F1 0B0 0B1 0REDUCE_GRAD 0RESHARD", "sharding", "rank 0, op 0 (0F0)"),
        ("0UNSHARD 0F0 0F1 0B0 0RESHARD 0B1 0REDUCE_GRAD", "sharding", "rank 0, op 5 (0B1)"),
        (SHARDED.replace("0F1", "0UNSHARD 0F1 0RESHARD"), "sharding", "rank 0, op 3 (0F1)"),
        (SHARDED + " 0RESHARD", "sharding", "rank 0, op 7 (0RESHARD)"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(text: str, rule: str, where: str):
    assert (rule, where) in rules(text)
    assert {broken for broken, _ in rules(text)} == {rule}


def test_a_wait_for_a_send_whose_receive_comes_too_late_is_a_deadlock():
    """Each rank waits for its send before it posts the receive of the other's."""
    text = (
        "0F0 0SEND_F0 0F1 0SEND_F1 0WAIT_SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1\n"
        "1RECV_F0 1F0 1B0 1SEND_B0 1WAIT_SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1WAIT_SEND_B1"
    )
    report = check(parse_schedule(text))
    assert [(problem.rule, problem.where) for problem in report.problems] == [
        ("deadlock", "rank 0, op 4 (0WAIT_SEND_F1)")
    ]
    assert "1WAIT_SEND_B0 on rank 1 waits for 0RECV_B0" in report.problems[0].message
    with pytest.raises(DeadlockError):
        report.require_valid()


def test_a_runtime_without_such_ops_refuses_them_and_one_with_them_their_absence():
    assert {rule for rule, _ in rules(RIGHT, waits=False)} == {"wait"}
    bare = without_waits(parse_schedule(RIGHT))
    assert {problem.rule for problem in check(bare, waits=True).problems} == {"wait"}
    assert check(bare, waits=False).valid
    assert [note.rule for note in check(bare).notes] == ["wait"]


@settings(max_examples=25, deadline=None)
@given(PLANS.filter(lambda plan: plan.placement.copies == 1 and plan.slices == 1), st.sampled_from(["early", "late"]))
def test_lowered_schedules_wait_for_all_and_run_as_without(plan: Schedule, receives):
    lowered = lower_for_torch(plan, receives=receives, waits=True)
    assert check(lowered, waits=True).valid
    assert lower_for_torch(lowered, waits=True) == lowered == lower_for_torch(lowered)
    bare = lower_for_torch(plan, receives=receives, waits=False)
    assert without_waits(lowered) == bare
    assert not without_communication(lowered).kinds & {Kind.WAIT_SEND_F, Kind.WAIT_SEND_B}
    assert bare.kinds.isdisjoint(WAIT_KINDS)
    costs = Settings(p2p_time=0.25).costs(plan.placement)
    for communication in ("edge", "contended", *(("blocking",) if receives == "early" else ())):
        waiting, without = (
            simulate(schedule, costs, communication=communication).timeline for schedule in (lowered, bare)
        )
        kept = ~among(lowered.columns.kind, WAIT_KINDS)
        assert np.array_equal(waiting.start[kept], without.start)
        assert np.array_equal(waiting.end[kept], without.end)
