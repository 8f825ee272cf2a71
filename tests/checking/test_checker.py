from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Limits
from pipeplan.foundation.errors import DeadlockError, InvalidScheduleError
from pipeplan.model import MemoryRule, Placement, Schedule, from_ops, parse_schedule
from pipeplan.model.op import Kind, Op
from pipeplan.simulation import simulate
from tests.simulation.saving import saving_problems

GOOD = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def problems(text, **kwargs):
    schedule = parse_schedule(text, keep_duplicates=True, placement=kwargs.pop("placement", None))
    return [(problem.rule, problem.where, problem.message) for problem in check(schedule, **kwargs).problems]


def test_nothing_is_wrong_with_a_good_schedule():
    assert problems(GOOD) == []
    assert problems("0F0 0I0 0W0\n1F0 1I0 1W0") == []
    check(parse_schedule(GOOD)).require_valid()


@pytest.mark.parametrize(
    ("text", "rule", "where", "says"),
    [
        ("0F0 0F1 0B0\n1F0 1B0 1F1 1B1", "incomplete", "rank 0", "0B1 is missing, and so are I and W"),
        ("0F0 0B0 0B1\n1F0 1B0 1F1 1B1", "incomplete", "rank 0", "0F1 is missing"),
        ("0F0 0I0\n1F0 1B0", "incomplete", "rank 0", "0W0 is missing: I is there, but no weight gradient"),
        ("0F0 0W0\n1F0 1B0", "incomplete", "rank 0", "0I0 is missing, but W is there"),
        ("0F0 0I0 0W0 0B0\n1F0 1B0", "incomplete", "rank 0", "backward would run twice"),
        ("0F0 0F0 0B0\n1F0 1B0", "duplicate", "rank 0, op 1 (0F0)", "the first is at rank 0, op 0"),
        ("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0", "deadlock", "rank 0, op 1 (0B0)", "1F1 on rank 1 waits for 0F1"),
        ("0F0 0B0\n1B0 1F0", "order", "rank 1, op 0 (1B0)", "waits for 1F0, which does not come before it"),
        ("0F0 0W0 0I0", "order", "rank 0, op 1 (0W0)", "waits for 0I0"),
        ("0F9999999", "incomplete", "", "forwards, but the schedule has only 1 ops"),
        ("0F0 0OFFLOAD0 0B0", "offload", "rank 0", "0RELOAD0 is missing"),
        ("0F0 0RELOAD0 0B0", "offload", "rank 0", "0OFFLOAD0 is missing"),
        ("0F0 0OFFLOAD0 0R0 0RELOAD0 0B0", "offload", "rank 0", "one of the two"),
        ("0F0 0OFFLOAD0 0RELOAD0 0RELOAD0 0B0", "duplicate", "rank 0, op 3 (0RELOAD0)", "occurs twice"),
        ("0F0 0RELOAD0 0OFFLOAD0 0B0", "order", "rank 0, op 1 (0RELOAD0)", "waits for 0OFFLOAD0"),
        ("0OFFLOAD0 0F0 0RELOAD0 0B0", "order", "rank 0, op 0 (0OFFLOAD0)", "waits for 0F0"),
        ("0F0 0OFFLOAD0 0I0 0RELOAD0 0W0", "order", "rank 0, op 2 (0I0)", "waits for 0RELOAD0"),
    ],
)
def test_what_is_wrong_and_where(text, rule, where, says):
    first = problems(text)[0]
    assert first[:2] == (rule, where)
    assert says in first[2]


def test_an_op_on_the_wrong_rank():
    findings = problems(
        "0F0 1F0 1B0 0B0\n2F0 2B0 3F0 3B0".replace("3", "1").replace("2", "1"), placement=Placement.linear(2)
    )
    assert ("rank", "rank 0, op 1 (1F0)") in {(rule, where) for rule, where, _ in findings}


