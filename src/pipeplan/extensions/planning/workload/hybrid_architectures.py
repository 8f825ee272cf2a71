"""Rows of the table of architectures whose layers differ or have other mixers than attention, and their relatives of 2026.

Defaults are those of Hugging Face Transformers 5.23.
"""

from __future__ import annotations

from pipeplan.extensions.planning.workload.architecture import Architecture
from pipeplan.extensions.planning.workload.hub import (
    attention_biases,
    deepseek_experts,
    latent_attention,
    mtp,
    query_biases,
    qwen_experts,
    uniform_experts,
    windows,
)
from pipeplan.extensions.planning.workload.hub_details import scaled_embeddings, skipped_rotary
from pipeplan.extensions.planning.workload.hybrids import (
    adjusted_ffn,
    bailing_hybrid,
    bamba,
    compressed_attention,
    gated_delta,
    granite_hybrid,
    heads_by_layer,
    indexed_attention,
    interleaved,
    kimi_experts,
    kimi_linear,
    lightning,
    mamba,
    mimo,
    nemotron_hybrid,
    olmo_delta,
    short_convolutions,
    typed_ffns,
)

_TIED = {"tie_word_embeddings": True}
_LOCAL_EXPERTS = uniform_experts("num_local_experts", "num_experts_per_tok", "intermediate_size")
_NEVER = 1 << 30
"""Period of layers with attention in a model whose file must list them."""

_QWEN_LINEAR = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "head_dim": 256,
    "partial_rotary_factor": 0.25,
}
_QWEN_GATED = {"qk_norm": True, "output_gate": "query", "centered_norms": True}
_LFM2 = {"conv_L_cache": 3, **_TIED}
_SELECTED = {"router_bias": True, "router_score": "sigmoid"}
_ROUTED_BIAS = {"qk_norm": True, **_SELECTED}

