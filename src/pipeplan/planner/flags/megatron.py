"""Megatron-LM's flags for a configuration: the model, the degrees, the batch, precision, recomputation, and the pipeline.

Names and rules are those of Megatron-LM's ``arguments.py`` and Megatron-core's ``TransformerConfig`` of 0.14 to 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeplan.errors import ShapeError
from pipeplan.formats import MegatronOrder, Training, megatron_flags
from pipeplan.hardware import Cluster
from pipeplan.model import Kind, Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import even_layout, layout_of
from pipeplan.planner.flags.megatron_model import beside, model_flags, routing_flags, unsaid
from pipeplan.planner.flags.offload import offload_modules
from pipeplan.planner.flags.stages_alike import (
    by_stage_in_words,
    differs_by_stage,
    offloaded_anywhere,
    recomputed_anywhere,
)
from pipeplan.planner.flags.trainer_flags import TrainerFlags
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape

PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
"""The delayed recipe of FP8 is not among them: it refuses to recompute norms and activations of experts."""

FSDP = {2: "optim_grads", 3: "optim_grads_params"}
"""What Megatron FSDP calls what is sharded."""


FREE_CONNECTIONS = frozenset({"blackwell"})
"""Generations of GPUs on which the number of connections to a device does not order communication before kernels."""


def megatron(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerFlags:
    """Bash arrays of Megatron-LM's flags, below comments that say what it does not do as planned.

    What it cannot run is replaced by what it runs that is nearest, and said.
    """
    warnings = [
        *_recompute_warnings(configuration),
        *_offload_warnings(configuration),
        *_sharding_warnings(configuration),
    ]
    warnings += unsaid(model)
    pipeline, replaced = _pipeline(model, configuration, schedule, version)
    warnings = [*replaced, *warnings]
    arrays = {
        "MODEL_ARGS": [*model_flags(model), *_sequence_flags(model, configuration)],
        "PARALLEL_ARGS": [*_degree_flags(model, configuration), *routing_flags(model, cluster, configuration)],
        "RUN_ARGS": [*PRECISIONS[configuration.precision], *_run_flags(model, configuration)],
    }
    lines = [f"# Beware: {sentence}." for sentence in warnings]
    lines += [f"# Beside these: {beside(model)}."]
    lines += [
        f"# torchrun --nproc-per-node {cluster.per_node} --nnodes {cluster.nodes} pretrain_gpt.py \\",
        '#   "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${RUN_ARGS[@]}" "${PIPELINE_ARGS[@]}"',
    ]
    lines += _environment(cluster, configuration)
    for name, flags in arrays.items():
        lines += [f"{name}=(", *(f"    {flag}" for flag in flags), ")"]
    return TrainerFlags(text="\n".join(lines) + "\n" + pipeline, warnings=tuple(warnings))


def _environment(cluster: Cluster, configuration: Configuration) -> Iterator[str]:
    """The environment of every process, which ``validate_args`` asks for."""
    if _shards_as_fsdp(configuration):
        yield "unset CUDA_DEVICE_MAX_CONNECTIONS  # Megatron FSDP refuses 1"
    elif configuration.tensor * configuration.context > 1 and cluster.gpu.generation not in FREE_CONNECTIONS:
        yield "export CUDA_DEVICE_MAX_CONNECTIONS=1  # tensor and context parallelism need it before Blackwell"
    if offloaded_anywhere(configuration) > 0:
        yield "export NVTE_CPU_OFFLOAD_V1=1  # Transformer Engine from 2.10 on offloads weights, too, without it"


def _shards_as_fsdp(configuration: Configuration) -> bool:
    return configuration.zero in FSDP and configuration.pipeline == 1


def _pipeline(
    model: ModelShape, configuration: Configuration, schedule: Schedule, version: str | None
) -> tuple[str, list[str]]:
    """The array of the pipeline's flags, and what it replaces."""
    warnings = []
    made, layers = schedule, layout_of(model, configuration)
    if not _is_megatrons(schedule):
        made, layers = _nearest(model, configuration, schedule)
        warnings.append(
            f"Megatron-LM does not run {schedule.name or configuration.schedule}: these flags run {made.name} in its place, "
            "which takes other times and memory (pipeplan estimate says which); the order itself runs in torchtitan by its "
            "CSV, in forks such as zero-bubble-pipeline-parallelism, or in pipeplan's own runtime"
        )
    training = Training(
        layers=layers if configuration.pipeline > 1 else None,
        mtp_layers=model.mtp_layers,
        microbatch_size=configuration.microbatch_size,
        data_parallel=configuration.data,
        trainer_version=version,
    )
    order = replace(_order(made), recompute=recomputed_anywhere(configuration) == ("full",))
    try:
        settings = megatron_flags(made, order, training)
    except ShapeError as error:
        return f"# {error}.\n", [*warnings, str(error)]
    return settings.text, [*warnings, *settings.warnings]


def _is_megatrons(schedule: Schedule) -> bool:
    """Whether Megatron makes this very order by itself, whatever it is called."""
    placement, order = schedule.placement, _order(schedule)
    if placement.name not in ("linear", "loop") or schedule.slices > 1:
        return False
    name = ("interleaved-" if placement.chunks > 1 else "") + ("1f1b-overlap" if order.overlap else "1f1b")
    rule = strategy(name)
    try:
        shape = rule.shape(schedule.ranks, schedule.microbatches, placement.chunks, group_size=order.group_size)
        return bool(rule(shape) == schedule)
    except ShapeError:
        return False


