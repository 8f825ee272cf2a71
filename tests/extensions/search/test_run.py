"""What engines share: the seconds, and the workers."""

import threading
import time

import pytest

from pipeplan.extensions.search import Run
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.engines.building_blocks import BuildingBlocks
from pipeplan.extensions.search.engines.published import FixedOrders
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


def test_of_large_published_schedules_none_is_begun_that_is_not_likely_to_be_done_in_time(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.engines.published.LARGE", 1)
    now, offer = [0.0], Run.offer_published

    def slowly(run, schedule, name):
        now[0] += 4.0
        offer(run, schedule, name)

    monkeypatch.setattr(Run, "offer_published", slowly)
    run = Run(problem(Placement.v(4), 8), Budget(10.0, None, lambda: now[0]))
    FixedOrders()(run)
    assert run.best is not None
    assert run.budget.seconds == 8.0


def test_building_blocks_have_their_share_where_published_schedules_took_theirs():
    now = [0.0]
    run = Run(problem(Placement.linear(4), 8, limit=2), Budget(10.0, None, lambda: now[0]))
    run.offer(run.encoder.from_order(run.encoder.one_by_one()), "one", "one")
    now[0] = 5.0
    BuildingBlocks(first_round=8_000)(run)
    assert run.best is not None
    assert run.best.found_by == "building blocks"


@pytest.mark.parametrize(("native", "threads"), [(True, 2), (False, 1)])
def test_plain_python_runs_on_one_thread_whose_lock_the_others_would_wait_for(monkeypatch, native, threads):
    monkeypatch.setattr("pipeplan.extensions.search.run.is_native", lambda: native)
    run = Run(problem(Placement.v(4), 8), Budget(None, 10, time.monotonic), workers=2)
    both = threading.Barrier(threads)

    def work(_: int) -> int:
        both.wait(10)
        return threading.get_ident()

    assert len(set(run.map(work, range(2)))) == threads
