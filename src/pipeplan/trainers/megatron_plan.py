"""Megatron-LM's flags for a plan: model, degrees, batch, precision, recomputation, and pipeline.

Names and rules are those of Megatron-LM's ``arguments.py`` and Megatron-core's ``TransformerConfig`` of 0.14 to 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeplan.errors import ShapeError
from pipeplan.formats import TrainerSettings, Training
from pipeplan.hardware import Cluster
from pipeplan.model import Schedule, counted
from pipeplan.planner import Configuration, even_layout, layout_of, software
from pipeplan.strategies import strategy
from pipeplan.trainers.megatron import FSDP, TRAINER, environment, order_of, pipeline_flags, shards_as_fsdp
from pipeplan.trainers.megatron_hybrid import SCRIPT, hybrid_pattern, is_hybrid, kept_flags, missing_symbols, size_flags
from pipeplan.trainers.trainer import bash_script, offloaded_anywhere, recompute_by_stage_in_words, recomputed_anywhere
from pipeplan.workload import Experts, LatentAttention, ModelShape

PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    "nvfp4": ("--bf16", "--fp4-format e2m1", "--fp4-recipe nvfp4"),
}
"""Flags by precision. FP8's delayed recipe is missing, because it refuses to recompute norms and activations of experts."""


TO_SET = {
    "MEGATRON": "folder of Megatron-LM",
    "DATA": "prefix of the tokenized data",
    "TOKENIZER": "name or folder of the tokenizer",
    "CHECKPOINTS": "folder to save checkpoints in",
    "STEPS": "number of steps",
    "LEARNING_RATE": "learning rate",
}
"""Variables that the user has to set, with their meanings."""

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


_WITHOUT_OFFLOAD = ("0.14", "0.15")
"""Releases without fine-grained offload of activations."""


def plan_flags(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule, version: str | None = None
) -> TrainerSettings:
    """Return a launch script of Megatron-LM, with comments on the differences from the plan.

    An order of ops that it cannot run is replaced by the nearest one that it can, with a warning. Where it refuses the
    shape, the text is only the reason.
    """
    release = TRAINER.release(version)
    warnings = [*_plan_warnings(configuration, release), *_model_warnings(model)]
    try:
        pipeline, about_pipeline = _pipeline(model, configuration, schedule, version)
    except ShapeError as error:
        return TrainerSettings(text=f"# {error}.\n", warnings=(*warnings, str(error)))
    warnings = [*about_pipeline, *warnings]
    arrays: dict[str, Sequence[str]] = {
        "MODEL_ARGS": [*_model_flags(model), *_sequence_flags(model, configuration)],
        "PARALLEL_ARGS": [*_degree_flags(model, configuration), *_routing_flags(model, configuration, release)],
        "RUN_ARGS": [*PRECISIONS[configuration.precision], *_run_flags(model, configuration, release)],
        "PIPELINE_ARGS": pipeline,
        "USER_ARGS": USER_FLAGS,
    }
    heading = [
        f"# Megatron-LM with Megatron-core {release}: {model.name}, {counted(cluster.gpus, 'GPU')}.",
        *(f"# Warning: {sentence}." for sentence in warnings),
        *_to_add(model),
    ]
    script = '"$MEGATRON/pretrain_gpt.py"'
    if is_hybrid(model):
        script = SCRIPT
        pattern = hybrid_pattern(model, layout_of(model, configuration))
        arrays = {name: kept_flags(model, flags) for name, flags in arrays.items()}
        arrays["MODEL_ARGS"] = [*arrays["MODEL_ARGS"], *size_flags(model), f"--hybrid-layer-pattern '{pattern}'"]
    text = bash_script(
        script,
        arrays,
        cluster,
        heading=heading,
        to_set=TO_SET,
        environment=environment(cluster, configuration),
    )
    return TrainerSettings(text=text, warnings=tuple(warnings))


def _pipeline(
    model: ModelShape, configuration: Configuration, schedule: Schedule, version: str | None
) -> tuple[tuple[str, ...], list[str]]:
    """Return the pipeline's flags, and the warnings about them. Raises ShapeError if Megatron-LM refuses the shape."""
    warnings = []
    made, layers, order = schedule, layout_of(model, configuration), order_of(schedule)
    if order is None:
        made, layers = _nearest(model, configuration, schedule)
        order = order_of(made)
        assert order is not None
        warnings.append(
            f"Megatron-LM does not support {schedule.name or configuration.schedule}: these flags run {made.name} instead, "
            "with different time and memory (see pipeplan estimate); torchtitan with its CSV, forks such as "
            "zero-bubble-pipeline-parallelism, or pipeplan's own runtime support the planned order"
        )
    training = Training(
        layers=layers if configuration.pipeline > 1 else None,
        mtp_layers=model.mtp_layers,
        microbatch_size=configuration.microbatch_size,
        data_parallel=configuration.data,
        trainer_version=version,
    )
    order = replace(order, recompute=recomputed_anywhere(configuration) == ("full",))
    return pipeline_flags(made, order, training), warnings


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
        yield "--cp-comm-type p2p"
    if model.experts is not None:
        yield f"--expert-model-parallel-size {configuration.expert}"
        yield f"--expert-tensor-parallel-size {configuration.expert_tensor}"
    yield from _sharding_flags(configuration)


def _sharding_flags(configuration: Configuration) -> Iterator[str]:
    hides = software(configuration.software).hides
    if not software(configuration.software).fp32_gradients:
        yield "--grad-reduce-in-bf16"
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


