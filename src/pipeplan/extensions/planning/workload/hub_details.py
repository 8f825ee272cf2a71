"""Fields of a hub's config.json that change what a network computes, and those that change nothing.

A rule takes the fields and returns keys of the short form, as the rules of ``hub``. A field that no
rule reads, and that is not among those without a meaning for the network, is returned by :func:`unread_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose, log, sqrt
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.workload.hub import HubFields, Rule
from pipeplan.extensions.planning.workload.short_forms import as_number

ACTIVATIONS: Mapping[str, str] = MappingProxyType(
    {
        "silu": "silu",
        "swish": "silu",
        "swiglu": "silu",
        "gelu": "gelu",
        "gelu_new": "gelu-tanh",
        "gelu_fast": "gelu-tanh",
        "gelu_pytorch_tanh": "gelu-tanh",
        "gelu_python": "gelu",
        "quick_gelu": "quick-gelu",
        "relu": "relu",
        "relu2": "relu2",
        "squared_relu": "relu2",
    }
)
"""Activation by its name in Transformers; the three of GPT-2's tanh approximation are one."""

_ACTIVATION_FIELDS = (
    *("hidden_activation", "hidden_act", "activation_function", "mlp_hidden_act", "ffn_config.ffn_act_fn.name"),
    *("ffn_config.ffn_act_fn", "activation"),
)

_NUMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gate_limit": ("swiglu_limit",),
        "attention_softcap": ("attn_logit_softcapping", "max_attn_value"),
        "logit_softcap": ("final_logit_softcapping",),
        "attention_scale": ("attention_multiplier", "attn_output_multiplier", "attn_config.softmax_scale"),
        "embedding_scale": ("embedding_multiplier", "embedding_multiplier_scale"),
        "value_scale": ("attention_value_scale",),
        "residual_scale": (
            *("residual_multiplier", "layernorm_full_attention_alpha", "layernorm_linear_attention_alpha"),
            *("layernorm_mlp_alpha", "layernorm_full_attention_beta", "layernorm_linear_attention_beta"),
            *("layernorm_mlp_beta", "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor"),
            *("linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"),
        ),
        "logit_scale": ("logit_scale", "output_multiplier_scale"),
        "qkv_clip": ("clip_qkv", "attn_config.clip_qkv"),
    }
)
"""Fields with a number above 0 by key of the short form; the first one that is not 1 counts."""

_SWITCHES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parallel_residual": ("use_parallel_residual", "use_parallel_block"),
        "attention_temperature": ("attn_temperature_tuning", "rope_parameters.llama_4_scaling_beta"),
        "indexer_interleaved": ("indexer_rope_interleave",),
    }
)
"""Fields that are on if they are neither false nor 0, by key of the short form."""

