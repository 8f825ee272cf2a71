"""What a timeline says of its ranks, and which timelines cannot be."""

import numpy as np
import pytest

import pipeplan
from pipeplan.foundation.errors import CostError
from pipeplan.model import Timeline, parse_schedule, tolerances


def test_a_rank_that_is_always_busy_idles_for_no_time_at_all():
    """33 times 1.1 and 33 times 0.37 add up to another last digit one by one than pair by pair."""
    timeline = pipeplan.simulate("1f1b", ranks=1, microbatches=33, forward_times=1.1, backward_times=1.1 / 3).timeline
    assert timeline.makespan < timeline.work[0]
    assert timeline.idle.tolist() == [0.0]


PAIR = "0F0 (0F1;0B0)OVERLAP_F_B 0B1"


def timeline_of(text, start, end, source="simulated"):
    return Timeline(parse_schedule(text), np.array(start, float), np.array(end, float), source=source)


def test_an_op_does_not_end_before_it_starts():
    with pytest.raises(CostError, match=r"rank 0, op 1 \(0B0\) ends at 1, before it starts at 3"):
        timeline_of("0F0 0B0", [0, 3], [1, 1])


@pytest.mark.parametrize("source", ["simulated", "measured"])
@pytest.mark.parametrize(
    ("start", "end", "first", "second"),
    [
        ([0, 0, 2, 4], [2, 2, 4, 6], "0F0", r"op 1 \(0F1\)"),
        ([0, 2, 3, 4], [10, 3, 4, 6], "0F0", r"op 1 \(0F1\)"),
        ([5, 0, 2, 4], [6, 2, 6, 4.5], "0B0", r"op 3 \(0B1\)"),
    ],
)
def test_a_rank_computes_one_op_at_a_time(source, start, end, first, second):
    with pytest.raises(CostError, match=rf"rank 0, {second} runs while {first} does"):
        timeline_of("0F0 0F1 0B0 0B1", start, end, source)


def test_on_another_rank_and_in_a_pair_two_ops_run_at_once():
    assert timeline_of("0F0 0B0\n1F0 1B0", [0, 2, 0, 2], [2, 4, 2, 4]).makespan == 4
    assert timeline_of(PAIR, [0, 1, 1.5, 4], [1, 4, 3, 6]).makespan == 6
    with pytest.raises(CostError, match=r"op 3 \(0B1\) runs while 0F1 does"):
        timeline_of(PAIR, [0, 1, 1.5, 3], [1, 4, 3, 6])


def test_measured_ops_may_touch():
    inside, beyond = 1 - 0.9 * tolerances.MEASURED, 1 - 1.1 * tolerances.MEASURED
    assert timeline_of("0F0 0B0", [0, inside], [1, 4], "measured").makespan == 4
    with pytest.raises(CostError, match="runs while 0F0 does"):
        timeline_of("0F0 0B0", [0, beyond], [1, 4], "measured")
    with pytest.raises(CostError, match="runs while 0F0 does"):
        timeline_of("0F0 0B0", [0, inside], [1, 4])


def test_the_span_bubble_is_that_of_the_rank_with_the_longest_span():
    timeline = timeline_of("0F0 0B0\n1F0 1B0", [0, 3, 1, 2], [1, 5, 2, 3])
    assert timeline.work.tolist() == [3, 2]
    assert timeline.bubble.span == pytest.approx(2 / 5)
