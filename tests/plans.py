"""A plan made by hand of real estimates, for what shows plans: quick, and the same whatever the planner finds."""

from __future__ import annotations

from functools import cache
from typing import Any

from pipeplan.extensions.planning import (
    ClosestMiss,
    Configuration,
    Counts,
    Estimate,
    PlanResult,
    RunnerUp,
    SearchedOrder,
    Sensitivity,
    estimate,
)
from pipeplan.extensions.planning.answers.plans import Plan, plan_of
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from pipeplan.strategies import STRATEGIES

GIB = 2.0**30
ORDER = STRATEGIES["zb-h1"](STRATEGIES["zb-h1"].shape(4, 32))
SHAPE, MACHINES = model("llama3-8b"), cluster("h100-sxm:8x2")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "vocab_size": 32000,
}
"""A model's configuration as model hubs hold it."""

LONG: dict[str, Any] = {"sequence": 8192, "global_batch": 64}


@cache
def estimated(**chosen) -> Estimate:
    return estimate(SHAPE, MACHINES, Configuration(**LONG, **chosen))


@cache
def fitting_plan() -> Plan:
    """A best configuration, three runners-up and a front of two."""
    best = estimated(tensor=2, pipeline=4, data=2, schedule="zb-h1", sequence_parallel=True)
    lean = estimated(tensor=4, pipeline=4, data=1, recompute=("full",), sequence_parallel=True)
    others = (
        estimated(tensor=2, pipeline=4, data=2, sequence_parallel=True),
        estimated(tensor=2, pipeline=4, data=2, chunks=2, schedule="interleaved-1f1b", sequence_parallel=True),
        lean,
    )
    return plan_of(
        SHAPE,
        MACHINES,
        PlanResult(
            objective="step-time",
            memory_limit=72 * GIB,
            best=best,
            runners_up=tuple(RunnerUp(estimate=each, lost_because="9.1% bubble (best plan: 2.4%)") for each in others),
            front=(best, lean),
            sensitivity=(
                Sensitivity(
                    input="bandwidth between nodes", factor=0.5, step_time=best.step_time * 1.02, changes=False
                ),
                Sensitivity(
                    input="memory limit", factor=0.9, step_time=best.step_time, changes=True, instead="tp4 pp4, full"
                ),
            ),
            closest_miss=None,
            counts=Counts(legal=1234, over_memory=200, too_slow=900, estimated=134),
            seconds=3.5,
            complete=True,
            searched=SearchedOrder(
                estimate=best,
                instead_of=best.step_time * 1.01,
                schedule=ORDER,
                found_by="annealing",
                optimality_gap=0.02,
            ),
        ),
    )


@cache
def missing_plan() -> Plan:
    """A plan for which nothing fits."""
    nearest = estimated(tensor=4, pipeline=4, data=1, recompute=("full",), sequence_parallel=True)
    return plan_of(
        SHAPE,
        MACHINES,
        PlanResult(
            objective="step-time",
            memory_limit=1 * GIB,
            best=None,
            runners_up=(),
            front=(),
            sensitivity=(),
            closest_miss=ClosestMiss(
                estimate=nearest, over_by=nearest.peak_bytes - GIB, change="32 GPUs with pp8 would fit."
            ),
            counts=Counts(legal=1234, over_memory=1234, too_slow=0, estimated=0),
            seconds=1.5,
            complete=True,
        ),
    )
