"""torchtitan's flags for a configuration, and the CSV of its schedule.

Names are those of ``ParallelismConfig`` and ``TrainingConfig`` of release 0.3 or of the main branch. Experts are on the
ranks of the sharded data group, context and tensor parallelism: dp_shard cp tp = efsdp ep; there is no degree of tensor
parallelism for experts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pipeplan.extensions.planning import Configuration, layout_of, software
from pipeplan.extensions.planning.estimates.running import hides_exchanges
from pipeplan.extensions.planning.flags.network import recipe_warnings
from pipeplan.extensions.planning.flags.scripts import (
    bash_script,
    function_name,
    recompute_by_stage_in_words,
    recomputed_anywhere,
)
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape, published_model
from pipeplan.formats import TrainerSettings, Training
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import file_name
from pipeplan.model import Kind, Schedule, counted, one_line
from pipeplan.trainers.torchtitan import RELEASES, TRAINER, schedule_csv, schedule_flags, warnings_of

CHECKPOINTS = {(): "none", ("full",): "full", ("selective-op",): "selective"}
"""torchtitan's activation-checkpoint policy by recomputed modules: a subcommand, which must come after all flags."""


TO_SET = {
    "TOKENIZER": "folder of the tokenizer",
    "OUTPUTS": "folder to write logs and checkpoints to",
    "STEPS": "number of steps",
}
"""Variables that the user has to set, with their meanings."""

_CONFIGS = {
    "deepseek-v2-lite": "deepseek_v3_16b",
    "deepseek-v3": "deepseek_v3_671b",
    "kimi-k2.5": "kimi_k2_5",
    "llama3.1-405b": "llama3_405b",
    "moonlight-16b-a3b": "moonlight_16b_a3b",
}
"""torchtitan's config functions of models that it names otherwise."""

_MODULES = {"moonlight": "kimi_k2_7", "kimi_k2": "kimi_k2_7", "qwen3_5": "qwen3_5"}
"""Packages of models whose functions begin with another name."""

_NUMBER_FORMATS = {"fp8": "_float8", "mxfp8": "_mxfp8", "nvfp4": "_nvfp4"}
"""Endings of torchtitan's config functions that convert a model's products."""

USER_FLAGS = ('--hf_assets_path "$TOKENIZER"', '--dump_folder "$OUTPUTS"', '--training.steps "$STEPS"')
"""Flags that the plan does not decide."""

