"""What torchtitan must read from our settings, derived from the plan without the settings' writers.

Names are those of the fields of ``ParallelismConfig`` and ``TrainingConfig``; what is not named has its default.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.model import Schedule
from pipeplan.strategies import STRATEGIES

NAMES = {"linear": "1F1B", "loop": "Interleaved1F1B", "v": "ZBVZeroBubble"}
"""By the placement."""

Values = dict[str, Any]


def schedule_of(plan: Configuration) -> Schedule:
    strategy = STRATEGIES[plan.schedule]
    microbatches = plan.global_batch // (plan.data * plan.microbatch_size)
    return strategy(strategy.shape(plan.pipeline, microbatches, plan.chunks, group_size=plan.group_size))


def module_parts(layers: tuple[int, ...]) -> list[list[str]]:
    """The modules of each stage, by counting."""
    numbers = iter(range(sum(layers)))
    parts = [[f"layers.{next(numbers)}" for _ in range(count)] for count in layers]
    return [["tok_embeddings", *parts[0]], *parts[1:-1], [*parts[-1], "norm", "lm_head"]]


def order_settings(schedule: Schedule, layers: tuple[int, ...] | None, csv: str) -> Values:
    """The pipeline of a schedule, in any release."""
    values = {
        "pipeline_parallel_degree": schedule.ranks,
        "pipeline_parallel_schedule": NAMES[schedule.placement.name],
        "pipeline_parallel_schedule_csv": csv,
    }
    return values if layers is None else values | {"module_fqns_per_model_part": module_parts(layers)}


def batch_settings(
    release: str, *, sequence: int, microbatch_size: int, microbatches: int, replicas: int
) -> tuple[Values, Values]:
    """The batch of a pipeline in a release: what is of the parallelism, and what is of the training."""
    if release == "main":
        tokens = microbatch_size * sequence
        return {"num_pp_microbatches": microbatches}, {
            "num_tokens_per_microbatch_per_dp_rank": tokens,
            "num_tokens_per_train_step": tokens * microbatches * replicas,
            "max_context_length": sequence,
            "disable_cuda_graphs": True,
        }
    local = microbatch_size * microbatches
    return {"pipeline_parallel_microbatch_size": microbatch_size}, {
        "local_batch_size": local,
        "global_batch_size": local * replicas,
        "seq_len": sequence,
        "disable_cuda_graphs": True,
    }


def planned_settings(model: ModelShape, plan: Configuration, csv: str, release: str = "0.3") -> tuple[Values, Values]:
    """The parallelism and the training of a plan in a release."""
    parallelism: Values = {
        "tensor_parallel_degree": plan.tensor,
        "enable_sequence_parallel": plan.sequence_parallel or plan.tensor == 1,
        "context_parallel_degree": plan.context,
        "expert_parallel_degree": plan.expert * plan.expert_tensor,
        "data_parallel_shard_degree": plan.data if plan.zero else 1,
        "data_parallel_replicate_degree": 1 if plan.zero else plan.data,
    }
    if plan.pipeline == 1:
        parallelism["fsdp_reshard_after_forward"] = "never" if plan.zero in (1, 2) else "default"
        return parallelism, accumulated_batch(release, plan)
    schedule = schedule_of(plan)
    share, more = divmod(model.layers, schedule.stages)
    layers = plan.layers or tuple(share + (stage < more) for stage in range(schedule.stages))
    of_batch, training = batch_settings(
        release,
        sequence=plan.sequence,
        microbatch_size=plan.microbatch_size,
        microbatches=schedule.microbatches,
        replicas=plan.data,
    )
    return parallelism | order_settings(schedule, layers, csv) | of_batch, training


def accumulated_batch(release: str, plan: Configuration) -> Values:
    """The batch of a step that accumulates gradients without a pipeline."""
    if release == "main":
        return {
            "num_tokens_per_microbatch_per_dp_rank": plan.microbatch_size * plan.sequence,
            "num_tokens_per_train_step": plan.global_batch * plan.sequence,
            "max_context_length": plan.sequence,
        }
    return {
        "local_batch_size": plan.microbatch_size,
        "global_batch_size": plan.global_batch,
        "seq_len": plan.sequence,
    }


def wrong(parsed: Any, wanted: Values) -> dict[str, str]:
    """Each field of a config that is not as wanted, or not the default where nothing is wanted."""
    return differing(asdict(parsed), asdict(type(parsed)()) | wanted)


def differing(values: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"{values.get(name)!r}, planned: {value!r}" for name, value in wanted.items() if values.get(name) != value
    }
