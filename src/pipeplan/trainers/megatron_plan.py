"""Megatron-LM's flags for a plan: the model, the degrees, the batch, precision, recomputation, and the pipeline.

Names and rules are those of Megatron-LM's ``arguments.py`` and Megatron-core's ``TransformerConfig`` of 0.14 to 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeplan.errors import ShapeError
from pipeplan.formats import TrainerSettings, Training
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule
from pipeplan.planner import Configuration, even_layout, layout_of, software
from pipeplan.strategies import strategy
from pipeplan.trainers.megatron import FSDP, environment, megatron_flags, order_of, shards_as_fsdp
from pipeplan.trainers.trainer import bash_array, offloaded_anywhere, recompute_by_stage_in_words, recomputed_anywhere
from pipeplan.workload import Experts, LatentAttention, ModelShape

PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
"""Flags by precision. FP8's delayed recipe is not among them: it refuses to recompute norms and activations of experts."""


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return bash arrays of Megatron-LM's flags, below comments with what it does not do as planned.

    An order of ops that it cannot run is replaced by the nearest that it runs, with a warning.
    """
    pipeline, warnings = _pipeline(model, configuration, schedule, version)
    warnings += [*_plan_warnings(configuration), *_model_warnings(model)]
    arrays = {
        "MODEL_ARGS": [*_model_flags(model), *_sequence_flags(model, configuration)],
        "PARALLEL_ARGS": [*_degree_flags(model, configuration), *_routing_flags(model, cluster, configuration)],
        "RUN_ARGS": [*PRECISIONS[configuration.precision], *_run_flags(model, configuration)],
    }
    lines = [f"# Beware: {sentence}." for sentence in warnings]
    lines += [f"# Beside these: {_beside(model)}."]
    lines += [
        f"# torchrun --nproc-per-node {cluster.per_node} --nnodes {cluster.nodes} pretrain_gpt.py \\",
        '#   "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${RUN_ARGS[@]}" "${PIPELINE_ARGS[@]}"',
    ]
    lines += environment(cluster, configuration)
    for name, flags in arrays.items():
        lines += bash_array(name, flags)
    return TrainerSettings(text="\n".join(lines) + "\n" + pipeline, warnings=tuple(warnings))


def _pipeline(
    model: ModelShape, configuration: Configuration, schedule: Schedule, version: str | None
) -> tuple[str, list[str]]:
    """Return the array of the pipeline's flags, and the warnings about it."""
    warnings = []
    made, layers, order = schedule, layout_of(model, configuration), order_of(schedule)
    if order is None:
        made, layers = _nearest(model, configuration, schedule)
        order = order_of(made)
        assert order is not None
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
    try:
        settings = megatron_flags(
            made, replace(order, recompute=recomputed_anywhere(configuration) == ("full",)), training
        )
    except ShapeError as error:
        return f"# {error}.\n", [*warnings, str(error)]
    return settings.text, [*warnings, *settings.warnings]


