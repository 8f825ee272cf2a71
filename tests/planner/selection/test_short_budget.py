"""A budget that ends before anything is found that fits is no proof that nothing does."""

from __future__ import annotations

from pipeplan.hardware import cluster
from pipeplan.planner import plan
from pipeplan.workload import model


def test_something_that_fits_is_given_however_short_the_budget():
    planned = plan(model("llama3-8b"), cluster("h100-sxm:8x1"), global_batch=64, sequence=8192, seconds=1e-6, workers=1)
    assert planned.best is not None
    assert planned.best.peak_bytes <= planned.memory_limit
    assert not planned.complete
