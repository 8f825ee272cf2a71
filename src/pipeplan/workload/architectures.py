"""Table of architectures whose config.json can be read, one row each.

Defaults are those of Hugging Face Transformers 4.57 (``configuration_*.py``) for fields that published files leave out. A
size that every published file contains has no default and is required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pipeplan.workload.hub import (
    Rule,
    all_biases,
    attention_biases,
    biases_throughout,
    deepseek_experts,
    ernie_experts,
    falcon,
    head_norms,
    latent_attention,
    learned_positions,
    llama4_experts,
    mtp,
    optional_windows,
    query_biases,
    qwen_experts,
    separate_biases,
    uniform_experts,
    windows,
)
from pipeplan.workload.hybrids import (
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

USUAL_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "ffn": "intermediate_size",
        "vocab": "vocab_size",
        "tied": "tie_word_embeddings",
    }
)
"""Field of most architectures by key of the short form."""

_GPT2_FIELDS = {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "ffn": "n_inner"}
_TIED = {"tie_word_embeddings": True}
_SIGMOID = {"scoring_func": "sigmoid"}
_PLAIN_FFN = {"gated": False, "norm": "layer"}
_EXPERTS = uniform_experts("num_experts", "num_experts_per_tok", "intermediate_size")
_LOCAL_EXPERTS = uniform_experts("num_local_experts", "num_experts_per_tok", "intermediate_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Description of the config.json of one architecture.

    Attributes
    ----------
    name
        Its ``model_type``.
    also
        Other ``model_type`` values with the same fields.
    fields
        Fields that differ from the usual ones, by key of the short form.
    defaults
        Values of fields that a file leaves out.
    always
        Keys of the short form that hold for all its models; the default is RMSNorm, a gated FFN, no biases and no learned
        positions.
    rules
        Rules that need more than a renamed field; each may override the earlier ones.
    listed_layers
        Field that lists every layer, of which a file without a number of layers has as many.
    ffn_from_hidden
        FFN width as a multiple of the hidden size if its field is null or missing; 0: the field is required.
    """

    name: str
    also: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    ffn_from_hidden: int = 0
    listed_layers: str = ""


_NEVER = 1 << 30
"""Period of layers with attention in a model whose file must list them."""

