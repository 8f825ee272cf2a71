"""A plan made by hand of real estimates, for what shows plans: quick, and the same whatever the planner finds."""

from __future__ import annotations

from functools import cache
from typing import Any

from pipeplan.extensions.planning import Configuration, Estimate, estimate, software
from pipeplan.extensions.planning.answers.plans import Plan, plan_of
from pipeplan.extensions.planning.choice.describing import described
from pipeplan.extensions.planning.choice.sentences import plan_result
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.plan_records import (
    BestConfiguration,
    Counts,
    MissRecord,
    PlannedConfiguration,
    RunnerUpRecord,
    SearchedRecord,
    Sensitivity,
    TrainerPlanRecord,
)
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.records import holding
from pipeplan.strategies import STRATEGIES

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


def own_plan(trainer: str) -> TrainerPlanRecord:
    """A trainer's own plan: the best configuration with its software."""
    name = plan_trainers()[trainer].software
    own = estimated(tensor=2, pipeline=4, data=2, schedule="zb-h1", sequence_parallel=True, software=name)
    plan = TrainerPlanRecord(
        trainer=trainer,
        configuration="",
        software=software(name).name,
        step_time_s=own.step_time,
        peak_memory_gib=own.peak_memory_gib,
        fit="fits",
        reason="",
    )
    return holding(plan, estimate=own)


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

    def fields(estimate: Estimate) -> dict[str, Any]:
        return described(SHAPE, MACHINES, estimate)

    searched = SearchedRecord(
        **fields(best), instead_of_s=best.step_time * 1.01, found_by="annealing", optimality_gap=0.02
    )
    return plan_of(
        plan_result(
            SHAPE,
            MACHINES,
            objective="step-time",
            trainer="megatron",
            by_trainer=tuple(map(own_plan, ("megatron", "bridge", "torchtitan"))),
            memory_limit_gib=72.0,
            best=BestConfiguration(**fields(best), flags={}),
            runners_up=tuple(
                RunnerUpRecord(**fields(other), lost_because="9.1% bubble (best plan: 2.4%)") for other in others
            ),
            front=tuple(PlannedConfiguration(**fields(entry)) for entry in (best, lean)),
            sensitivity=(
                Sensitivity(
                    input="bandwidth between nodes", factor=0.5, step_time=best.step_time * 1.02, changes=False
                ),
                Sensitivity(
                    input="memory limit", factor=0.9, step_time=best.step_time, changes=True, instead="tp4 pp4, full"
                ),
            ),
            counts=Counts(legal=1234, over_memory=200, too_slow=900, estimated=134),
            seconds=3.5,
            complete=True,
            optimality_gap=0.0,
            searched=holding(searched, schedule=ORDER),
        )
    )


@cache
def missing_plan() -> Plan:
    """A plan for which nothing fits."""
    nearest = estimated(tensor=4, pipeline=4, data=1, recompute=("full",), sequence_parallel=True)
    miss = MissRecord(
        **described(SHAPE, MACHINES, nearest),
        over_by_gib=nearest.peak_memory_gib - 1,
        change="32 GPUs with pp8 would fit.",
    )
    return plan_of(
        plan_result(
            SHAPE,
            MACHINES,
            objective="step-time",
            trainer="",
            memory_limit_gib=1.0,
            closest_miss=miss,
            counts=Counts(legal=1234, over_memory=1234, too_slow=0, estimated=0),
            seconds=1.5,
            complete=True,
        )
    )
