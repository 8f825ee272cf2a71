"""torchtitan's flags for a configuration, and the CSV of its schedule.

Names are those of ``ParallelismConfig`` and ``TrainingConfig`` of release 0.3 or of the main branch. Experts stand on the
ranks of the sharded data group, context and tensor parallelism: dp_shard cp tp = efsdp ep; there is no degree of tensor
parallelism for experts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeplan.errors import PipeplanError
from pipeplan.files import file_name
from pipeplan.formats import Training, torchtitan_accumulation, torchtitan_flags, torchtitan_launch
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule, counted
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import layout_of
from pipeplan.planner.flags.stages_alike import (
    by_stage_in_words,
    differs_by_stage,
    offloaded_anywhere,
    recomputed_anywhere,
)
from pipeplan.planner.flags.trainer_flags import TrainerFlags
from pipeplan.workload import ModelShape

CHECKPOINTS = {(): "none", ("full",): "full", ("selective-op",): "selective"}
"""By what a stage computes again, torchtitan's policy: a subcommand, which stands behind all flags."""


def torchtitan(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerFlags:
    """A bash array of torchtitan's flags, below comments that say what it does not do as planned."""
    warnings = [*_warnings(model, configuration)]
    degrees = _degrees(configuration)
    files = {}
    training = Training(
        microbatch_size=configuration.microbatch_size,
        sequence_length=configuration.sequence,
        data_parallel=configuration.data,
        trainer_version=version,
    )
    accumulated = torchtitan_accumulation(training, configuration.microbatches)
    if configuration.pipeline > 1:
        training = replace(
            training,
            layers=layout_of(model, configuration),
            csv=f"{file_name(f'{model.name}.{schedule.name or configuration.schedule}')}.csv",
        )
        try:
            settings = torchtitan_flags(schedule, training, degrees, per_node=cluster.per_node)
        except PipeplanError as error:
            return TrainerFlags(text=f"# {error}.\n", warnings=(str(error), *warnings))
        text, files = settings.text, dict(settings.files)
        warnings = [*settings.warnings, *warnings]
    else:
        text = _one_rank(cluster, degrees, *accumulated)
    beside = [*_other_flags(configuration)]
    lines = [
        *(f"# Beware: {sentence}." for sentence in warnings),
        *text.rstrip("\n").split("\n"),
        "TORCHTITAN_ARGS+=(",
        *(f"    {flag}" for flag in beside),
        ")",
    ]
    return TrainerFlags(text="\n".join(lines) + "\n", files=files, warnings=tuple(warnings))


def _degrees(configuration: Configuration) -> dict[str, int]:
    """Of what stands beside the pipeline; without ZeRO the data group replicates."""
    found = {
        "tensor_parallel_degree": configuration.tensor,
        "context_parallel_degree": configuration.context,
        "expert_parallel_degree": configuration.expert * configuration.expert_tensor,
        "data_parallel_replicate_degree": 1 if configuration.zero else configuration.data,
        "data_parallel_shard_degree": configuration.data if configuration.zero else 1,
    }
    return {name: degree for name, degree in found.items() if degree > 1 or name == "data_parallel_shard_degree"}


def _one_rank(cluster: Cluster, degrees: dict[str, int], release: str, batch: list[str]) -> str:
    """Without a pipeline: gradients are accumulated over the microbatches of a step."""
    flags = [*(f"--parallelism.{name} {degree}" for name, degree in degrees.items()), *batch]
    heading = [f"# {release}: no pipeline.", torchtitan_launch(cluster.gpus, cluster.per_node)]
    return "\n".join([*heading, "TORCHTITAN_ARGS=(", *(f"    {flag}" for flag in flags), ")"])


def _other_flags(configuration: Configuration) -> Iterator[str]:
    if configuration.tensor > 1 and not configuration.sequence_parallel:
        yield "--parallelism.no-enable-sequence-parallel"
    if configuration.pipeline == 1 and configuration.zero in (1, 2):
        yield "--parallelism.fsdp_reshard_after_forward never"
    trainer = software(configuration.software)
    if trainer.fused_activation:
        yield "--compile.enable"
        if "tensor" in trainer.hides and configuration.tensor > 1:
            yield "--compile.enable-async-tensor-parallel"
    yield f"activation-checkpoint:{_policy(configuration)}"


def _policy(configuration: Configuration) -> str:
    """What recomputes at least what the plan does."""
    return CHECKPOINTS.get(recomputed_anywhere(configuration), "full")


def _warnings(model: ModelShape, configuration: Configuration) -> Iterator[str]:
    modules = recomputed_anywhere(configuration)
    if differs_by_stage(configuration):
        yield (
            f"the plan recomputes by stage ({by_stage_in_words(configuration)}); torchtitan has one policy for all stages: "
            f"activation-checkpoint:{_policy(configuration)}, which fits and takes longer than planned"
        )
    elif modules not in CHECKPOINTS:
        yield (
            f"torchtitan does not recompute {' '.join(modules)}, but every layer, ops by its list, or nothing: these flags "
            "recompute every layer, which takes longer than planned"
        )
    if offloaded_anywhere(configuration) > 0:
        yield "the plan moves activations to the host, which no flag of torchtitan does: what is kept may not fit"
    if configuration.precision != "bf16":
        yield (
            f"{configuration.precision} is no flag of torchtitan's: take a config function that converts the model, such as "
            "llama3_debugmodel_float8 does (components/quantization)"
        )
    if configuration.expert_tensor > 1:
        yield (
            f"torchtitan has no tensor parallelism of experts: expert tensor {configuration.expert_tensor} x expert "
            f"{configuration.expert} is expert parallelism of {configuration.expert * configuration.expert_tensor} here"
        )
    if configuration.zero == 1 and configuration.data * configuration.context > 1:
        yield "torchtitan shards parameters and gradients too where the plan shards the optimizer's state alone (ZeRO-1)"
    if model.mtp_layers:
        layers = counted(model.mtp_layers, "layer")
        yield f"torchtitan's pipelines have no place for {layers} of multi-token prediction"