_WITHOUT_MEANING = {
    "names, formats and releases": (
        "architectures auto_map model_type _name_or_path _source _commit_hash transformers_version "
        "torch_dtype dtype quantization_config task_specific_params tokenizer_class is_decoder "
        "is_encoder_decoder add_cross_attention language_model_only unsloth_version unsloth_fixed "
        "name_or_path chunk_size_feed_forward "
    ),
    "tokens and generation": (
        "bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id "
        "tokenizer_name bos_token eos_token prefix use_cache cache_implementation generation_config "
        "max_length eoi_token_index boi_token_index image_token_index image_token_id video_token_id "
        "vision_config vision_start_token_id vision_end_token_id mm_tokens_per_image "
        "multi_modal_projector_bias num_logits_to_keep pre_allocate_kv_cache max_batch_size "
        "max_sequence_length pad_key_length inference_runner validate_runner_input for_llm_compressor "
        "output_attentions return_dict output_hidden_states output_router_logits use_return_dict id2label "
        "label2id num_labels n_ctx max_seq_len model_max_length initial_context_length "
        "original_max_position_embeddings max_position_embeddings n_positions max_context_len "
        "sliding_window_size pad_to_multiple_of tie_encoder_decoder finetuning_task problem_type torchscript "
    ),
    "training: dropout, initialization, losses, parallelism": (
        "attention_dropout hidden_dropout residual_dropout embedding_dropout dropout layerdrop attn_pdrop "
        "embd_pdrop emb_pdrop resid_pdrop activation_dropout classifier_dropout hidden_dropout_prob "
        "attention_probs_dropout_prob summary_activation summary_first_dropout summary_proj_to_labels "
        "summary_type summary_use_proj attn_config.attn_pdrop initializer_range init_std init_device "
        "init_config rescale_prenorm_residual embedding_fraction router_aux_loss_coef router_jitter_noise "
        "aux_loss_alpha seq_aux router_z_loss_coef pretraining_tp ep_size moe_capacity expert_aux_loss_coef "
        "mtp_loss_scaling_factor ffn_config.moe_jitter_eps ffn_config.moe_loss_weight "
        "ffn_config.uniform_expert_assignment load_balance_coeff moe_aux_loss_alpha time_step_min "
        "time_step_max time_step_floor time_step_limit mamba_dt_min mamba_dt_max verbose _attn_implementation "
        "z_loss_coefficient attention_probs_dropout moe_loss_weight "
    ),
    "how kernels compute the same numbers": (
        "attention_softmax_in_fp32 scale_attention_softmax_in_fp32 use_mamba_kernels mamba_chunk_size "
        "chunk_size residual_in_fp32 mamba_ssm_dtype attn_config.attn_impl use_parallel_embedding "
        "attn_config.attn_uses_sequence_id router_dtype moe_router_dtype "
        "enable_moe_fp32_combine moe_norm_min mamba_ssm_cache_dtype moe_shared_expert_overlap block_size "
    ),
    "second names of facts that other fields state": (
        "attn_config.model_type ffn_config.model_type ffn_config.ffn_type qk_head_dim experts_per_token "
        "use_embedding_sharing mlp_intermediate_size layer_switch sliding_window_size "
        "attn_scale floor_scale alibi_bias_max attn_config.alibi_bias_max mtp_hybrid_override_pattern "
        "max_window_layers _sliding_window_pattern expand ffn_config.hidden_size "
    ),
}
"""Fields that no trainer needs for the network: tokens, training, inference, and second names of facts read elsewhere."""

_NO_MEANING = frozenset(field for names in _WITHOUT_MEANING.values() for field in names.split())

_OFF = (
    "use_mrope apply_residual_connection_post_layernorm _remove_final_layer_norm cross_attention "
    "scale_attn_by_inverse_layer_idx reorder_and_upcast_attn moe_apply_router_weight_on_input "
    "attn_config.prefix_lm attention_bias mlp_bias use_bias bias qkv_bias attn_config.qk_ln use_qk_norm "
    "qk_layernorm alibi attn_config.alibi ffn_config.bias conv_bias mamba_proj_bias attention_out_bias "
    "scale_depth mup_enabled use_mtp attn_config.rope use_bidirectional_attention "
    "moe_router_logit_softcapping "
)
"""Switches that are off in ordinary networks."""

_ON = (
    "scale_attn_weights do_layer_norm_before use_gated_activation rope_interleave is_causal "
    "layer_norm_elementwise_affine moe_renormalize use_routing_bias use_expert_bias gating "
)
"""Switches that are on in ordinary networks."""

_ORDINARY: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        **dict.fromkeys(_OFF.split(), (False,)),
        **dict.fromkeys(_ON.split(), (True,)),
        "norm_type": ("layer_norm", "low_precision_layernorm"),
        "attn_config.attn_type": ("multihead_attention", "grouped_query_attention"),
        "mlp_type": ("default",),
        "moe_gate": ("topk",),
        "n_shared_experts": (1,),
        "n_group": (1,),
        "topk_group": (1,),
        "swiglu_alpha": (1.702,),
        "ffn_config.moe_normalize_expert_weights": (1,),
        "mamba_hidden_act": ("silu",),
        "topk_method": ("greedy", "group_limited_greedy", "noaux_tc"),
        "qk_norm_type": ("per_layer",),
        "shared_moe_mode": ("sigmoid",),
        "shared_intermediate_size": (0,),
        "order_of_interleaved_layers": ("local_attn_first",),
        "position_embedding_type": ("rope", "rope_gptj", "nope"),
        "num_mtp_modules": (0,),
        "mtp_transformer_layers": (0,),
        "scoring_func": ("softmax", "sigmoid", "noaux_tc"),
    }
)
"""Values of fields with which a network is the ordinary one of its architecture; any other value is a field unread."""