def _run_flags(model: ModelShape, configuration: Configuration, release: str) -> Iterator[str]:
    trainer = software(configuration.software)
    if not trainer.dropout:
        yield "--attention-dropout 0"
        yield "--hidden-dropout 0"
    if trainer.attention == "flash" and not model.attention_sinks:
        # Attention sinks need cuDNN's kernel, which Megatron selects itself.
        yield "--attention-backend flash"
    if trainer.fused_loss:
        yield "--cross-entropy-loss-fusion"
    if "tensor" in trainer.hides and configuration.sequence_parallel and configuration.tensor > 1:
        yield "--tp-comm-overlap"
    modules = recomputed_anywhere(configuration)
    named = [module for module in modules if module not in ("full", "selective-op")]
    if named:
        yield "--recompute-granularity selective"
        yield f"--recompute-modules {' '.join(named)}"
    share = offloaded_anywhere(configuration)
    if share > 0 and release not in _WITHOUT_OFFLOAD:
        yield "--fine-grained-activation-offloading"
        yield f"--offload-modules {' '.join(offload_modules(model, share, modules))}"


def _plan_warnings(configuration: Configuration, release: str) -> Iterator[str]:
    if by_stage := recompute_by_stage_in_words(configuration):
        chosen = " ".join(recomputed_anywhere(configuration))
        yield (
            f"no flag of Megatron-LM can express the plan's recomputation by stage ({by_stage}): these flags recompute "
            f"{chosen} on every stage, which fits but is slower than planned"
        )
    if "selective-op" in recomputed_anywhere(configuration):
        yield "Megatron-LM does not support torchtitan's selective recomputation per op: no recomputation is set here"
    if offloaded_anywhere(configuration) > 0 and release in _WITHOUT_OFFLOAD:
        yield f"Megatron-core {release} has no flag for the plan's offload: activations may not fit"
    elif offloaded_anywhere(configuration) > 0:
        yield (
            "the plan offloads a fraction of each stage's activations; Megatron-LM offloads the inputs of whole modules on "
            "every stage: the modules named here hold about that fraction"
        )
    if configuration.zero in FSDP and configuration.pipeline > 1:
        yield (
            f"Megatron-LM does not support the plan's ZeRO-{configuration.zero} with a pipeline: these flags shard only the "
            "optimizer state (ZeRO-1)"
        )


def _model_flags(model: ModelShape) -> Iterator[str]:
    """Yield the flags of a model except its number of layers, which the layout implies.

    The user adds what a shape does not contain: the scaling of rotary positions, the tokenizer.
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


def _to_add(model: ModelShape) -> Iterator[str]:
    """Yield a comment with the flags of the model that its shape does not contain, if there are any."""
    of_config = [] if model.norm_epsilon is not None else ["--norm-epsilon"]
    if model.learned_positions is None:
        of_config += [*([] if _has_whole_base(model) else ["--rotary-base"]), "the scaling of rotary positions"]
    if of_config:
        yield f"# Add to MODEL_ARGS, as in the model's config.json: {', '.join(of_config)}."


def _model_warnings(model: ModelShape) -> Iterator[str]:
    if is_hybrid(model):
        yield "--hybrid-layer-pattern with stages (|) needs a Megatron-core that has pretrain_hybrid.py, such as 0.20"
        yield from missing_symbols(model)
    if model.norms_a_layer > 2:
        yield (
            f"{model.name} has {model.norms_a_layer} norms per layer and Megatron-LM's layers have 2: the others need a "
            "custom layer specification (--spec)"
        )
    if model.experts is not None and model.experts.expert_bias:
        yield "biases of experts need a custom layer specification: only --add-qkv-bias and --disable-bias-linear exist"


def _has_whole_base(model: ModelShape) -> bool:
    """Return True if the base of rotary positions is a known integer, the only value that Megatron-LM's flag accepts."""
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
        # Number of keys before the query and after it.
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
    if experts.shared_gate:
        yield "--moe-shared-expert-gate"
    yield from _router_flags(experts)
    yield "--moe-grouped-gemm"


def _router_flags(experts: Experts) -> Iterator[str]:
    """Yield the flags that choose and weight a token's experts; weights sum to 1 unless softmax precedes the choice."""
    if experts.router_score == "sigmoid":
        yield "--moe-router-score-function sigmoid"
        if experts.router_bias:
            yield "--moe-router-enable-expert-bias"
    elif not experts.normalized_weights or experts.top_k == 1:
        yield "--moe-router-pre-softmax"
    if experts.groups is not None and experts.nodes_a_token is not None:
        yield f"--moe-router-num-groups {experts.groups}"
        yield f"--moe-router-group-topk {experts.nodes_a_token}"
    if experts.weight_scale != 1:
        yield f"--moe-router-topk-scaling-factor {experts.weight_scale:g}"


def _pattern(layers: list[int]) -> str:
    """Return a list as the sum of its runs, ``([0]*3+[1]*58)``."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][0] == layer:
            runs[-1][1] += 1
        else:
            runs.append([layer, 1])
    return f"({'+'.join(f'[{value}]*{count}' for value, count in runs)})"


def _routing_flags(model: ModelShape, configuration: Configuration, release: str) -> Iterator[str]:
    """Yield the flags that send tokens to experts: once per expert, or once per rank with DeepEP."""
    if model.experts is None:
        return
    if software(configuration.software).dispatch == "experts" or configuration.expert * configuration.tensor == 1:
        yield "--moe-token-dispatcher-type alltoall"
        return
    yield "--moe-token-dispatcher-type flex"
    yield "--moe-enable-deepep" if release in ("0.14", "0.15") else "--moe-flex-dispatcher-backend deepep"
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
