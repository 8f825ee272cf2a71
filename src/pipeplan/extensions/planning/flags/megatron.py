"""Megatron-LM's launch script for a plan: model, degrees, batch, precision, recomputation, and pipeline.

Names and rules are those of Megatron-LM's ``arguments.py`` and Megatron-core's ``TransformerConfig`` of 0.14 to 0.19.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from pipeplan.extensions.planning import Configuration, even_layout, layout_of, memory_rules, software
from pipeplan.extensions.planning.flags.environment import adds_apart, dispatcher, environment, shards_as_fsdp
from pipeplan.extensions.planning.flags.megatron_hybrid import RELEASES as HYBRID_RELEASES
from pipeplan.extensions.planning.flags.megatron_hybrid import SCRIPT as HYBRID_SCRIPT
from pipeplan.extensions.planning.flags.megatron_hybrid import (
    hybrid_pattern,
    is_hybrid,
    kept_flags,
    require_buildable,
    size_flags,
)
from pipeplan.extensions.planning.flags.megatron_model import model_flags, model_warnings, to_add
from pipeplan.extensions.planning.flags.scripts import (
    bash_script,
    recompute_by_stage_in_words,
    recomputed_anywhere,
)
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import TrainerSettings, Training
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Schedule, counted
from pipeplan.strategies import strategy
from pipeplan.trainers.megatron import FSDP, TRAINER, MegatronOrder, order_of, pipeline_flags

PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
"""Flags by precision. FP8's delayed recipe is missing, because it refuses to recompute norms and activations of experts."""

CONTEXT_METHODS = {"ring": "p2p", "all_to_all": "a2a", "gather": "all_gather"}
"""Megatron's names of the methods of context parallelism."""

TO_SET = {
    "DATA": "prefix of the tokenized data",
    "TOKENIZER": "name or folder of the tokenizer",
    "CHECKPOINTS": "folder to save checkpoints in",
    "STEPS": "number of steps",
    "LEARNING_RATE": "learning rate",
}
"""Variables that the user has to set, with their meanings, for any trainer on Megatron-core."""

USER_FLAGS = (
    '--data-path "$DATA"',
    "--tokenizer-type HuggingFaceTokenizer",
    '--tokenizer-model "$TOKENIZER"',
    '--save "$CHECKPOINTS"',
    "--save-interval 1000",
    '--train-iters "$STEPS"',
    '--lr "$LEARNING_RATE"',
)
"""Flags that the plan does not decide."""


_FIRST_RELEASES = ("0.14", "0.15")
"""Releases without fine-grained offload of activations, sparse attention and HybridEP."""

_FIRST_WITH = {
    "--quick-geglu": "0.15",
    "--glu-linear-offset": "0.15",
    "--activation-func-clamp-value": "0.15",
    "--window-size": "0.15",
    "--window-attn-skip-freq": "0.15",
    "--softmax-type": "0.15",
    "--moe-shared-expert-gate": "0.16",
    "--experimental-attention-variant": "0.16",
}
"""First release with each flag of a model that is not in all supported ones."""