_KINDS = ("position_embedding_type", "scoring_func", "topk_method")
"""Fields that are unread with any value that is not an ordinary one, although rules read them."""

_ROTARY = ("rope_scaling", "rope_parameters")
_NESTED = ("attn_config", "ffn_config", "linear_attn_config", *_ROTARY)
"""Fields whose parts are fields."""


def details(fields: HubFields) -> dict[str, Any]:
    """Return the details of a network; values that no network has are left to :func:`unread_fields`."""
    document: dict[str, Any] = {"activation": _activation(fields)}
    for key, names in _NUMBERS.items():
        values = [as_number(fields.value(name)) for name in names]
        own = [value for value in values if value is not None and value > 0]
        document[key] = next((value for value in own if value != 1), own[0] if own else None)
    for key, names in _SWITCHES.items():
        if any(fields.value(name) not in (None, False, 0) for name in names):
            document[key] = True
    if fields.value("topk_method") == "group_limited_greedy":
        document["groups_by_best"] = True
    return document | _scales(fields, document["attention_scale"]) | _positions(fields)


def _activation(fields: HubFields) -> str | None:
    values = [fields.value(field) for field in _ACTIVATION_FIELDS]
    name = next((value for value in values if isinstance(value, str) and value), None)
    return None if name is None else ACTIVATIONS.get(name, name[:40])


def _scales(fields: HubFields, attention: float | None) -> dict[str, Any]:
    """Return the factors on logits, which files state in other terms."""
    scalar = as_number(fields.value("query_pre_attn_scalar"))
    if scalar is not None and scalar > 0:
        attention = 1 / sqrt(scalar)
    divisor = as_number(fields.value("logits_scaling"))
    logits = {} if divisor in (None, 1) or divisor <= 0 else {"logit_scale": 1 / divisor}
    return {"attention_scale": None if _is_usual(fields, attention) else attention, **logits}


def _is_usual(fields: HubFields, scale: float | None) -> bool:
    """Return True if a factor on the logits of attention is 1 / sqrt(d)."""
    heads, hidden = as_number(fields.value("num_attention_heads")), as_number(fields.value("hidden_size"))
    dim = as_number(fields.value("head_dim")) or (hidden / heads if hidden and heads else None)
    return scale is None or (dim is not None and dim > 0 and isclose(scale, 1 / sqrt(dim), rel_tol=1e-6))


def _positions(fields: HubFields) -> dict[str, Any]:
    document: dict[str, Any] = {}
    kind = fields.value("position_embedding_type")
    if kind == "nope":
        document["positions"] = "none"
    elif fields.value("alibi") is True or fields.value("attn_config.alibi") is True:
        document["positions"] = "alibi"
    if kind == "rope_gptj":
        document["rotary_interleaved"] = True
    shared = _rotary_share(fields)
    if shared is not None and 0 < shared <= 1:
        document["rotary_share"] = shared
    scaling = _scaling(fields)
    if scaling:
        document["rope_scaling"] = scaling
    if _has_local_rotary(fields):
        document["local_rotary"] = True
    return document


def _rotary_share(fields: HubFields) -> float | None:
    """Return the fraction of a head that rotary positions turn; a number of dimensions precedes it."""
    turned, dim = as_number(fields.value("rotary_dim")), as_number(fields.value("head_dim"))
    if turned and dim:
        return turned / dim
    names = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent")
    parts = ("rope_parameters.partial_rotary_factor", "rope_parameters.full_attention.partial_rotary_factor")
    shares = [as_number(fields.value(name)) for name in (*parts, *names)]
    return next((share for share in shares if share is not None), None)


_SCALING_PARTS = {
    "factor": "factor",
    "original": "original_max_position_embeddings",
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all": "mscale_all_dim",
}
"""Numbers of a scaling in a config.json by key of the short form."""

_ROTARY_PARTS = (
    *(*_SCALING_PARTS.values(), "rope_type", "type", "rope_theta", "partial_rotary_factor", "attention_factor"),
    *("truncate", "long_factor", "short_factor", "mrope_section", "full_attention", "sliding_attention"),
)
"""Parts of the fields of rotary positions that are read, or that belong to a kind of scaling that is named."""


