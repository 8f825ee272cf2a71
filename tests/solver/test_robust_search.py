"""The engine that anneals by what a schedule takes in several runs at once."""

import time

import numpy as np
import pytest

from pipeplan.model import Placement
from pipeplan.simulation import simulate
from pipeplan.solver import Jitter, SlowRank
from pipeplan.solver.budget import Budget
from pipeplan.solver.candidate import Encoder
from pipeplan.solver.engines.judged_search import RobustSearch
from pipeplan.solver.engines.list_scheduling import ListScheduling
from pipeplan.solver.engines.published import FixedOrders
from pipeplan.solver.robustness import Scenarios
from pipeplan.solver.run import Run
from pipeplan.solver.variation import Factors
from tests.solver.problems import problem

CASE = problem(Placement.linear(4), 6, (10.0, 10.0, 10.0, 2.0), limit=3)
BOTH = problem(Placement.bidirectional(2), 4)


@pytest.mark.parametrize("variation", [Jitter(0.1, trained_on=40), SlowRank(0.2)])
@pytest.mark.parametrize("case", [CASE, BOTH])
def test_its_runs_are_those_that_schedules_are_judged_by(case, variation):
    asked = problem(case.placement, case.microbatches, variation=variation)
    encoder = Encoder(problem(case.placement, case.microbatches), Scenarios.of(asked))
    plain = Encoder(asked)
    candidate = plain.evaluate(plain.decisions(plain.one_by_one()))
    schedule = plain.decode(candidate)
    factors = np.concatenate(list(Factors(variation, asked.placement, asked.microbatches, 1, "train").of(schedule)), 1)
    assert encoder.scenarios is not None
    few = encoder.scenarios.runs
    assert few == (8 if isinstance(variation, Jitter) else case.placement.ranks)
    values = [asked.value(simulate(schedule, asked.costs, factors=factor).timeline) for factor in factors.T[:few]]
    counts = np.mean(values) if isinstance(variation, Jitter) else np.max(values)
    assert encoder.evaluate(candidate.decisions).value == pytest.approx(counts, rel=1e-12)


@pytest.mark.parametrize("variation", [Jitter(0.1, trained_on=8), SlowRank(0.3)])
def test_what_it_finds_is_better_as_it_is_judged(variation):
    asked = problem(CASE.placement, CASE.microbatches, (10.0, 10.0, 10.0, 2.0), limit=3, variation=variation)
    run = Run(asked, Budget(None, 700, time.monotonic))
    FixedOrders()(run)
    ListScheduling()(run)
    assert run.best is not None
    before = run.best.judged
    RobustSearch()(run)
    assert run.best.judged < before
    assert run.best.found_by.startswith("robust search from ")
    assert run.judge is not None
    assert run.judge(run.schedule(run.best)) == pytest.approx(run.best.judged, rel=1e-12)


@pytest.mark.parametrize("asked", [{}, {"communication": "blocking", "variation": SlowRank(0.1)}])
def test_problems_without_a_variation_and_messages_that_meet_are_left_alone(asked):
    run = Run(problem(Placement.linear(2), 2, **asked), Budget(None, 100, time.monotonic))
    FixedOrders()(run)
    spent = run.budget.evaluations
    RobustSearch()(run)
    assert run.budget.evaluations == spent