def test_overlapped_ops_stand_side_by_side():
    row = [Op(Kind.F, 0, 0), Op(Kind.F, 0, 1, group=0), Op(Kind.B, 0, 1), Op(Kind.B, 0, 0, group=0)]
    schedule = Schedule.from_rows(Placement.linear(1), 2, [from_ops(row)])
    assert {problem.rule for problem in check(schedule).problems} == {"overlap"}


def test_an_op_without_its_microbatch_is_no_other_op():
    row = [Op(Kind.F, 0, 0), Op(Kind.RELOAD, 0), Op(Kind.B, 0, 0)]
    report = check(Schedule.from_rows(Placement.linear(1), 1, [from_ops(row)]))
    assert [(problem.rule, problem.where) for problem in report.problems] == [("microbatch", "rank 0, op 1 (0RELOAD)")]


def test_a_pair_whose_halves_wait_for_each_other_through_another_rank():
    findings = problems("0F0 (0F1;0B0)OVERLAP_F_B 0B1\n1F0 1F1 1B0 1B1")
    assert [rule for rule, _, _ in findings] == ["deadlock"]


def test_the_faulty_op_is_marked_in_a_grid():
    schedule = parse_schedule("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0")
    with pytest.raises(DeadlockError, match=">0B0<"):
        check(schedule).require_valid()
    with pytest.raises(InvalidScheduleError, match=r">1B0<  1F0"):
        check(parse_schedule("0F0 0B0\n1B0 1F0")).require_valid()


def test_memory_is_capped_per_rank():
    def within(*limit):
        return MemoryRule(np.ones(2), np.ones(2), np.array(limit, float))

    assert problems(GOOD, memory=within(2, 1)) == []
    (result,) = problems(GOOD, memory=within(1, 1))
    assert result[:2] == ("memory", "rank 0, op 1 (0F1)")
    assert "holds 2 activations here" in result[2]


def test_a_message_about_bytes_counts_static_ones():
    rule = MemoryRule(np.array([10.0]), np.array([10.0]), np.array([5.0]), "bytes", static=np.array([100.0]))
    ((_, _, message),) = problems("0F0 0B0", memory=rule)
    assert message == "the rank holds 110.0 B here and 110.0 B at its peak; its limit is 105.0 B"


def test_weights_are_held_until_w():
    late = "0F0 0F1 0I0 0I1 0W0 0W1"
    half = MemoryRule(np.ones(1), np.full(1, 0.5), np.array([2.0]))
    assert problems(late, memory=half) == []
    more = MemoryRule(np.ones(1), np.full(1, 1.7), np.array([2.0]))
    assert problems(late, memory=more)[0][1] == "rank 0, op 2 (0I0)"


def test_what_recomputations_keep_and_offloads_move():
    """Held: 1, 1.25, 0.5, 1.25, 0.25, 1, 0."""
    text = "0F0 0F1 0OFFLOAD0 0R1 0B1 0RELOAD0 0B0"
    parts: Any = {"recompute_keeps": np.full(1, 0.25), "offloaded": np.full(1, 0.75)}
    assert problems(text, memory=MemoryRule(np.ones(1), np.ones(1), np.array([1.25]), **parts)) == []
    (result,) = problems(text, memory=MemoryRule(np.ones(1), np.ones(1), np.array([1.2]), **parts))
    assert result[1] == "rank 0, op 1 (0F1)"
    sliced = "0F0.0 0F0.1 0R0.1 0B0.1 0B0.0"
    half = MemoryRule(np.ones(1), np.ones(1), np.array([0.9]))
    assert problems(sliced, memory=half)[0][1] == "rank 0, op 2 (0R0.1)"


@settings(max_examples=25, deadline=None)
@given(saving_problems())
def test_a_schedule_is_within_its_own_peak_and_over_a_little_less(problem):
    schedule, costs = problem
    peaks = simulate(schedule, costs).memory.peak_activation
    rule = costs.memory.rule(schedule.placement, Limits(peaks, in_activations=True))
    assert check(schedule, memory=rule).valid
    less = replace(rule, limit=rule.limit * 0.999)
    assert {problem.rule for problem in check(schedule, memory=less).problems} == {"memory"}
