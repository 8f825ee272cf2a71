"""A sample of what ``make torture`` judges by the thousand, on smaller instances."""

from dataclasses import replace

import pytest

pytest.importorskip("ortools", reason="the exact models need OR-Tools: the extra 'search'")

from pipeplan.simulation import lower_bound, round_trips
from tests.simulation.soundness.instances import SMALL, instance
from tests.simulation.soundness.judge import judge, judged_case


@pytest.mark.parametrize("seed", range(8))
def test_no_schedule_at_hand_beats_a_bound(seed):
    verdict = judge(instance(seed, most=SMALL), evaluations=300, seconds=0.2)
    assert verdict.violations == ()


def test_no_exact_answer_is_below_a_bound():
    for seed in range(8):
        assert judged_case(seed, seconds=1.0, cells=12, cells_of_span=8).violations == (), seed


def test_what_may_fill_any_window_but_only_one_is_taken_from_each_and_from_all_once():
    drawn = instance(2465, differing=False)
    assert judge(drawn, evaluations=0, seconds=0).violations == ()
    trips = lower_bound(drawn.placement, drawn.microbatches, drawn.costs, limits=drawn.limits).round_trips
    assert trips is not None
    assert trips.idle > sum(window.count * window.idle for window in trips.windows)


def test_a_bound_that_is_wrong_is_found_and_said(monkeypatch):
    right = round_trips._trip

    def longer(*arguments, **more):
        return replace(right(*arguments, **more), around=1e4)

    monkeypatch.setattr(round_trips, "_trip", longer)
    verdicts = (judge(instance(seed, most=SMALL), evaluations=0, seconds=0.0) for seed in range(12))
    wrong = next(verdict for verdict in verdicts if verdict.violations)
    assert "round trips" in wrong.violations[0]
