"""The engine that anneals by what a schedule takes as the run will have it."""

import time
from typing import Any

import pytest

from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.engines.judged_search import JudgedSearch
from pipeplan.extensions.search.engines.list_scheduling import ListScheduling
from pipeplan.extensions.search.engines.published import FixedOrders
from pipeplan.extensions.search.run import Run
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


def run_of(evaluations: int | None, seconds: float | None = None, **options: Any) -> Run:
    run = Run(
        problem(Placement.linear(4), 6, (10.0, 10.0, 10.0, 4.0), limit=3, **options),
        Budget(seconds, evaluations, time.monotonic),
    )
    FixedOrders()(run)
    ListScheduling()(run)
    return run


def test_it_finds_what_is_judged_better_than_the_published_schedules_within_its_budget():
    run = run_of(1507, communication="streams")
    assert run.best is not None
    before = run.best.judged
    JudgedSearch()(run)
    assert run.bound.value <= run.best.judged < before
    assert run.problem.judge(run.schedule(run.best)) == pytest.approx(run.best.judged, rel=1e-12)
    assert run.best.found_by.startswith("judged search from ")
    assert run.budget.evaluations <= 1507
    assert [step.value for step in run.history] == sorted((step.value for step in run.history), reverse=True)


def test_a_problem_whose_schedules_are_not_judged_is_left_alone():
    run = run_of(1000)
    spent = run.budget.evaluations
    JudgedSearch()(run)
    assert run.budget.evaluations == spent


def test_a_budget_in_seconds_ends_it():
    run = run_of(None, 0.2, communication="streams")
    JudgedSearch()(run)
    assert run.budget.is_spent
    assert run.best is not None