ENVIRONMENT = (
    "export PYTORCH_ALLOC_CONF=expandable_segments:True  # as torchtitan's run_train.sh, against fragmentation",
)


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return a launch script of torchtitan, with comments on the differences from the plan, and its schedule's CSV.

    Where torchtitan refuses the schedule, the text is only the reason.
    """
    warnings = list(_warnings(model, configuration))
    degrees = _degrees(configuration)
    release = RELEASES[TRAINER.release(version)]
    files: dict[str, str] = {}
    training = Training(
        microbatch_size=configuration.microbatch_size,
        sequence_length=configuration.sequence,
        data_parallel=configuration.data,
        trainer_version=version,
    )
    if configuration.pipeline > 1:
        training = replace(
            training,
            layers=layout_of(model, configuration),
            csv=f"{file_name(f'{model.name}.{schedule.name or configuration.schedule}')}.csv",
        )
        try:
            flags, files = schedule_flags(schedule, training, degrees), schedule_csv(schedule, training)
        except PipeplanError as error:
            return TrainerSettings(text=f"# {error}.\n", warnings=(str(error), *warnings))
        warnings = [*warnings_of(schedule), *warnings]
        if schedule.has(Kind.I):
            warnings.append(
                "torch.compile does not support split backwards: these flags leave it out, so kernels are slower"
            )
    else:
        batch = release.batch(1, configuration.microbatches, training).training
        flags = [
            f"--parallelism.{name} {degree}" for name, degree in {"pipeline_parallel_degree": 1, **degrees}.items()
        ]
        flags += [f"--training.{name} {value}" for name, value in batch.items()]
    pipeline = "no pipeline"
    if files:
        pipeline = (
            f"{one_line(schedule.name or 'schedule')} on {schedule.ranks} ranks, whose ops are in {next(iter(files))}"
        )
    arrays = {
        "USER_ARGS": USER_FLAGS,
        # The policy of activation checkpointing is a subcommand, which comes after all flags.
        "TORCHTITAN_ARGS": [*flags, *_other_flags(configuration, schedule)],
    }
    text = bash_script(
        '-m torchtitan.train --module "$MODULE" --config "$CONFIG"',
        arrays,
        cluster,
        heading=f"{release.words}: {model.name}, {counted(cluster.gpus, 'GPU')}, {pipeline}",
        warnings=warnings,
        to_set=TO_SET,
        usual=_config(model, configuration),
        environment=ENVIRONMENT,
    )
    return TrainerSettings(text=text, files=files, warnings=tuple(warnings))


def _config(model: ModelShape, configuration: Configuration) -> dict[str, tuple[str, str]]:
    """Return the package and the function that configure a model, which may have to be written, with their meanings."""
    usual, published = function_name(model), published_model(model)
    name = usual if published is None else _CONFIGS.get(published.name, usual)
    family = re.sub(r"_\d+(?:_\d+)?[bt](?:_.*)?$|_\d+x\d+b.*$", "", name)
    module = next((module for begin, module in _MODULES.items() if name.startswith(begin)), family)
    function = name + _NUMBER_FORMATS.get(configuration.precision, "")
    return {
        "MODULE": (module, "package of the model in torchtitan"),
        "CONFIG": (
            function,
            "function of its config registry with this model, the data, learning rate and checkpoints",
        ),
    }


def _degrees(configuration: Configuration) -> dict[str, int]:
    """Return the degrees besides the pipeline's; without ZeRO the data group replicates.

    Also those that are 1: the function that configures the model may set others, as that of Llama 3 70B does.
    """
    copies = configuration.replicate if configuration.zero else configuration.data
    return {
        "tensor_parallel_degree": configuration.tensor,
        "context_parallel_degree": configuration.context,
        "expert_parallel_degree": configuration.expert * configuration.expert_tensor,
        "data_parallel_replicate_degree": copies,
        "data_parallel_shard_degree": configuration.data // copies,
    }


def _other_flags(configuration: Configuration, schedule: Schedule) -> Iterator[str]:
    if configuration.tensor > 1 and not configuration.sequence_parallel:
        yield "--parallelism.no-enable-sequence-parallel"
    if configuration.pipeline == 1 and configuration.zero in (1, 2):
        yield "--parallelism.fsdp_reshard_after_forward never"
    trainer = software(configuration.software)
    if trainer.fused_activation and not schedule.has(Kind.I):
        yield "--compile.enable"
        if "tensor" in trainer.hides and configuration.tensor > 1:
            yield "--compile.enable-async-tensor-parallel"
    yield f"activation-checkpoint:{_policy(configuration)}"


def _policy(configuration: Configuration) -> str:
    """Return the policy that recomputes at least as much as the plan."""
    return CHECKPOINTS.get(recomputed_anywhere(configuration), "full")


def _warnings(model: ModelShape, configuration: Configuration) -> Iterator[str]:
    modules = recomputed_anywhere(configuration)
    if by_stage := recompute_by_stage_in_words(configuration):
        yield (
            f"the plan recomputes by stage ({by_stage}), but torchtitan has one policy for all stages: "
            f"activation-checkpoint:{_policy(configuration)}, which fits but is slower than planned"
        )
    elif modules not in CHECKPOINTS:
        yield (
            f"torchtitan cannot recompute only {' '.join(modules)}: these flags recompute every layer, which is slower than "
            "planned"
        )
    if configuration.most_offloaded > 0:
        yield "torchtitan has no flag for the plan's offload: activations may not fit"
    if configuration.precision != "bf16":
        yield (
            f"torchtitan has no flag for {configuration.precision}: use a config function that converts the model, such as "
            "llama3_debugmodel_float8 (components/quantization)"
        )
    if configuration.expert_tensor > 1:
        yield (
            f"torchtitan does not support expert tensor parallelism: expert tensor {configuration.expert_tensor} x expert "
            f"{configuration.expert} becomes an expert degree of {configuration.expert * configuration.expert_tensor}"
        )
    if hides_exchanges(configuration):
        yield (
            "the plan hides exchanges with experts in pairs, which torchtitan does only in 0.2.1 and 0.2.2, with DualPipeV "
            "(pipeline_parallel_expert_parallel_overlap): later releases take longer"
        )
    if configuration.zero == 1 and configuration.data * configuration.context > 1:
        yield "the plan shards only the optimizer state (ZeRO-1), but torchtitan also shards parameters and gradients"
    if model.mtp_layers:
        layers = counted(model.mtp_layers, "layer")
        yield f"torchtitan's pipelines do not support {layers} of multi-token prediction"
    yield from recipe_warnings(model, "torchtitan", "its config function")
