"""The search for a plan within a search for what the runs of it take."""

import time

import pytest

from pipeplan.extensions.search import SearchProgress
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.engines.list_scheduling import ListScheduling
from pipeplan.extensions.search.engines.published import FixedOrders
from pipeplan.extensions.search.portfolio import plan_of
from pipeplan.extensions.search.run import Run
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


def test_a_part_of_a_budget_is_spent_together_with_the_whole():
    now = [0.0]
    whole = Budget(10.0, 101, lambda: now[0])
    part = whole.part(0.5)
    part.evaluations += 20
    part.under_way = 5
    now[0] = 4.0
    assert (whole.evaluations, whole.under_way, whole.seconds) == (20, 5, 4.0)
    assert (part.evaluations_left, part.seconds_left) == (31, 1.0)
    now[0] = 5.0
    assert part.is_spent
    assert part.share == 1.0
    assert not whole.is_spent
    part.stopped.set()
    assert whole.is_spent


def test_what_the_plan_is_searched_for_is_judged_at_once():
    asked = problem(Placement.v(4), 6, (10.0, 10.0, 10.0, 6.0), limit=4, communication="streams")
    news: list[SearchProgress] = []
    run = Run(asked, Budget(None, 200, time.monotonic), report=news.append)
    plan = plan_of(run)
    assert not plan.problem.is_judged
    FixedOrders()(plan)
    ListScheduling()(plan)
    assert plan.best is not None
    assert run.best is not None
    assert plan.best.judged == plan.best.value < run.best.judged
    decoded = {lineage.name: asked.judge(run.schedule(lineage)) for lineage in plan.lineages}
    assert {lineage.name for lineage in run.finalists} == set(decoded)
    for lineage in run.finalists:
        assert lineage.judged == pytest.approx(asked.judge(run.schedule(lineage)))
        assert lineage.judged <= decoded[lineage.name]
    assert run.published is not None
    assert plan.published is not None
    assert run.published.value > plan.published.value
    assert news[-1].value == run.best.judged
    plan.raise_bound(plan.bound)
    assert run.bound == plan.bound