HYBRIDS: tuple[Architecture, ...] = (
    Architecture(
        name="qwen3_next",
        defaults={"decoder_sparse_step": 1, **_QWEN_LINEAR},
        always=_QWEN_GATED,
        rules=(attention_biases, interleaved("full_attention_interval", 4, gated_delta), qwen_experts),
    ),
    Architecture(
        name="qwen3_5_moe_text",
        also=("qwen3_5_moe",),
        defaults=_QWEN_LINEAR,
        always=_QWEN_GATED,
        rules=(
            attention_biases,
            interleaved("full_attention_interval", 4, gated_delta),
            qwen_experts,
            mtp("mtp_num_hidden_layers"),
        ),
    ),
    Architecture(
        name="qwen3_5_text",
        also=("qwen3_5",),
        defaults=_QWEN_LINEAR,
        always=_QWEN_GATED,
        rules=(
            attention_biases,
            interleaved("full_attention_interval", 4, gated_delta),
            mtp("mtp_num_hidden_layers"),
        ),
    ),
    Architecture(
        name="olmo_hybrid",
        defaults={"linear_conv_kernel_dim": 4},
        always={"qk_norm_whole": True, "norms_after": True},
        rules=(attention_biases, interleaved("", 4, olmo_delta)),
    ),
    Architecture(
        name="kimi_linear",
        defaults={
            "routed_scaling_factor": 2.446,
            "linear_head_dim": 128,
            "linear_num_heads": 32,
            "linear_conv_kernel_dim": 4,
            "first_k_dense_replace": 1,
        },
        always={"positions": "none", **_SELECTED},
        rules=(latent_attention, kimi_experts, typed_ffns, kimi_linear),
    ),
    Architecture(
        name="bailing_hybrid",
        defaults={
            "routed_scaling_factor": 2.5,
            "layer_group_size": 6,
            "short_conv_kernel_size": 4,
            "first_k_dense_replace": 2,
        },
        always={"output_gate": "head", **_SELECTED},
        rules=(latent_attention, kimi_experts, typed_ffns, interleaved("layer_group_size", 6, bailing_hybrid)),
    ),
    Architecture(name="minimax", rules=(_LOCAL_EXPERTS, lightning)),
    Architecture(
        name="deepseek_v32",
        defaults={
            "routed_scaling_factor": 2.5,
            "first_k_dense_replace": 3,
            "n_group": 8,
            "topk_group": 4,
            "n_shared_experts": 1,
        },
        always=_SELECTED,
        rules=(indexed_attention, deepseek_experts, typed_ffns),
    ),
    Architecture(
        name="glm_moe_dsa",
        defaults={"routed_scaling_factor": 2.5, "first_k_dense_replace": 3, "n_shared_experts": 1},
        always=_SELECTED,
        rules=(indexed_attention, deepseek_experts, typed_ffns),
    ),
    Architecture(
        name="glm4_moe_lite",
        defaults={"routed_scaling_factor": 1.8, "first_k_dense_replace": 1, "n_shared_experts": 1},
        always=_SELECTED,
        rules=(latent_attention, deepseek_experts, typed_ffns),
    ),
    Architecture(
        name="nemotron_h",
        defaults={
            "head_dim": 128,
            "num_key_value_heads": 8,
            "mamba_num_heads": 128,
            "mamba_head_dim": 64,
            "n_groups": 8,
            "ssm_state_size": 128,
            "conv_kernel": 4,
            "use_conv_bias": True,
            "mlp_hidden_act": "relu2",
        },
        always={"gated": False, "norm": "rms", "rope_theta": None, "positions": "none"},
        rules=(nemotron_hybrid,),
        listed_layers="layers_block_type",
    ),
    Architecture(
        name="granitemoehybrid",
        defaults={
            "attention_multiplier": 1.0,
            "mamba_n_heads": 128,
            "mamba_n_groups": 1,
            "mamba_d_state": 256,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "mamba_conv_bias": True,
        },
        rules=(attention_biases, interleaved("", _NEVER, mamba()), granite_hybrid),
    ),
    Architecture(
        name="bamba",
        defaults={
            "partial_rotary_factor": 0.5,
            "num_key_value_heads": 8,
            "mamba_n_heads": 128,
            "mamba_n_groups": 1,
            "mamba_d_state": 256,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "mamba_conv_bias": True,
        },
        rules=(attention_biases, bamba),
    ),
    Architecture(
        name="lfm2",
        defaults={"block_auto_adjust_ff_dim": True, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, **_LFM2},
        always={"qk_norm": True},
        rules=(short_convolutions, adjusted_ffn),
    ),
    Architecture(
        name="lfm2_moe",
        defaults={"use_expert_bias": True, **_LFM2},
        always={"qk_norm": True},
        rules=(
            kimi_experts,
            short_convolutions,
            lambda fields: {"router_bias": fields.switch("use_expert_bias")},
        ),
    ),
    Architecture(
        name="mimo_v2_flash",
        defaults={
            "sliding_window": 128,
            "partial_rotary_factor": 0.334,
            "swa_rope_theta": 10_000,
            "attention_value_scale": 0.707,
        },
        always=_SELECTED,
        rules=(query_biases("attention_bias"), windows(), deepseek_experts, typed_ffns, mimo),
    ),
    Architecture(
        name="hy_v3",
        always=_ROUTED_BIAS,
        defaults={"first_k_dense_replace": 1, "router_scaling_factor": 2.826},
        rules=(attention_biases, kimi_experts, typed_ffns),
    ),
    Architecture(
        name="solar_open",
        defaults={"head_dim": 128, "first_k_dense_replace": 0, "n_shared_experts": 1},
        always=_SELECTED,
        rules=(query_biases("attention_bias"), deepseek_experts),
    ),
    Architecture(
        name="exaone_moe",
        defaults={"routed_scaling_factor": 2.5, "first_k_dense_replace": 1},
        always=_ROUTED_BIAS,
        rules=(
            windows(4, pattern="sliding_window_pattern"),
            kimi_experts,
            typed_ffns,
            skipped_rotary("sliding_window_pattern", 4),
        ),
    ),
    Architecture(
        name="afmoe",
        defaults={"head_dim": 128, "global_attn_every_n_layers": 4},
        always={"norms_a_layer": 4, "output_gate": "element", **_ROUTED_BIAS},
        rules=(
            attention_biases,
            windows(4, pattern="global_attn_every_n_layers"),
            kimi_experts,
            skipped_rotary("global_attn_every_n_layers", 4),
            scaled_embeddings("mup_enabled"),
        ),
    ),
    Architecture(
        name="laguna",
        defaults={"head_dim": 128},
        always={"output_gate": "head", **_ROUTED_BIAS},
        rules=(
            attention_biases,
            windows(),
            heads_by_layer,
            qwen_experts,
            lambda fields: {"shared_gate": False},
            typed_ffns,
        ),
    ),
    Architecture(
        name="deepseek_v4",
        defaults={
            "routed_scaling_factor": 1.5,
            "num_hash_layers": 3,
            "hc_mult": 4,
            "n_shared_experts": 1,
            "swiglu_limit": 10.0,
            "partial_rotary_factor": 0.125,
        },
        always={"router_bias": True},
        rules=(compressed_attention,),
    ),
)
"""The rows; :data:`pipeplan.extensions.planning.workload.architectures.ARCHITECTURES` has them, too."""
