"""A budget that ends before anything is found that fits is no proof that nothing does."""

from __future__ import annotations

from typing import Any

from pipeplan.hardware import cluster
from pipeplan.planner import plan
from pipeplan.workload import model


def test_something_that_fits_is_given_however_short_the_budget():
    planned = plan(model("llama3-8b"), cluster("h100-sxm:8x1"), global_batch=64, sequence=8192, seconds=1e-6, workers=1)
    assert planned.best is not None
    assert planned.best.peak_bytes <= planned.memory_limit
    assert not planned.complete


def test_however_short_the_budget_it_is_not_the_one_that_needs_least_memory():
    asked: dict[str, Any] = {"global_batch": 16, "sequence": 2048}
    short = plan(model("llama3-8b"), cluster("h100-sxm:8x1"), seconds=1e-6, workers=2, **asked)
    longer = plan(model("llama3-8b"), cluster("h100-sxm:8x1"), seconds=20.0, order_seconds=0, workers=1, **asked)
    assert short.best is not None
    assert longer.best is not None
    assert short.best.step_time <= 1.1 * longer.best.step_time
    assert short.counts.estimated > 0
