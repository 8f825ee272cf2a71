import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.checking.memory import waiting_messages
from pipeplan.model import Schedule, dependencies, parse_schedule
from pipeplan.passes import Receives, insert_communication
from pipeplan.strategies import STRATEGIES
from tests.passes.plans import PLANS

GREEDY = (
    "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2\n"
    "1RECV_F0 1RECV_F1 1RECV_F2 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1F2 1B2 1SEND_B2"
)
"""Rank 1 receives all there is before it starts."""


def test_messages_that_wait():
    schedule = parse_schedule(GREEDY)
    waiting = waiting_messages(schedule, dependencies(schedule))
    assert waiting[schedule.rank == 1].tolist() == [1, 2, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_a_limit_that_is_asked_for_is_an_error():
    report = check(parse_schedule(GREEDY), buffers=2)
    (problem,) = report.problems
    assert (problem.rule, problem.where) == ("buffers", "rank 1, op 2 (1RECV_F2)")
    assert "3 received messages wait" in problem.message
    assert "late receives need 1, and 2 are allowed" in problem.message
    assert check(parse_schedule(GREEDY), buffers=3).valid


def test_without_a_limit_only_far_too_many_are_worth_a_note():
    """A loop's second chunk has to wait until the first is through, wherever its messages wait."""

    def notes(microbatches: int) -> list[str]:
        strategy = STRATEGIES["looped-bfs"]
        report = check(insert_communication(strategy(strategy.shape(2, microbatches))))
        assert report.valid
        return [note.where for note in report.notes if note.rule == "buffers"]

    assert notes(4) == []
    assert notes(16) == ["rank 0, op 16 (2RECV_F4)", "rank 1, op 95 (1RECV_B11)"]


@pytest.mark.parametrize("receives", ["early", "late"])
@settings(max_examples=30, deadline=None)
@given(plan=PLANS)
def test_every_message_is_used_up_and_late_receives_need_no_more(plan: Schedule, receives: Receives):
    early, late = (insert_communication(plan, receives=receives) for receives in ("early", "late"))
    peaks = []
    for schedule in (early, late):
        waiting = waiting_messages(schedule, dependencies(schedule))
        assert (waiting >= 0).all()
        assert (waiting[schedule.offsets[1:] - 1] == 0).all()
        peaks.append(np.array([waiting[schedule.rank == rank].max() for rank in range(schedule.ranks)]))
    assert (peaks[1] <= peaks[0]).all()
