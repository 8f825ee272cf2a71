"""Megatron-LM's flags for the shape of a model.

Names and rules are those of Megatron-LM's ``arguments.py`` and Megatron-core's ``TransformerConfig`` of 0.14 to 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.extensions.planning.flags.megatron_hybrid import is_hybrid, missing_symbols
from pipeplan.extensions.planning.flags.network import (
    has_whole_base,
    list_flag,
    network_flags,
    unread_warnings,
    without_flag,
)
from pipeplan.extensions.planning.workload import WINDOWED, Experts, LatentAttention, ModelShape, SparseAttention
from pipeplan.trainers.megatron import TRAINER


def model_flags(model: ModelShape, release: str = TRAINER.latest) -> Iterator[str]:
    """Yield the flags of a model except its number of layers, which the layout implies.

    The user adds what a shape does not contain: the tokenizer, and of a model that is only known by its sizes the epsilon of
    norms and the rotary positions.
    """
    yield f"--hidden-size {model.hidden}"
    yield f"--num-attention-heads {model.heads}"
    if model.ffn is not None:
        yield f"--ffn-hidden-size {model.ffn}"
    yield f"--vocab-size {model.vocabulary}"
    if not model.tied_embeddings:
        yield "--untie-embeddings-and-output-weights"
    yield from _kernel_flags(model)
    yield from network_flags(model, release, TRAINER.releases)
    yield from _attention_flags(model)
    if model.experts is not None:
        yield from _expert_flags(model, model.experts)


def to_add(model: ModelShape) -> Iterator[str]:
    """Yield the flags of the model that its shape does not contain, if there are any."""
    of_config = [] if model.norm_epsilon is not None else ["--norm-epsilon"]
    if model.positions == "rope":
        of_config += [] if has_whole_base(model) else ["--rotary-base"]
        of_config += [] if model.rope_theta is not None else ["the scaling of rotary positions"]
    if of_config:
        yield f"in MODEL_ARGS, as in the model's config.json: {', '.join(of_config)}"


def model_warnings(model: ModelShape, release: str = TRAINER.latest) -> Iterator[str]:
    """Yield warnings on parts of a model that no flag of a release expresses, and on unknown fields of its config.json."""
    yield from unread_warnings(model)
    if is_hybrid(model):
        yield from missing_symbols(model)
    if parts := ", ".join(without_flag(model, release, TRAINER.releases)):
        yield (
            f"Megatron-LM has no flags for parts of {model.name} ({parts}): they need a layer specification (--spec), and a "
            "review of these flags counts them only with --model"
        )


def _kernel_flags(model: ModelShape) -> Iterator[str]:
    yield f"--normalization {'RMSNorm' if model.norm == 'rms' else 'LayerNorm'}"
    if model.norm_epsilon is not None:
        yield f"--norm-epsilon {model.norm_epsilon:g}"
    if not model.bias_all:
        yield "--disable-bias-linear"
    if model.bias_qkv and not model.bias_all:
        yield "--add-qkv-bias"
    if model.qk_norm or model.latent is not None:
        # Latent attention norms its compressions; without the flag Megatron-core leaves these norms out.
        yield "--qk-layernorm"


def _attention_flags(model: ModelShape) -> Iterator[str]:
    if model.latent is not None:
        yield from _latent_flags(model.latent)
        if model.hidden % model.heads:
            # Unused with latent attention, but its default must be an integer.
            yield f"--kv-channels {model.latent.value_dim}"
        if model.sparse is not None:
            yield from _sparse_flags(model.sparse)
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
        elif model.pattern is not None:
            yield f"--window-attn-skip-freq '{list_flag([int(form.mixer == WINDOWED) for form in model.forms])}'"
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


def _sparse_flags(sparse: SparseAttention) -> Iterator[str]:
    yield "--experimental-attention-variant dsa"
    yield f"--dsa-indexer-n-heads {sparse.index_heads}"
    yield f"--dsa-indexer-head-dim {sparse.index_dim}"
    yield f"--dsa-indexer-topk {sparse.keys}"


def _expert_flags(model: ModelShape, experts: Experts) -> Iterator[str]:
    yield f"--num-experts {experts.count}"
    yield f"--moe-router-topk {experts.top_k}"
    yield f"--moe-ffn-hidden-size {experts.width}"
    if experts.shared_width:
        yield f"--moe-shared-expert-intermediate-size {experts.shared_width}"
    layers = [int(model.has_experts(layer)) for layer in range(model.layers)]
    if not all(layers):
        yield f"--moe-layer-freq '{list_flag(layers)}'"
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
