"""A budget that ends before anything is found that fits is no proof that nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from pipeplan.extensions.planning import Configuration, PlanProgress, estimate, plan
from pipeplan.extensions.planning.choice.bounds import Bounds
from pipeplan.extensions.planning.choice.nothing_fits import closest_miss
from pipeplan.extensions.planning.choice.request import PlanRequest
from pipeplan.extensions.planning.fitting import default_limit
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model


def test_progress_counts_the_estimates_of_every_trainer():
    heard: list[PlanProgress] = []
    short = plan(
        model("llama3-8b"),
        cluster("h100-sxm:8x1"),
        global_batch=16,
        sequence=2048,
        seconds=1e-6,
        trainers=plan_trainers(),
        progress=heard.append,
    )
    counts = [progress.estimated for progress in heard]
    assert counts == sorted(counts)
    assert counts[-1] == short.counts.estimated


@pytest.mark.parametrize(
    ("trainer", "known"),
    [
        ("torchtitan", {"tensor": 2, "context": 4, "pipeline": 8, "schedule": "zbv", "chunks": 2, "zero": 3}),
        ("megatron", {"tensor": 4, "pipeline": 4, "chunks": 5, "data": 4, "schedule": "interleaved-1f1b"}),
    ],
)
def test_however_short_the_budget_it_is_close_to_what_is_known_to_be_good(trainer: str, known: dict[str, Any]):
    """With torchtitan, what splits the model the least does not fit, and what needs the least memory is 11 times slower."""
    shape, machines = model("llama3-70b"), cluster("h100-sxm:8x8")
    step: dict[str, Any] = {"global_batch": 128, "sequence": 8192}
    software = "torchtitan" if trainer == "torchtitan" else "megatron-core-overlapped"
    good = Configuration(**step, software=software, sequence_parallel=known.get("tensor", 1) > 1, **known)
    least = estimate(shape, machines, good, with_error_bar=False).step_time
    fixed: dict[str, Any] = {"fix": {"trainer": trainer}, "trainers": plan_trainers()}
    short = plan(shape, machines, seconds=1e-6, workers=1, order_seconds=0, **fixed, **step)
    assert short.best is not None
    assert short.best.peak_memory_gib <= short.memory_limit_gib
    assert short.best.step_time <= 1.06 * least
    assert not short.complete
    assert short.counts.legal > short.counts.estimated > 0
    assert short.optimality_gap is not None
    assert short.best.step_time <= (1 + short.optimality_gap) * least


def test_the_closest_miss_has_a_time_limit(monkeypatch):
    node = cluster("h100-sxm:8x1")
    requested = PlanRequest(
        model=model("llama3-70b"), cluster=node, global_batch=8, sequence=8192, memory_limit=default_limit(node)
    )
    bounded: list[float] = []
    bytes_of = Bounds.bytes

    def counted(self: Bounds, *order: Any) -> float:
        bounded.append(bytes_of(self, *order))
        return bounded[-1]

    monkeypatch.setattr(Bounds, "bytes", counted)
    whole = closest_miss(requested, requested.memory_limit)
    of_whole = len(bounded)
    bounded.clear()
    late = closest_miss(requested, requested.memory_limit, seconds=0.0)
    assert whole is not None
    assert late is not None
    assert late.peak_bytes >= whole.peak_bytes > requested.memory_limit
    assert "of usable memory per GPU" in late.change
    assert len(bounded) < of_whole / 5
