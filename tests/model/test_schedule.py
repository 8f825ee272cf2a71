import numpy as np
import pytest

from pipeplan.foundation.errors import InvalidScheduleError, ShapeError
from pipeplan.model import Kind, Op, Placement, Schedule, Timeline, from_ops, ops, parse_schedule

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def test_ops_are_handed_out_where_a_person_looks():
    schedule = parse_schedule(PLAN)
    assert schedule[0] == (Op(Kind.F, 0, 0), Op(Kind.F, 0, 1), Op(Kind.B, 0, 0), Op(Kind.B, 0, 1))
    assert schedule[-1] == schedule[1] == list(schedule)[1]
    assert repr(schedule) == "<Schedule 2 ranks, 2 stages (linear), 2 microbatches, 8 ops>"
    assert schedule.place(5) == "rank 1, op 1 (1B0)"
    with pytest.raises(IndexError):
        schedule[2]


def test_equal_plans_under_other_names_and_group_numbers():
    assert parse_schedule(PLAN, name="a") == parse_schedule(PLAN, name="b")
    assert parse_schedule(PLAN) != parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    pair = [Op(Kind.F, 0, 1, group=7), Op(Kind.B, 0, 0, group=7)]
    same = [Op(op.kind, 0, op.microbatch, group=2) for op in pair]
    apart = [Op(op.kind, 0, op.microbatch) for op in pair]
    left, right, third = (Schedule.from_rows(Placement.linear(1), 2, [from_ops(row)]) for row in (pair, same, apart))
    assert left == right
    assert left != third


@pytest.mark.parametrize(
    ("microbatches", "row", "error"),
    [
        (0, ops(Kind.F, 0, 0), ShapeError),
        (1, ops(Kind.F, 0, 1), InvalidScheduleError),
        (1, ops(Kind.F, 1, 0), InvalidScheduleError),
        (1, ops(Kind.F, 0, 0, 1), InvalidScheduleError),
    ],
)
def test_what_one_object_can_know_is_checked(microbatches, row, error):
    with pytest.raises(error):
        Schedule.from_rows(Placement.linear(1), microbatches, [row])


def test_a_timeline_counts_a_pair_once():
    schedule = parse_schedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1")
    timeline = Timeline(schedule, np.array([0.0, 1, 1, 5]), np.array([1.0, 4, 4, 7]))
    assert timeline.makespan == 7
    assert timeline.work.tolist() == [6]
    assert timeline.idle.tolist() == [1]
    assert timeline.spans.tolist() == [7]
    assert timeline.bubble.idle_over_total == pytest.approx(1 / 7)
    assert timeline.bubble.over_ideal == pytest.approx(1 / 6)
    assert timeline.bubble.span == pytest.approx(1 / 7)