_QWEN_LINEAR = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "head_dim": 256,
}
_QWEN_GATED = {"qk_norm": True, "output_gate": "query"}
_LFM2 = {"conv_L_cache": 3, **_TIED}
_ROUTED_BIAS = {"qk_norm": True, "router_bias": True}

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        name="llama", also=("granite", "ministral3"), defaults={"rope_theta": 10_000}, rules=(attention_biases,)
    ),
    Architecture(
        name="llama4_text",
        defaults={"head_dim": 128, "attention_chunk_size": 8192, **_SIGMOID},
        always={"chunked_windows": True},
        rules=(attention_biases, windows(4, size="attention_chunk_size"), llama4_experts),
    ),
    Architecture(name="smollm3", defaults=_TIED, rules=(attention_biases, optional_windows)),
    Architecture(
        name="mistral",
        also=("ministral",),
        defaults={"num_key_value_heads": 8, "sliding_window": 4096},
        rules=(windows(),),
    ),
    Architecture(name="mixtral", defaults={"num_key_value_heads": 8}, rules=(windows(), _LOCAL_EXPERTS)),
    Architecture(name="granitemoe", rules=(attention_biases, _LOCAL_EXPERTS)),
    Architecture(
        name="qwen2",
        also=("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"),
        always={"bias_qkv": True},
        rules=(optional_windows,),
    ),
    Architecture(
        name="qwen2_moe",
        defaults={"qkv_bias": True, "decoder_sparse_step": 1, "norm_topk_prob": False},
        rules=(query_biases("qkv_bias"), optional_windows, qwen_experts),
    ),
    Architecture(
        name="qwen3",
        also=("qwen3_vl_text",),
        defaults={"head_dim": 128},
        always={"qk_norm": True},
        rules=(attention_biases, optional_windows),
    ),
    Architecture(
        name="qwen3_moe",
        also=("qwen3_vl_moe_text",),
        defaults={"decoder_sparse_step": 1, "norm_topk_prob": False},
        always={"qk_norm": True},
        rules=(attention_biases, optional_windows, qwen_experts),
    ),
    Architecture(
        name="deepseek_v2",
        defaults={"norm_topk_prob": False},
        rules=(latent_attention, deepseek_experts),
    ),
    Architecture(
        name="deepseek_v3",
        also=("kimi_k2", "kimi_k25"),
        defaults={
            "first_k_dense_replace": 3,
            "n_group": 8,
            "topk_group": 4,
            "n_shared_experts": 1,
            "routed_scaling_factor": 2.5,
            **_SIGMOID,
        },
        always={"router_bias": True},
        rules=(latent_attention, deepseek_experts),
    ),
    Architecture(
        name="glm4_moe",
        defaults={"head_dim": 128, "first_k_dense_replace": 1, "n_shared_experts": 1, **_SIGMOID},
        always={"router_bias": True},
        rules=(query_biases("attention_bias"), head_norms("use_qk_norm"), deepseek_experts),
    ),
    Architecture(
        name="glm",
        defaults={"head_dim": 128, "num_key_value_heads": 2, "attention_bias": True},
        rules=(query_biases("attention_bias"),),
    ),
    Architecture(
        name="glm4",
        defaults={"head_dim": 128, "num_key_value_heads": 2, "attention_bias": True},
        always={"norms_a_layer": 4},
        rules=(query_biases("attention_bias"),),
    ),
    Architecture(name="gemma", defaults={"head_dim": 256, **_TIED}, rules=(attention_biases,)),
    Architecture(
        name="gemma2",
        defaults={"head_dim": 256, "num_key_value_heads": 4, "sliding_window": 4096, **_TIED},
        always={"norms_a_layer": 4},
        rules=(attention_biases, windows(2)),
    ),
    Architecture(
        name="gemma3_text",
        defaults={
            "rms_norm_eps": 1e-6,
            "rope_theta": 1_000_000,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262_208,
            "sliding_window": 4096,
            **_TIED,
        },
        always={"norms_a_layer": 4, "qk_norm": True},
        rules=(attention_biases, windows(6, pattern="sliding_window_pattern")),
    ),
    Architecture(
        name="gpt_oss",
        defaults={"head_dim": 64, "num_key_value_heads": 8, "sliding_window": 128, "attention_bias": True},
        always={"router_bias": True, "expert_bias": True, "attention_sinks": True},
        rules=(all_biases("attention_bias"), windows(2), _LOCAL_EXPERTS),
    ),
    Architecture(name="phi3", rules=(windows(),)),
    Architecture(
        name="seed_oss",
        defaults={"head_dim": 128, "num_key_value_heads": 8, "attention_bias": True},
        rules=(separate_biases,),
    ),
    Architecture(
        name="minimax_m2",
        defaults={"head_dim": 128, **_SIGMOID},
        always={"qk_norm_whole": True, "router_bias": True},
        rules=(_LOCAL_EXPERTS,),
    ),
    Architecture(
        name="dots1",
        defaults={"norm_topk_prob": False, **_SIGMOID},
        always={"qk_norm": True, "router_bias": True},
        rules=(attention_biases, deepseek_experts),
    ),
    Architecture(
        name="ernie4_5_moe",
        defaults={"moe_layer_start_index": 1, "moe_num_shared_experts": 2, **_TIED},
        always={"router_bias": True},
        rules=(ernie_experts,),
    ),
    Architecture(name="olmo2", always={"qk_norm_whole": True}, rules=(attention_biases,)),
    Architecture(
        name="olmo3",
        defaults={"sliding_window": 4096},
        always={"qk_norm_whole": True},
        rules=(attention_biases, windows(4)),
    ),
    Architecture(
        name="olmoe",
        always={"qk_norm_whole": True},
        rules=(attention_biases, _EXPERTS),
    ),
    Architecture(
        name="cohere",
        defaults=_TIED,
        always={"norm": "layer-no-bias", "norms_a_layer": 1},
        rules=(attention_biases, head_norms("use_qk_norm", whole=True)),
    ),
    Architecture(
        name="cohere2",
        defaults={"sliding_window": 4096, **_TIED},
        always={"norm": "layer-no-bias", "norms_a_layer": 1},
        rules=(attention_biases, windows(4, pattern="sliding_window_pattern")),
    ),
    Architecture(
        name="dbrx",
        fields={
            "layers": "n_layers",
            "hidden": "d_model",
            "heads": "n_heads",
            "kv_heads": "attn_config.kv_n_heads",
            "ffn": "ffn_config.ffn_hidden_size",
        },
        always={"norm": "layer-no-bias"},
        rules=(uniform_experts("ffn_config.moe_num_experts", "ffn_config.moe_top_k", "ffn_config.ffn_hidden_size"),),
    ),
    Architecture(name="grok-1", also=("grok",), always={"norms_a_layer": 4}, rules=(_EXPERTS,)),
    Architecture(name="nemotron", always=_PLAIN_FFN, rules=(attention_biases,)),
    Architecture(
        name="gpt2",
        fields=_GPT2_FIELDS,
        defaults={"n_positions": 1024, **_TIED},
        always={**_PLAIN_FFN, "bias_qkv": True, "bias_all": True},
        rules=(learned_positions("n_positions"),),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="gpt_bigcode",
        fields=_GPT2_FIELDS,
        defaults={"n_positions": 1024, "multi_query": True, **_TIED},
        always={**_PLAIN_FFN, "bias_qkv": True, "bias_all": True},
        rules=(
            learned_positions("n_positions"),
            lambda fields: {"kv_heads": 1 if fields.switch("multi_query") else fields.needed("n_head")},
        ),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="gpt_neox",
        defaults={"attention_bias": True},
        always=_PLAIN_FFN,
        rules=(biases_throughout,),
    ),
    Architecture(
        name="starcoder2",
        defaults={"num_key_value_heads": 2, "use_bias": True, **_TIED},
        always=_PLAIN_FFN,
        rules=(all_biases("use_bias"), windows()),
    ),
    Architecture(
        name="falcon",
        fields={"kv_heads": "num_kv_heads", "ffn": "ffn_hidden_size"},
        defaults={"multi_query": True, "parallel_attn": True, "rope_theta": 10_000, **_TIED},
        always=_PLAIN_FFN,
        rules=(falcon,),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="opt",
        fields={"ffn": "ffn_dim"},
        defaults={"enable_bias": True, "max_position_embeddings": 2048, **_TIED},
        always=_PLAIN_FFN,
        rules=(all_biases("enable_bias"), learned_positions("max_position_embeddings", extra=2)),
    ),
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
        always={"qk_norm_whole": True},
        rules=(attention_biases, interleaved("", 4, olmo_delta)),
    ),
    Architecture(
        name="kimi_linear",
        defaults={
            "linear_head_dim": 128,
            "linear_num_heads": 32,
            "linear_conv_kernel_dim": 4,
            "first_k_dense_replace": 1,
        },
        always={"router_bias": True},
        rules=(latent_attention, kimi_experts, typed_ffns, kimi_linear),
    ),
    Architecture(
        name="bailing_hybrid",
        defaults={"layer_group_size": 6, "short_conv_kernel_size": 4, "first_k_dense_replace": 2},
        always={"router_bias": True, "output_gate": "head"},
        rules=(latent_attention, kimi_experts, typed_ffns, interleaved("layer_group_size", 6, bailing_hybrid)),
    ),
    Architecture(name="minimax", rules=(_LOCAL_EXPERTS, lightning)),
    Architecture(
        name="deepseek_v32",
        defaults={"first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "n_shared_experts": 1},
        always={"router_bias": True},
        rules=(indexed_attention, deepseek_experts, typed_ffns),
    ),
    Architecture(
        name="glm_moe_dsa",
        defaults={"first_k_dense_replace": 3, "n_shared_experts": 1},
        always={"router_bias": True},
        rules=(indexed_attention, deepseek_experts, typed_ffns),
    ),
    Architecture(
        name="glm4_moe_lite",
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1},
        always={"router_bias": True},
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
        },
        always={"gated": False, "norm": "rms"},
        rules=(nemotron_hybrid,),
        listed_layers="layers_block_type",
    ),
    Architecture(
        name="granitemoehybrid",
        defaults={
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
        defaults={"sliding_window": 128},
        always={"router_bias": True},
        rules=(query_biases("attention_bias"), windows(), deepseek_experts, typed_ffns, mimo),
    ),
    Architecture(
        name="hy_v3",
        always=_ROUTED_BIAS,
        defaults={"first_k_dense_replace": 1},
        rules=(attention_biases, kimi_experts, typed_ffns),
    ),
    Architecture(
        name="solar_open",
        defaults={"head_dim": 128, "first_k_dense_replace": 0, "n_shared_experts": 1},
        always={"router_bias": True},
        rules=(query_biases("attention_bias"), deepseek_experts),
    ),
    Architecture(
        name="exaone_moe",
        defaults={"first_k_dense_replace": 1},
        always=_ROUTED_BIAS,
        rules=(windows(4, pattern="sliding_window_pattern"), kimi_experts, typed_ffns),
    ),
    Architecture(
        name="afmoe",
        defaults={"head_dim": 128, "global_attn_every_n_layers": 4},
        always={"norms_a_layer": 4, "output_gate": "element", **_ROUTED_BIAS},
        rules=(attention_biases, windows(4, pattern="global_attn_every_n_layers"), kimi_experts),
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
        defaults={"num_hash_layers": 3, "hc_mult": 4, "n_shared_experts": 1},
        always={"router_bias": True},
        rules=(compressed_attention,),
    ),
)
"""The rows; their order does not matter."""