def _nearest(model: ModelShape, configuration: Configuration, schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """Return the order that Megatron runs in place of another, with the layout of the same stages where it has these."""
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
    if shards_as_fsdp(configuration):
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


def _plan_warnings(configuration: Configuration) -> Iterator[str]:
    if by_stage := recompute_by_stage_in_words(configuration):
        chosen = " ".join(recomputed_anywhere(configuration))
        yield (
            f"the plan recomputes by stage ({by_stage}), which no flag of Megatron-LM says: these recompute {chosen} on "
            "every stage, which fits and takes longer than planned"
        )
    if "selective-op" in recomputed_anywhere(configuration):
        yield "selective recomputation by op is torchtitan's: Megatron-LM recomputes modules, and none is set here"
    if offloaded_anywhere(configuration) > 0:
        yield (
            "the plan moves a share of what each stage keeps to the host; Megatron-LM moves the inputs of whole modules, on "
            "every stage alike: the modules named here hold about that share"
        )
    if configuration.zero in FSDP and configuration.pipeline > 1:
        yield (
            f"the plan shards as ZeRO-{configuration.zero}, which Megatron-LM does not do beside a pipeline: these flags "
            "shard the optimizer's state alone (ZeRO-1)"
        )


def _model_flags(model: ModelShape) -> Iterator[str]:
    """Yield the flags of a model without its number of layers, which its layout says.

    The user adds what a shape does not hold: the scaling of rotary positions, the tokenizer.
    """
    yield f"--hidden-size {model.hidden}"
    yield f"--num-attention-heads {model.heads}"
    if model.ffn is not None:
        yield f"--ffn-hidden-size {model.ffn}"
    yield f"--vocab-size {model.vocabulary}"
    yield from _embedding_flags(model)
    yield from _kernel_flags(model)
    yield from _attention_flags(model)
    if model.experts is not None:
        yield from _expert_flags(model, model.experts)


def _beside(model: ModelShape) -> str:
    """Return what the user has to add to the flags, as a list in words."""
    of_config = [] if model.norm_epsilon is not None else ["--norm-epsilon"]
    if model.learned_positions is None:
        of_config += [*([] if _has_whole_base(model) else ["--rotary-base"]), "the scaling of rotary positions"]
    added = f", and {' and '.join(of_config)} as in the model's config.json" if of_config else ""
    return f"data, tokenizer, learning rate, checkpoints{added}"


def _model_warnings(model: ModelShape) -> Iterator[str]:
    if model.norms_a_layer > 2:
        yield (
            f"{model.name} has {model.norms_a_layer} norms a layer; Megatron-LM's layers have 2: the others need a layer "
            "specification of one's own (--spec)"
        )
    if model.experts is not None and model.experts.expert_bias:
        yield "biases of experts need a layer specification of one's own; --add-qkv-bias and --disable-bias-linear are all"


def _has_whole_base(model: ModelShape) -> bool:
    """Whether the base of rotary positions is a known integer: Megatron-LM's flag takes no other."""
    return model.rope_theta is not None and float(model.rope_theta).is_integer()


def _embedding_flags(model: ModelShape) -> Iterator[str]:
    if not model.tied_embeddings:
        yield "--untie-embeddings-and-output-weights"
    if model.learned_positions is None:
        yield "--position-embedding-type rope"
        if _has_whole_base(model):
            yield f"--rotary-base {model.rope_theta:.0f}"
    else:
        yield "--position-embedding-type learned_absolute"


def _kernel_flags(model: ModelShape) -> Iterator[str]:
    yield f"--normalization {'RMSNorm' if model.norm == 'rms' else 'LayerNorm'}"
    if model.norm_epsilon is not None:
        yield f"--norm-epsilon {model.norm_epsilon:g}"
    if model.gated:
        yield "--swiglu"
    if not model.bias_all:
        yield "--disable-bias-linear"
    if model.bias_qkv and not model.bias_all:
        yield "--add-qkv-bias"
    if model.qk_norm:
        yield "--qk-layernorm"


def _attention_flags(model: ModelShape) -> Iterator[str]:
    if model.latent is not None:
        yield from _latent_flags(model.latent)
        return
    if model.kv_heads is not None and model.kv_heads < model.heads:
        yield "--group-query-attention"
        yield f"--num-query-groups {model.kv_heads}"
    if model.head_dim is not None and model.head_dim * model.heads != model.hidden:
        yield f"--kv-channels {model.head_dim}"
    if model.sliding_window is not None:
        # Keys behind a query, and keys before it.
        yield f"--window-size '({model.sliding_window - 1},0)'"
        if model.sliding_every > 1:
            yield f"--window-attn-skip-freq {model.sliding_every}"
    if model.attention_sinks:
        yield "--softmax-type learnable"


def _latent_flags(latent: LatentAttention) -> Iterator[str]:
    yield "--multi-latent-attention"
    if latent.query_rank is not None:
        yield f"--q-lora-rank {latent.query_rank}"
    yield f"--kv-lora-rank {latent.key_value_rank}"
    yield f"--qk-head-dim {latent.nope_dim}"
    yield f"--qk-pos-emb-head-dim {latent.rope_dim}"
    yield f"--v-head-dim {latent.value_dim}"


def _expert_flags(model: ModelShape, experts: Experts) -> Iterator[str]:
    yield f"--num-experts {experts.count}"
    yield f"--moe-router-topk {experts.top_k}"
    yield f"--moe-ffn-hidden-size {experts.width}"
    if experts.shared_width:
        yield f"--moe-shared-expert-intermediate-size {experts.shared_width}"
    layers = [int(model.has_experts(layer)) for layer in range(model.layers)]
    if not all(layers):
        yield f"--moe-layer-freq '{_pattern(layers)}'"
    if experts.router_bias:
        yield "--moe-router-score-function sigmoid"
        yield "--moe-router-enable-expert-bias"
    yield "--moe-grouped-gemm"


def _pattern(layers: list[int]) -> str:
    """Return a list as the sum of its runs: ``([0]*3+[1]*58)``."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][0] == layer:
            runs[-1][1] += 1
        else:
            runs.append([layer, 1])
    return f"({'+'.join(f'[{value}]*{count}' for value, count in runs)})"


def _routing_flags(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Iterator[str]:
    """Yield how tokens find their experts: all to all, and on few nodes where the model limits them to some."""
    if model.experts is None:
        return
    yield "--moe-token-dispatcher-type alltoall"
    nodes = -(-configuration.expert * configuration.expert_tensor // cluster.per_node)
    limited = model.experts.nodes_a_token
    if limited is not None and limited < nodes and model.experts.count % nodes == 0:
        yield f"--moe-router-num-groups {nodes}"
        yield f"--moe-router-group-topk {limited}"


ATTENTION = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm")
EXPERTS = ("expert_fc1", "moe_act")
"""Modules whose inputs Megatron-core 0.16 can move to the host; the second group is of experts."""


def offload_modules(model: ModelShape, share: float) -> tuple[str, ...]:
    """Return modules whose inputs come to at least a share of what a layer keeps; all where they do not.

    The largest are taken first. Bytes are those of the inputs of a fused attention and of the products, in 16 bits, without
    tensor parallelism, which divides all of them alike.
    """
    inputs = _inputs(model)
    whole = sum(inputs.values()) + _stays(model)
    chosen: list[str] = []
    for module in sorted(inputs, key=lambda module: -inputs[module]):
        if sum(inputs[each] for each in chosen) >= share * whole:
            break
        chosen.append(module)
    if "attn_proj" in chosen and "core_attn" not in chosen:
        # It is the output of the core, whose backward needs it: Megatron takes the one only with the other.
        chosen.append("core_attn")
    return tuple(module for module in (*ATTENTION, *EXPERTS) if module in chosen)


def _inputs(model: ModelShape) -> dict[str, float]:
    """Return the bytes per token of each module's input."""
    core = 2.0 * (model.heads * model.score_dim + model.key_width + model.key_heads * model.value_dim)
    found = {
        "attn_norm": 2.0 * model.hidden,
        "qkv_linear": 2.0 * model.hidden,
        "core_attn": core,
        "attn_proj": 2.0 * model.value_width,
        "mlp_norm": 2.0 * model.hidden,
    }
    if model.experts is not None:
        found["expert_fc1"] = 2.0 * model.hidden * model.experts.top_k
        found["moe_act"] = 2.0 * (model.ffn_matrices - 1) * model.experts.width * model.experts.top_k
    return found


def _stays(model: ModelShape) -> float:
    """Return the bytes per token that no module moves: the dense FFN's tensors, the experts' last inputs."""
    if model.experts is not None:
        return 2.0 * (model.experts.width * model.experts.top_k + model.ffn_matrices * model.experts.shared_width)
    return 2.0 * (model.hidden + model.ffn_matrices * (model.ffn or 0))
