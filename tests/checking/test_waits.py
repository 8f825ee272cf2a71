"""Ops that wait for sends and reduced gradients: PyTorch 2.15 needs one for each, and says which are wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import WAIT_KINDS, Kind, Schedule, among, parse_schedule
from pipeplan.passes import lower_for_torch, without_communication, without_waits
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS

ROWS = (
    "0F0 0SEND_F0 0RECV_B0 0B0 0WAIT_SEND_F0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD",
    "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 1WAIT_SEND_B0",
)
RIGHT = "\n".join(ROWS)
TOO_EARLY = RIGHT.replace("0F0 ", "0F0 0WAIT_SEND_F0 ").replace("B0 0WAIT_SEND_F0", "B0")
AGAIN = RIGHT.replace("1WAIT_REDUCE_GRAD", "1WAIT_REDUCE_GRAD 1WAIT_REDUCE_GRAD")
TWO_AT_ONCE = "0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD 1WAIT_REDUCE_GRAD 0WAIT_REDUCE_GRAD"


def rules(text: str, *, waits: bool | None = None) -> list[tuple[str, str]]:
    schedule = parse_schedule(text, keep_duplicates=True)
    return [(problem.rule, problem.where) for problem in check(schedule, waits=waits).problems]


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
        waiting, without = (simulate(each, costs, communication=communication).timeline for each in (lowered, bare))
        kept = ~among(lowered.columns.kind, WAIT_KINDS)
        assert np.array_equal(waiting.start[kept], without.start)
        assert np.array_equal(waiting.end[kept], without.end)