def refusal_of(model: ModelShape) -> str:
    """Return why Megatron-core cannot build a model; empty if it can."""
    try:
        require_buildable(model, HYBRID_RELEASES[-1])
    except ShapeError as error:
        return str(error)
    return ""


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return a launch script of Megatron-LM, with comments on the differences from the plan.

    An order of ops that it cannot run is replaced by the nearest one that it can, with a warning. Where it refuses the
    shape, the text is only the reason.
    """
    hybrid = is_hybrid(model)
    release = TRAINER.release(version)
    warnings = [*plan_warnings(configuration), *model_warnings(model, release)]
    if configuration.most_offloaded > 0 and release in _FIRST_RELEASES:
        warnings.append(f"Megatron-core {release} has no flag for the plan's offload: activations may not fit")
    pipeline = planned_pipeline(model, configuration, schedule)
    warnings = [*pipeline.warnings, *warnings]
    try:
        of_pipeline = pipeline_flags(pipeline.schedule, pipeline.order, pipeline.training(model, configuration))
        require_trainable(model, configuration, TRAINER.title, pipeline.order)
        if hybrid:
            require_buildable(model, release)
        _require_flags(model, configuration, release)
    except ShapeError as error:
        return TrainerSettings(text=f"# {error}.\n", warnings=(*warnings, str(error)))
    arrays: dict[str, Sequence[str]] = {
        "MODEL_ARGS": [*model_flags(model, release), *_sequence_flags(model, configuration)],
        "PARALLEL_ARGS": [
            *_degree_flags(model, configuration),
            *_routing_flags(model, cluster, configuration, release),
        ],
        "RUN_ARGS": [*PRECISIONS[configuration.precision], *_run_flags(model, configuration, release)],
        "PIPELINE_ARGS": of_pipeline,
        "USER_ARGS": USER_FLAGS,
    }
    if hybrid:
        pattern = hybrid_pattern(model, pipeline.layers)
        arrays = {name: kept_flags(flags) for name, flags in arrays.items()}
        arrays["MODEL_ARGS"] = [*arrays["MODEL_ARGS"], *size_flags(model), f"--hybrid-layer-pattern '{pattern}'"]
    text = bash_script(
        HYBRID_SCRIPT if hybrid else '"$MEGATRON/pretrain_gpt.py"',
        arrays,
        cluster,
        heading=f"Megatron-LM with Megatron-core {release}: {model.name}, {counted(cluster.gpus, 'GPU')}",
        warnings=warnings,
        to_set={"MEGATRON": "folder of Megatron-LM", **TO_SET},
        to_add=to_add(model),
        environment=environment(cluster, configuration),
    )
    return TrainerSettings(text=text, warnings=tuple(warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronPipeline:
    """Order in which Megatron-core runs a plan, or the nearest one that it can run, with a warning on the difference."""

    schedule: Schedule
    order: MegatronOrder
    layers: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    def training(self, model: ModelShape, configuration: Configuration) -> Training:
        """Return the layers, batch and replicas; without a pipeline, the layers have no layout."""
        return Training(
            layers=self.layers if configuration.pipeline > 1 else None,
            mtp_layers=model.mtp_layers,
            microbatch_size=configuration.microbatch_size,
            data_parallel=configuration.data,
        )


def planned_pipeline(
    model: ModelShape, configuration: Configuration, schedule: Schedule, title: str = TRAINER.title
) -> MegatronPipeline:
    """Return what a trainer on Megatron-core runs in place of a plan's schedule."""
    warnings: tuple[str, ...] = ()
    made, layers, order = schedule, layout_of(model, configuration), order_of(schedule)
    if order is None:
        made, layers = _nearest(model, configuration, schedule)
        order = order_of(made)
        assert order is not None
        warnings = (
            f"{title} does not support {schedule.name or configuration.schedule}: these flags run {made.name} instead, "
            "with different time and memory (see pipeplan estimate); torchtitan with its CSV, forks such as "
            "zero-bubble-pipeline-parallelism, or pipeplan's own runtime support the planned order",
        )
    order = replace(
        order,
        recompute=recomputed_anywhere(configuration) == ("full",),
        delayed_weights=order.overlap and software(configuration.software).delayed_weights,
    )
    return MegatronPipeline(schedule=made, order=order, layers=layers, warnings=warnings)


