"""Searches for schedules that are good as the run will have them: op times that vary, a slow rank, transfers that meet."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Limits, Settings
from pipeplan.errors import InputError
from pipeplan.model import Kind, Placement
from pipeplan.simulation import simulate
from pipeplan.solver import Jitter, Judge, Problem, SlowRank, robustness, search
from pipeplan.solver.budget import Budget
from pipeplan.solver.portfolio import PlanRun
from pipeplan.solver.robustness import bound_of
from pipeplan.solver.run import Run
from pipeplan.solver.variation import Factors
from tests.solver.problems import problem

SMALL = problem(Placement.v(3), 4, limit=3)
BEST = search(SMALL, evaluations=1).schedule
PAIRED = search(problem(Placement.bidirectional(4), 8), evaluations=1).schedule


def varied(problem: Problem, variation: Jitter | SlowRank, **more: object) -> Problem:
    return replace(problem, variation=variation, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("objective", ["makespan", "span"])
@pytest.mark.parametrize("variation", [Jitter(0.1, samples=7), SlowRank(0.3)])
@pytest.mark.parametrize("schedule", [BEST, PAIRED])
def test_all_runs_at_once_take_what_each_takes_alone(objective, variation, schedule):
    asked = problem(schedule.placement, schedule.microbatches, variation=variation, objective=objective)
    factors = Factors(variation, asked.placement, asked.microbatches, 1, "judge")
    alone = [
        asked.value(simulate(schedule, asked.costs, factors=factor).timeline)
        for some in factors.of(schedule)
        for factor in some.T
    ]
    found = robustness(schedule, asked)
    assert found.mean == pytest.approx(np.mean(alone), rel=1e-12)
    assert found.worst == pytest.approx(max(alone), rel=1e-12)
    assert found.p95 == pytest.approx(np.percentile(alone, 95), rel=1e-12)
    for communication in ("contended", "blocking"):
        slower = robustness(schedule, replace(asked, communication=communication))
        assert slower.mean >= found.mean * (1 - 1e-12)


def test_an_op_varies_alike_in_every_schedule_and_each_purpose_has_samples_of_its_own():
    jitter, other = Jitter(0.2, samples=3, trained_on=3), PAIRED.renamed("again")
    shape = PAIRED.placement, PAIRED.microbatches, 1
    judged, trained = (Factors(jitter, *shape, purpose) for purpose in ("judge", "train"))
    assert np.array_equal(next(judged.of(PAIRED)), next(judged.of(other)))
    assert not np.isclose(next(judged.of(PAIRED)), next(trained.of(PAIRED))).any()
    every = np.concatenate([some.ravel() for some in Factors(Jitter(0.2, samples=400), *shape, "judge").of(PAIRED)])
    assert every.mean() == pytest.approx(1, abs=0.01)
    assert np.log(every).std() == pytest.approx(0.2, rel=0.02)


def test_samples_that_do_not_fit_into_memory_at_once_are_the_same(monkeypatch):
    asked = varied(SMALL, Jitter(0.1, samples=9))
    together = robustness(BEST, asked)
    monkeypatch.setattr("pipeplan.solver.variation.ENTRIES_AT_ONCE", 4 * 6 * 4 * 2)
    assert robustness(BEST, asked) == together


def test_nothing_that_varies_changes_nothing():
    for variation in (Jitter(0.0, samples=2), SlowRank(0.0)):
        still = robustness(BEST, varied(SMALL, variation))
        assert still.mean == still.p95 == still.worst == SMALL.value(simulate(BEST, SMALL.costs).timeline)


def test_a_search_under_jitter_is_judged_by_runs_it_was_not_made_for_and_repeats():
    asked = varied(SMALL, Jitter(0.1, samples=50, trained_on=8))
    first, second = (search(asked, evaluations=600) for _ in range(2))
    assert first.schedule == second.schedule
    assert first.robustness == second.robustness == robustness(first.schedule, asked)
    assert first.robustness is not None
    assert first.published_robustness is not None
    assert first.judged == first.robustness.p95 <= first.published_robustness.p95
    assert first.value * 0.95 < first.robustness.mean < first.robustness.p95


def test_a_search_for_the_worst_slow_rank_is_no_worse_than_one_that_does_not_look_at_it():
    plain = problem(Placement.linear(4), 6, limit=3)
    asked = varied(plain, SlowRank(0.2))
    found = search(asked, evaluations=1500)
    unaware = robustness(search(plain, evaluations=1500).schedule, asked)
    assert found.judged <= unaware.worst
    assert plain.bound.value < found.bound.value <= found.judged
    check(found.schedule, memory=asked.memory_limit).require_valid()


@pytest.mark.parametrize("placement", [Placement.linear(3), Placement.v(3), Placement.bidirectional(2)])
def test_the_bound_with_a_slow_rank_is_below_the_worst_case_of_whatever_is_found(placement):
    asked = problem(placement, 4, limit=2, variation=SlowRank(0.5))
    assert bound_of(asked).value <= search(asked, evaluations=1500).judged * (1 + 1e-9)
    assert bound_of(asked).value >= replace(asked, variation=None).bound.value


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("communication", ["contended", "blocking"])
def test_a_search_for_transfers_that_hinder_each_other_gives_what_the_simulation_has(communication):
    asked = problem(Placement.v(3), 4, (10.0, 10.0, 10.0, 4.0), limit=3, communication=communication)
    found = search(asked, evaluations=600)
    again = simulate(found.schedule, asked.costs, communication=communication)
    assert found.judged == found.value == asked.value(again.timeline) == Judge(asked)(found.schedule)
    assert found.schedule.has(Kind.SEND_F) == (communication == "blocking")
    check(found.schedule, memory=asked.memory_limit).require_valid()
    assert found.published is not None
    assert found.bound.value <= found.value <= found.published.value
    plain = search(replace(asked, communication="edge"), evaluations=600)
    assert found.value <= Judge(asked)(plain.schedule)


@pytest.mark.parametrize("variation", [None, SlowRank(0.1)])
def test_what_a_message_takes_from_both_ends_at_once_counts_once_in_the_bound(variation):
    placement = Placement.linear(4)
    costs = Settings(forward_times=1, backward_times=2, message_time=1, p2p_time=0.5).costs(placement)
    limits = Limits(np.full(4, 2.0), in_activations=True)
    asked = Problem(placement, 4, costs, limits, communication="blocking", variation=variation)
    found = search(asked, evaluations=500)
    assert replace(asked, variation=None).bound.value == pytest.approx(found.simulation.bound.value)
    plan = PlanRun(Run(asked, Budget(None, 1, lambda: 0.0)))
    assert plan.bound.value == pytest.approx(found.simulation.bound.value)
    assert bound_of(asked).value <= found.judged
    assert not found.optimal


def test_a_few_lucky_runs_are_no_proof():
    lucky = search(varied(problem(Placement.linear(3), 4, limit=2), Jitter(10, samples=1)), evaluations=100)
    assert lucky.judged < lucky.bound.value
    assert not lucky.optimal


@pytest.mark.parametrize("deviation", [-0.1, 1e308, float("nan")])
def test_a_jitter_that_cannot_be_is_refused(deviation):
    with pytest.raises(InputError, match="jitter must be from 0 to 10, not "):
        Jitter(deviation)


@pytest.mark.parametrize("share", [-0.1, 11, float("nan")])
def test_a_slow_rank_that_cannot_be_is_refused(share):
    with pytest.raises(InputError, match="the share of a slow rank must be from 0 to 10, not "):
        SlowRank(share)


def test_no_samples_are_refused():
    with pytest.raises(InputError, match="samples and trained_on of Jitter must be at least 1, not 0 and 32"):
        Jitter(0.1, samples=0)
