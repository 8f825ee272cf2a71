"""A model's shape in the flags of Megatron-LM's network size, experts and latent attention."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.workload import Experts, LatentAttention, ModelShape


def model_flags(model: ModelShape) -> Iterator[str]:
    """The flags of a model, but for its number of layers, which its layout says.

    What a shape does not hold is left to the user: the scaling of rotary positions, the tokenizer.
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


def beside(model: ModelShape) -> str:
    """Return what the user has to add to the flags, as a list in words."""
    of_config = [] if model.norm_epsilon is not None else ["--norm-epsilon"]
    if model.learned_positions is None:
        of_config += [*([] if _has_whole_base(model) else ["--rotary-base"]), "the scaling of rotary positions"]
    added = f", and {' and '.join(of_config)} as in the model's config.json" if of_config else ""
    return f"data, tokenizer, learning rate, checkpoints{added}"


def unsaid(model: ModelShape) -> Iterator[str]:
    """What of a model no flag says, a sentence each."""
    if model.norms_a_layer > 2:
        yield (
            f"{model.name} has {model.norms_a_layer} norms a layer; Megatron-LM's layers have 2: the others need a layer "
            "specification of one's own (--spec)"
        )
    if model.experts is not None and model.experts.expert_bias:
        yield "biases of experts need a layer specification of one's own; --add-qkv-bias and --disable-bias-linear are all"


def _has_whole_base(model: ModelShape) -> bool:
    """Whether the base of rotary positions is known, and whole: Megatron-LM's flag takes no other."""
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
    """A list as the sum of its runs: ``([0]*3+[1]*58)``."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][0] == layer:
            runs[-1][1] += 1
        else:
            runs.append([layer, 1])
    return f"({'+'.join(f'[{value}]*{count}' for value, count in runs)})"


def routing_flags(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Iterator[str]:
    """How tokens find their experts: all to all, and on few nodes where the model limits them to some."""
    if model.experts is None:
        return
    yield "--moe-token-dispatcher-type alltoall"
    nodes = -(-configuration.expert * configuration.expert_tensor // cluster.per_node)
    limited = model.experts.nodes_a_token
    if limited is not None and limited < nodes and model.experts.count % nodes == 0:
        yield f"--moe-router-num-groups {nodes}"
        yield f"--moe-router-group-topk {limited}"
