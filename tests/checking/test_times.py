"""Simulated timelines that could not have happened."""

from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.checking import check_times
from pipeplan.costs import Communication
from pipeplan.model import Schedule, Timeline, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.strategies import STRATEGIES

RIGHT = ([0, 3, 1, 2], [1, 4, 2, 3])


def timeline_of(start, end, source="simulated"):
    schedule = parse_schedule("0F0 0B0\n1F0 1B0")
    return Timeline(schedule, np.array(start, float), np.array(end, float), source=source)


def test_a_timeline_that_can_be():
    assert list(check_times(timeline_of(*RIGHT))) == []


@pytest.mark.parametrize(
    ("start", "end", "where", "message"),
    [
        ([-1, 3, 1, 2], [1, 4, 2, 3], "rank 0, op 0 (0F0)", "starts at -1, before the start of the step at 0"),
        (
            [0, 3, 0.5, 2],
            [1, 4, 2, 3],
            "rank 1, op 0 (1F0)",
            "starts at 0.5, before 0F0, which it waits for, ends at 1",
        ),
        ([0, 2.5, 1, 2], [1, 4, 2, 3], "rank 0, op 1 (0B0)", "before 1B0, which it waits for, ends at 3"),
    ],
)
def test_an_op_that_starts_too_early(start, end, where, message):
    [finding] = check_times(timeline_of(start, end))
    assert (finding.rule, finding.where) == ("times", where)
    assert message in finding.message
    assert list(check_times(timeline_of(start, end, "measured"))) == []


def test_an_op_without_duration_within_another():
    schedule = parse_schedule("0F0 0F1 0B0 0B1")
    timeline = Timeline(schedule, np.array([0.0, 0.5, 1, 2]), np.array([1.0, 0.5, 2, 3]))
    [finding] = check_times(timeline)
    assert finding.message == "has no duration at 0.5, inside 0F0 (0 to 1)"


def test_the_check_of_an_answer_tells_it():
    verdict = pipeplan.check(timeline_of([0, 3, 0.5, 2], RIGHT[1]))
    assert not verdict.valid
    assert [problem.rule for problem in verdict.problems] == ["times"]
    assert pipeplan.check(timeline_of(*RIGHT)).valid


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_what_is_simulated_can_be(name):
    times: dict[str, Any] = {"p2p_time": 0.3, "forward_times": 1.1, "backward_times": 2.3}
    times |= {"op_gap": 0.1, "message_time": 0.05}
    schedule = pipeplan.simulate(name, ranks=4, microbatches=8).schedule
    lowered = insert_communication(schedule)
    plans: list[tuple[Schedule, Communication]] = [(schedule, "edge"), (schedule, "contended")]
    plans += [(lowered, "edge"), (lowered, "blocking")]
    for plan, communication in plans:
        timeline = pipeplan.simulate(plan, communication=communication, **times).timeline
        assert list(check_times(timeline)) == [], communication