def _order(schedule: Schedule) -> MegatronOrder:
    """Which of Megatron's orders it is, by its first rank's row: forwards of one chunk before the next one's are a group."""
    group = None
    if schedule.placement.chunks > 1:
        row = schedule.row(0)
        stages = row.stage[row.kind == Kind.F]
        group = int((stages != stages[0]).argmax())
    return MegatronOrder(group_size=group, overlap=bool(schedule.joined.any()))


def _nearest(model: ModelShape, configuration: Configuration, schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """What Megatron runs in the place of another order, with the layout of the same stages where it has these."""
    ranks, microbatches = schedule.ranks, schedule.microbatches
    if schedule.placement.name == "loop":
        rule = strategy("interleaved-1f1b")
        try:
            return rule(rule.shape(ranks, microbatches, schedule.placement.chunks)), layout_of(model, configuration)
        except ShapeError:
            pass
    rule = strategy("1f1b")
    same = schedule.placement.name == "linear"
    layers = layout_of(model, configuration) if same else even_layout(model.layers, ranks)
    return rule(rule.shape(ranks, microbatches)), layers


def _sequence_flags(model: ModelShape, configuration: Configuration) -> Iterator[str]:
    if configuration.pipeline == 1:
        yield f"--num-layers {model.layers}"
    yield f"--seq-length {configuration.sequence}"
    yield f"--max-position-embeddings {max(configuration.sequence, model.learned_positions or 0)}"


def _degree_flags(model: ModelShape, configuration: Configuration) -> Iterator[str]:
    yield f"--tensor-model-parallel-size {configuration.tensor}"
    if configuration.sequence_parallel and configuration.tensor > 1:
        yield "--sequence-parallel"
    if configuration.context > 1:
        yield f"--context-parallel-size {configuration.context}"
        yield "--cp-comm-type p2p"
    if model.experts is not None:
        yield f"--expert-model-parallel-size {configuration.expert}"
        yield f"--expert-tensor-parallel-size {configuration.expert_tensor}"
    yield from _sharding_flags(configuration)


def _sharding_flags(configuration: Configuration) -> Iterator[str]:
    hides = software(configuration.software).hides
    if "data" in hides:
        yield "--overlap-grad-reduce"
    if not configuration.zero:
        return
    yield "--use-distributed-optimizer"
    if "data" in hides and "parameters" in hides:
        yield "--overlap-param-gather"
    if _shards_as_fsdp(configuration):
        yield "--use-megatron-fsdp"
        yield "--ckpt-format fsdp_dtensor"
        yield f"--data-parallel-sharding-strategy {FSDP[configuration.zero]}"
        yield "--no-gradient-accumulation-fusion"


def _run_flags(model: ModelShape, configuration: Configuration) -> Iterator[str]:
    trainer = software(configuration.software)
    if not trainer.dropout:
        yield "--attention-dropout 0"
        yield "--hidden-dropout 0"
    if trainer.attention == "flash" and not model.attention_sinks:
        # Sinks are cuDNN's: Megatron picks the kernel itself there.
        yield "--attention-backend flash"
    if trainer.fused_loss:
        yield "--cross-entropy-loss-fusion"
    if "tensor" in trainer.hides and configuration.sequence_parallel and configuration.tensor > 1:
        yield "--tp-comm-overlap"
    modules = recomputed_anywhere(configuration)
    said = [module for module in modules if module not in ("full", "selective-op")]
    if said:
        yield "--recompute-granularity selective"
        yield f"--recompute-modules {' '.join(said)}"
    share = offloaded_anywhere(configuration)
    if share > 0:
        yield "--fine-grained-activation-offloading"
        yield f"--offload-modules {' '.join(offload_modules(model, share))}"


def _recompute_warnings(configuration: Configuration) -> Iterator[str]:
    if differs_by_stage(configuration):
        chosen = " ".join(recomputed_anywhere(configuration))
        yield (
            f"the plan recomputes by stage ({by_stage_in_words(configuration)}), which no flag of Megatron-LM says: these "
            f"recompute {chosen} on every stage, which fits and takes longer than planned"
        )
    if "selective-op" in recomputed_anywhere(configuration):
        yield "selective recomputation by op is torchtitan's: Megatron-LM recomputes modules, and none is set here"


def _offload_warnings(configuration: Configuration) -> Iterator[str]:
    if offloaded_anywhere(configuration) > 0:
        yield (
            "the plan moves a share of what each stage keeps to the host; Megatron-LM moves the inputs of whole modules, on "
            "every stage alike: the modules named here hold about that share"
        )


def _sharding_warnings(configuration: Configuration) -> Iterator[str]:
    if configuration.zero in FSDP and configuration.pipeline > 1:
        yield (
            f"the plan shards as ZeRO-{configuration.zero}, which Megatron-LM does not do beside a pipeline: these flags "
            "shard the optimizer's state alone (ZeRO-1)"
        )