def _scaling(fields: HubFields) -> dict[str, Any] | None:
    """Return the scaling of rotary positions; None for the default kind."""
    fields.reads.update(f"{field}.{part}" for field in _ROTARY for part in _ROTARY_PARTS)
    own = fields.value("rope_scaling") or fields.value("rope_parameters.full_attention")
    parts = own if isinstance(own, Mapping) else fields.value("rope_parameters")
    if not isinstance(parts, Mapping):
        return None
    kind = parts.get("rope_type") or parts.get("type")
    if not isinstance(kind, str) or kind in ("default", "mrope", ""):
        return None
    numbers = {
        key: number
        for key, name in _SCALING_PARTS.items()
        if (number := as_number(parts.get(name))) is not None and number > 0
    }
    if not isinstance(numbers.get("original", 1), int):
        del numbers["original"]
    rounded = {"rounded": False} if parts.get("truncate") is False else {}
    if kind == "yarn":
        numbers |= _temperature(numbers, as_number(parts.get("attention_factor")))
    return {"kind": kind[:40], **numbers, **rounded}


def _temperature(numbers: Mapping[str, float], attention: float | None) -> dict[str, float]:
    """Return the ``mscale`` with which YaRN's factor on queries and keys is the one that a file states."""
    logarithm = 0.1 * log(max(1.0, numbers.get("factor", 1.0)))
    if attention is None or not logarithm:
        return {}
    mscale = (attention * (numbers.get("mscale_all", 0.0) * logarithm + 1.0) - 1.0) / logarithm
    usual = numbers.get("mscale", 1.0)
    return {} if isclose(mscale, usual, rel_tol=1e-6) else {"mscale": round(mscale, 12)}


def _has_local_rotary(fields: HubFields) -> bool:
    """Return True if windowed layers have other rotary positions than the others."""
    local, whole = (fields.value(f"rope_parameters.{kind}_attention") for kind in ("sliding", "full"))
    if isinstance(local, Mapping) and isinstance(whole, Mapping):
        names = ("rope_theta", "partial_rotary_factor", "rope_type", "factor")
        return any(local.get(name) != whole.get(name) for name in names)
    other = [as_number(fields.value(name)) for name in ("rope_local_base_freq", "swa_rope_theta", "local_rope_theta")]
    base = as_number(fields.value("rope_theta"))
    return any(number is not None and number != base for number in other)


def skipped_rotary(period: str = "", default: int = 0) -> Rule:
    """Return a rule for layers without rotary positions: every one of a period, or those that ``no_rope_layers`` lists.

    In that list of Transformers, a layer *with* rotary positions is 1. A list without a period is left unread.
    """

    def rule(fields: HubFields) -> dict[str, Any]:
        every = (fields.whole(period) if period else None) or default
        listed = fields.items("no_rope_layers")
        if not listed:
            return {"no_rotary_every": every}
        every = listed.index(0) + 1 if 0 in listed else 0
        regular = all(bool(turned) == (every == 0 or (layer + 1) % every != 0) for layer, turned in enumerate(listed))
        return {"no_rotary_every": every} if regular else {"unread": "no_rope_layers"}

    return rule


def scaled_embeddings(field: str = "") -> Rule:
    """Return a rule for embeddings that are multiplied by the square root of the hidden size, with a switch or always."""

    def rule(fields: HubFields) -> dict[str, Any]:
        if field and not fields.switch(field):
            return {}
        return {"embedding_scale": sqrt(fields.needed("hidden_size"))}

    return rule


def unread_fields(fields: HubFields) -> Iterator[str]:
    """Yield the fields of a config.json that no rule reads and that have a meaning; parts as ``attn_config.rope``."""
    for name, value in _flat(fields.content):
        part = name.rpartition(".")[2]
        if (
            value is None
            or (name in fields.reads and name not in _KINDS)
            or name in _NO_MEANING
            or (part != name and part in _NO_MEANING)
        ):
            continue
        if name == "layer_types" and isinstance(value, list) and all(kind == "full_attention" for kind in value):
            continue
        if name in _ORDINARY and any(value is usual or value == usual for usual in _ORDINARY[name]):
            continue
        yield name[:60]


def _flat(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if name in _NESTED and isinstance(value, Mapping):
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield str(name), value
