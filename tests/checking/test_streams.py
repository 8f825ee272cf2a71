"""Deadlocks of messages that run in order on communication streams."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.model import Kind, Streams, parse_schedule
from pipeplan.passes import insert_communication
from tests.passes.plans import PLANS
from tests.simulation.test_streams import STUCK
from tests.slow_streams import Executor

LEVELS: tuple[Streams, ...] = get_args(Streams)


@pytest.mark.parametrize("level", ["rank", "direction"])
def test_a_deadlock_is_a_problem_with_its_circle(level):
    (problem,) = check(parse_schedule(STUCK), streams=level).problems
    assert problem.rule == "streams"
    assert "1RECV_F1 on rank 1 is behind 1SEND_F0 on its stream" in problem.message
    assert "2RECV_F0 on rank 0 is behind 0SEND_F1 on its stream" in problem.message


def test_it_is_none_where_each_edge_has_a_stream():
    report = check(parse_schedule(STUCK), streams="edge")
    assert report.valid
    assert not [note for note in report.notes if note.rule == "rendezvous"]


def test_an_op_can_be_part_of_the_circle():
    """Rank 0 posts the receive of a gradient before the send of the activation that it is of."""
    text = "0F0 0RECV_B0 0SEND_F0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0"
    (problem,) = check(parse_schedule(text), streams="rank").problems
    assert sorted(problem.message.partition("other: ")[2].split("; ")) == [
        "0SEND_F0 on rank 0 is behind 0RECV_B0 on its stream",
        "1F0 on rank 1 waits for 1RECV_F0",
        "1SEND_B0 on rank 1 is posted after 1F0",
    ]
    assert check(parse_schedule(text), streams="edge").valid


@settings(max_examples=25, deadline=None)
@given(PLANS, st.sampled_from(["early", "late"]), st.sampled_from(LEVELS))
def test_the_checker_and_an_executor_with_queues_agree(plan, receives, level):
    lowered = insert_communication(plan, receives=receives)
    stuck = [problem.rule for problem in check(lowered, streams=level).problems]
    assert stuck == ["streams"] * Executor(lowered, level).stuck
    if receives == "early" or not lowered.has(Kind.SEND_F):
        assert not stuck