def _nearest(model: ModelShape, configuration: Configuration, schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """Return the order that Megatron runs in place of another, with the same layout if the stages are the same."""
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
        yield f"--cp-comm-type {CONTEXT_METHODS[software(configuration.software).context_method]}"
    if model.experts is not None:
        yield f"--expert-model-parallel-size {configuration.expert}"
        yield f"--expert-tensor-parallel-size {configuration.expert_tensor}"
    yield from _sharding_flags(configuration)


def _sharding_flags(configuration: Configuration) -> Iterator[str]:
    trainer = software(configuration.software)
    hides = trainer.hides
    if not trainer.fp32_gradients:
        yield "--grad-reduce-in-bf16"
    elif configuration.precision == "fp16":
        yield "--accumulate-allreduce-grads-in-fp32"
    if "data" in hides:
        yield "--overlap-grad-reduce"
    if adds_apart(configuration):
        yield "--no-gradient-accumulation-fusion"
    if not configuration.zero:
        return
    yield "--use-distributed-optimizer"
    if configuration.replicate > 1:
        yield f"--num-distributed-optimizer-instances {configuration.replicate}"
    overlaps = "data" in hides and "parameters" in hides
    if overlaps:
        yield "--overlap-param-gather"
    if configuration.precision in ("fp8", "mxfp8") and memory_rules(configuration.software).small_weights == "instead":
        yield "--fp8-param-gather"
        if overlaps and configuration.precision == "mxfp8":
            yield "--reuse-grad-buf-for-mxfp8-param-ag"
    if shards_as_fsdp(configuration):
        yield "--use-megatron-fsdp"
        yield "--ckpt-format fsdp_dtensor"
        yield f"--data-parallel-sharding-strategy {FSDP[configuration.zero]}"


def _run_flags(model: ModelShape, configuration: Configuration, release: str) -> Iterator[str]:
    trainer = software(configuration.software)
    if not trainer.dropout:
        yield "--attention-dropout 0"
        yield "--hidden-dropout 0"
    if trainer.fused_loss:
        yield "--cross-entropy-loss-fusion"
    if "tensor" in trainer.hides and configuration.sequence_parallel and configuration.tensor > 1:
        yield "--tp-comm-overlap"
    modules = recomputed_anywhere(configuration)
    named = [module for module in modules if module not in ("full", "selective-op")]
    if named:
        yield "--recompute-granularity selective"
        yield f"--recompute-modules {' '.join(named)}"
    share = configuration.most_offloaded
    if share > 0 and release not in _FIRST_RELEASES:
        yield "--fine-grained-activation-offloading"
        yield f"--offload-modules {' '.join(offload_modules(model, share, modules))}"


def require_trainable(model: ModelShape, configuration: Configuration, title: str, order: MegatronOrder) -> None:
    """Raise ShapeError if a trainer on Megatron-core starts with a configuration, but refuses to train with it."""
    if order.overlap and configuration.expert == 1:
        raise ShapeError(f"{title} pairs forwards with backwards only where ep is above 1: set ep, or drop the pairs")
    if order.overlap and "moe" in recomputed_anywhere(configuration):
        raise ShapeError(f"{title} does not recompute moe in pairs of a forward and a backward: use moe_act instead")
    if model.experts is not None and configuration.tensor > 1 and not configuration.sequence_parallel:
        raise ShapeError(f"{title} trains experts with tensor parallelism only with sequence parallelism: set sp to on")


def _require_flags(model: ModelShape, configuration: Configuration, release: str) -> None:
    """Raise ShapeError if a release lacks a flag that the model needs, or refuses to split its keys and values."""
    for flag in (words.split()[0] for words in model_flags(model, release)):
        first = _FIRST_WITH.get(flag, release)
        if TRAINER.releases.index(release) < TRAINER.releases.index(first):
            raise ShapeError(
                f"Megatron-core {release} cannot build {model.name}: it has no {flag}, which needs {first} or later"
            )
    if release in _FIRST_RELEASES and model.latent is None and model.key_heads % configuration.tensor:
        raise ShapeError(
            f"Megatron-core {release} does not split {model.key_heads} heads of keys and values over {configuration.tensor} "
            "tensor ranks: use 0.16 or later"
        )


def plan_warnings(configuration: Configuration, title: str = TRAINER.title) -> Iterator[str]:
    """Yield warnings on what a trainer on Megatron-core does differently from a plan, except its schedule."""
    if by_stage := recompute_by_stage_in_words(configuration):
        chosen = " ".join(recomputed_anywhere(configuration))
        yield (
            f"no flag of {title} can express the plan's recomputation by stage ({by_stage}): these flags recompute "
            f"{chosen} on every stage, which fits but is slower than planned"
        )
    if "selective-op" in recomputed_anywhere(configuration):
        yield f"{title} does not support torchtitan's selective recomputation per op: no recomputation is set here"
    if configuration.most_offloaded > 0:
        yield (
            f"the plan offloads a fraction of each stage's activations; {title} offloads the inputs of whole modules on "
            "every stage: the modules named here hold about that fraction"
        )
    if configuration.zero in FSDP and configuration.pipeline > 1:
        yield (
            f"{title} does not support the plan's ZeRO-{configuration.zero} with a pipeline: these flags shard only the "
            "optimizer state (ZeRO-1)"
        )


def _routing_flags(model: ModelShape, cluster: Cluster, configuration: Configuration, release: str) -> Iterator[str]:
    """Yield the flags that send tokens to experts: once per expert, or once per rank."""
    if model.experts is None:
        return
    backend = dispatcher(cluster, configuration)
    if backend is None or (backend == "hybridep" and release in _FIRST_RELEASES):
        yield "--moe-token-dispatcher-type alltoall"
        return
    yield "--moe-token-dispatcher-type flex"
    yield "--moe-enable-deepep" if release in _FIRST_RELEASES else f"--moe-flex-dispatcher-backend {backend}"
    yield "--moe-router-dtype fp32"


ATTENTION = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm")
EXPERTS = ("expert_fc1", "moe_act")
"""Modules whose inputs Megatron-core 0.16 can offload; the second group belongs to experts."""


def offload_modules(model: ModelShape, share: float, recomputed: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return modules whose inputs make up at least a fraction of a layer's activations; all if they do not.

    The largest are taken first. Bytes are those of the inputs of fused attention and of the products, in 16 bits, without
    tensor parallelism, which divides all of them equally. A recomputed FFN with experts keeps nothing to offload inside.
    """
    inputs = _inputs(model, recomputed)
    whole = sum(inputs.values()) + _stays(model)
    chosen: list[str] = []
    for module in sorted(inputs, key=lambda module: -inputs[module]):
        if sum(inputs[name] for name in chosen) >= share * whole:
            break
        chosen.append(module)
    if "attn_proj" in chosen and "core_attn" not in chosen:
        # Its input is the core's output, which the core's backward needs: Megatron offloads them only together.
        chosen.append("core_attn")
    return tuple(module for module in (*ATTENTION, *EXPERTS) if module in chosen)


OFFLOADED = (0.25, 0.5, 0.75, 1.0)
"""Fractions that a list of modules is read as."""


def offloaded_share(model: ModelShape, modules: Collection[str], recomputed: tuple[str, ...] = ()) -> float:
    """Return the fraction of a layer's activations for which a plan offloads the inputs of these modules.

    Modules that no plan chooses together are read as the fraction that they hold.
    """
    for share in OFFLOADED:
        if set(offload_modules(model, share, recomputed)) == set(modules):
            return share
    inputs = _inputs(model, recomputed)
    return min(1.0, sum(inputs.get(name, 0.0) for name in modules) / (sum(inputs.values()) + _stays(model)))


def _inputs(model: ModelShape, recomputed: tuple[str, ...]) -> dict[str, float]:
    core = 2.0 * (model.heads * model.score_dim + model.key_width + model.key_heads * model.value_dim)
    inputs = {
        "attn_norm": 2.0 * model.hidden,
        "qkv_linear": 2.0 * model.hidden,
        "core_attn": core,
        "attn_proj": 2.0 * model.value_width,
        "mlp_norm": 2.0 * model.hidden,
    }
    if model.experts is not None and "moe" not in recomputed:
        inputs["expert_fc1"] = 2.0 * model.hidden * model.experts.top_k
        inputs["moe_act"] = 2.0 * (model.ffn_matrices - 1) * model.experts.width * model.experts.top_k
    return inputs


def _stays(model: ModelShape) -> float:
    """Return the bytes per token that no module can offload: the dense FFN's tensors, the experts' last inputs."""
    if model.experts is not None:
        return 2.0 * (model.experts.width * model.experts.top_k + model.ffn_matrices * model.experts.shared_width)
    return 2.0 * (model.hidden + model.ffn_matrices * (model.ffn or 0))
