import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import Receives, insert_communication
from pipeplan.simulation import simulate
from tests.passes.plans import PLANS

CROSSED = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
"""Rank 0 sends microbatch 1 forward while rank 1 sends microbatch 0's gradient back."""


def test_two_ranks_that_send_to_each_other_are_a_note_with_buffered_sends():
    report = check(parse_schedule(CROSSED))
    assert report.valid
    assert [note.rule for note in report.notes] == ["rendezvous", "reduce-grad"]


def test_and_an_error_with_blocking_ones_the_cycle_spelled_out():
    report = check(parse_schedule(CROSSED), sends="blocking")
    (problem,) = report.problems
    assert (problem.rule, problem.where) == ("rendezvous", "rank 0, op 3 (0SEND_F1)")
    assert problem.message.endswith(
        "rank 0 sends at 0SEND_F1 and blocks until rank 1 reaches 1RECV_F1, which comes after 1SEND_B0; "
        "rank 1 sends at 1SEND_B0 and blocks until rank 0 reaches 0RECV_B0, which comes after 0SEND_F1"
    )
    with pytest.raises(DeadlockError, match=">0SEND_F1<"):
        report.require_valid()


def test_a_cycle_through_receives():
    """Rank 1 receives what rank 0 sends only once it has an answer: no buffer helps."""
    text = "0F0 0SEND_F0 0RECV_B0 0B0 0F1 0SEND_F1 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1"
    (problem,) = check(parse_schedule(text)).problems
    assert problem.rule == "deadlock"


@settings(max_examples=40, deadline=None)
@given(PLANS)
def test_early_receives_meet_on_every_plan(plan: Schedule):
    assert check(insert_communication(plan), sends="blocking").problems == ()


@settings(max_examples=40, deadline=None)
@given(PLANS, st.sampled_from(["early", "late"]))
def test_the_checker_and_a_simulator_with_blocking_sends_agree(plan: Schedule, receives: Receives):
    lowered = insert_communication(plan, receives=receives)
    try:
        simulate(lowered, Settings().costs(plan.placement), communication="blocking")
    except DeadlockError:
        assert [problem.rule for problem in check(lowered, sends="blocking").problems] == ["rendezvous"]
    else:
        assert check(lowered, sends="blocking").valid
