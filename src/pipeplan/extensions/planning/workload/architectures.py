"""Table of architectures whose config.json can be read, one row each.

Defaults are those of Hugging Face Transformers 4.57 (``configuration_*.py``) for fields that published files leave out. A
size that every published file contains has no default and is required.
"""

from __future__ import annotations

from pipeplan.extensions.planning.workload.architecture import Architecture
from pipeplan.extensions.planning.workload.hub import (
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
    mpt,
    optional_windows,
    query_biases,
    qwen_experts,
    separate_biases,
    uniform_experts,
    windows,
)
from pipeplan.extensions.planning.workload.hub_details import scaled_embeddings, skipped_rotary
from pipeplan.extensions.planning.workload.hybrid_architectures import HYBRIDS

_GPT2_FIELDS = {"layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "ffn": "n_inner"}
_TIED = {"tie_word_embeddings": True}
_SIGMOID = {"scoring_func": "sigmoid"}
_PLAIN_FFN = {"gated": False, "norm": "layer"}
_GEMMA = {"centered_norms": True}
_GEMMA_GATE = {"hidden_activation": "gelu_pytorch_tanh"}
_COHERE = {"norm": "layer-no-bias", "norms_a_layer": 1, "parallel_residual": True, "rotary_interleaved": True}
_EXPERTS = uniform_experts("num_experts", "num_experts_per_tok", "intermediate_size")
_LOCAL_EXPERTS = uniform_experts("num_local_experts", "num_experts_per_tok", "intermediate_size")

ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        name="llama", also=("granite", "ministral3"), defaults={"rope_theta": 10_000}, rules=(attention_biases,)
    ),
    Architecture(
        name="llama4_text",
        defaults={
            "head_dim": 128,
            "attention_chunk_size": 8192,
            "attn_temperature_tuning": True,
            "use_qk_norm": True,
            **_SIGMOID,
        },
        always={"chunked_windows": True, "rotary_interleaved": True, "weights_on_input": True},
        rules=(
            attention_biases,
            windows(4, size="attention_chunk_size"),
            llama4_experts,
            skipped_rotary("no_rope_layer_interval", 4),
            lambda fields: {"unit_qk_norm": fields.switch("use_qk_norm")},
        ),
    ),
    Architecture(
        name="smollm3",
        defaults=_TIED,
        rules=(attention_biases, optional_windows, skipped_rotary("no_rope_layer_interval", 4)),
    ),
    Architecture(
        name="mistral",
        also=("ministral",),
        defaults={"num_key_value_heads": 8, "sliding_window": 4096},
        rules=(windows(),),
    ),
    Architecture(name="mixtral", defaults={"num_key_value_heads": 8}, rules=(windows(), _LOCAL_EXPERTS)),
    Architecture(name="granitemoe", defaults={"attention_multiplier": 1.0}, rules=(attention_biases, _LOCAL_EXPERTS)),
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
        defaults={
            "head_dim": 128,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
            "partial_rotary_factor": 0.5,
            **_SIGMOID,
        },
        always={"router_bias": True},
        rules=(query_biases("attention_bias"), head_norms("use_qk_norm"), deepseek_experts),
    ),
    Architecture(
        name="glm",
        defaults={"head_dim": 128, "num_key_value_heads": 2, "attention_bias": True, "partial_rotary_factor": 0.5},
        always={"rotary_interleaved": True},
        rules=(query_biases("attention_bias"),),
    ),
    Architecture(
        name="glm4",
        defaults={"head_dim": 128, "num_key_value_heads": 2, "attention_bias": True, "partial_rotary_factor": 0.5},
        always={"norms_a_layer": 4, "rotary_interleaved": True},
        rules=(query_biases("attention_bias"),),
    ),
    Architecture(
        name="gemma",
        defaults={"head_dim": 256, **_GEMMA_GATE, **_TIED},
        always=_GEMMA,
        rules=(attention_biases, scaled_embeddings()),
    ),
    Architecture(
        name="gemma2",
        defaults={
            "head_dim": 256,
            "num_key_value_heads": 4,
            "sliding_window": 4096,
            "query_pre_attn_scalar": 256,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            **_GEMMA_GATE,
            **_TIED,
        },
        always={"norms_a_layer": 4, **_GEMMA},
        rules=(attention_biases, windows(2), scaled_embeddings()),
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
            "query_pre_attn_scalar": 256,
            "rope_local_base_freq": 10_000,
            **_GEMMA_GATE,
            **_TIED,
        },
        always={"norms_a_layer": 4, "qk_norm": True, **_GEMMA},
        rules=(attention_biases, windows(6, pattern="sliding_window_pattern"), scaled_embeddings()),
    ),
    Architecture(
        name="gpt_oss",
        defaults={
            "head_dim": 64,
            "num_key_value_heads": 8,
            "sliding_window": 128,
            "attention_bias": True,
            "swiglu_limit": 7.0,
        },
        always={
            "router_bias": True,
            "expert_bias": True,
            "attention_sinks": True,
            "activation": "quick-gelu",
            "gate_offset": 1.0,
        },
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
        rules=(
            _LOCAL_EXPERTS,
            lambda fields: {"unread": "attn_type_list"} if {1} < {1, *fields.items("attn_type_list")} else {},
            lambda fields: {"unread": "use_qk_norm"} if fields.value("use_qk_norm") is False else {},
        ),
    ),
    Architecture(
        name="dots1",
        defaults={"norm_topk_prob": False},
        always={"qk_norm": True, "router_bias": True, "router_score": "sigmoid"},
        rules=(attention_biases, deepseek_experts),
    ),
    Architecture(
        name="ernie4_5_moe",
        defaults={"moe_layer_start_index": 1, "moe_num_shared_experts": 2, **_TIED},
        always={"router_bias": True, "rotary_interleaved": True},
        rules=(ernie_experts,),
    ),
    Architecture(name="olmo2", always={"qk_norm_whole": True, "norms_after": True}, rules=(attention_biases,)),
    Architecture(
        name="olmo3",
        defaults={"sliding_window": 4096},
        always={"qk_norm_whole": True, "norms_after": True},
        rules=(attention_biases, windows(4)),
    ),
    Architecture(
        name="olmoe",
        always={"qk_norm_whole": True},
        rules=(attention_biases, _EXPERTS),
    ),
    Architecture(
        name="cohere",
        defaults={"logit_scale": 0.0625, **_TIED},
        always=_COHERE,
        rules=(attention_biases, head_norms("use_qk_norm", whole=True)),
    ),
    Architecture(
        name="cohere2",
        defaults={"sliding_window": 4096, "logit_scale": 0.0625, **_TIED},
        always=_COHERE,
        rules=(
            attention_biases,
            windows(4, pattern="sliding_window_pattern"),
            skipped_rotary("sliding_window_pattern", 4),
        ),
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
        defaults={"layer_norm_epsilon": 1e-5},
        always={"norm": "layer-no-bias"},
        rules=(uniform_experts("ffn_config.moe_num_experts", "ffn_config.moe_top_k", "ffn_config.ffn_hidden_size"),),
    ),
    Architecture(
        name="grok-1", also=("grok",), always={"norms_a_layer": 4, "activation": "gelu-tanh"}, rules=(_EXPERTS,)
    ),
    Architecture(
        name="nemotron",
        defaults={"hidden_act": "relu2", "partial_rotary_factor": 0.5},
        always={"centered_norms": True, **_PLAIN_FFN},
        rules=(attention_biases,),
    ),
    Architecture(
        name="gpt2",
        fields=_GPT2_FIELDS,
        defaults={"n_positions": 1024, "activation_function": "gelu_new", **_TIED},
        always={**_PLAIN_FFN, "bias_qkv": True, "bias_all": True},
        rules=(learned_positions("n_positions"),),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="gpt_bigcode",
        fields=_GPT2_FIELDS,
        defaults={"n_positions": 1024, "multi_query": True, "activation_function": "gelu_new", **_TIED},
        always={**_PLAIN_FFN, "bias_qkv": True, "bias_all": True},
        rules=(
            learned_positions("n_positions"),
            lambda fields: {"kv_heads": 1 if fields.switch("multi_query") else fields.needed("n_head")},
        ),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="gpt_neox",
        defaults={
            "attention_bias": True,
            "hidden_act": "gelu",
            "rotary_pct": 0.25,
            "use_parallel_residual": True,
        },
        always=_PLAIN_FFN,
        rules=(biases_throughout,),
    ),
    Architecture(
        name="starcoder2",
        defaults={"num_key_value_heads": 2, "use_bias": True, "hidden_act": "gelu_pytorch_tanh", **_TIED},
        always=_PLAIN_FFN,
        rules=(all_biases("use_bias"), windows()),
    ),
    Architecture(
        name="falcon",
        fields={"kv_heads": "num_kv_heads", "ffn": "ffn_hidden_size"},
        defaults={"multi_query": True, "parallel_attn": True, "rope_theta": 10_000, "activation": "gelu", **_TIED},
        always=_PLAIN_FFN,
        rules=(falcon,),
        ffn_from_hidden=4,
    ),
    Architecture(
        name="opt",
        fields={"ffn": "ffn_dim"},
        defaults={
            "enable_bias": True,
            "layer_norm_epsilon": 1e-5,
            "max_position_embeddings": 2048,
            "activation_function": "relu",
            **_TIED,
        },
        always=_PLAIN_FFN,
        rules=(
            all_biases("enable_bias"),
            learned_positions("max_position_embeddings", extra=2),
            lambda fields: (
                {}
                if fields.value("word_embed_proj_dim") in (None, fields.value("hidden_size"))
                else {"unread": "word_embed_proj_dim"}
            ),
        ),
    ),
    Architecture(
        name="mpt",
        fields={"layers": "n_layers", "hidden": "d_model", "heads": "n_heads", "kv_heads": "attn_config.kv_n_heads"},
        defaults={
            "expansion_ratio": 4,
            "layer_norm_epsilon": 1e-5,
            "no_bias": True,
            "attn_config.alibi": True,
            **_TIED,
        },
        always={"gated": False, "activation": "gelu"},
        rules=(mpt,),
    ),
    *HYBRIDS,
)
"""The rows; their order does not matter."""
