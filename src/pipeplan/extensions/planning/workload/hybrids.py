"""Rules for the config.json of models whose layers differ: kinds of layers one by one, and mixers other than attention.

Rules return keys of the short form, and ``mixer_letters`` and ``ffn_letters``, a letter for each layer, of which
:func:`pipeplan.extensions.planning.workload.config_json.read_config` makes the ``pattern``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeplan.extensions.planning.workload.hub import HubFields, Rule, latent_attention, letters
from pipeplan.extensions.planning.workload.pattern import ATTENTION, DENSE, EXPERTS, HASHED, SHARED, WINDOWED
from pipeplan.extensions.planning.workload.short_forms import as_number

OTHER = "M"
"""Letter of the one mixer that a hybrid model has beside attention."""

_TYPES = {
    "full_attention": ATTENTION,
    "attention": ATTENTION,
    "indexed_attention": ATTENTION,
    "sliding_attention": WINDOWED,
    "chunked_attention": WINDOWED,
    "linear_attention": OTHER,
    "mamba": OTHER,
    "conv": OTHER,
}
_FFNS = {"dense": DENSE, "sparse": EXPERTS, "moe": EXPERTS, "hash_moe": HASHED}


def interleaved(every: str, default: int, *, mixer: str) -> Rule:
    """Return a rule for a mixer in all layers but each ``every``-th, which has attention, or as ``layer_types`` says.

    Without the field, every ``default``-th layer has attention, or none for 0. ``mixer`` is a name of :data:`_SIZES`.
    """

    def rule(fields: HubFields) -> dict[str, Any]:
        layers, step = fields.needed("num_hidden_layers"), fields.whole(every) or default
        mixers = letters(fields, "layer_types", _TYPES)
        if mixers is None:
            mixers = [ATTENTION if step and (layer + 1) % step == 0 else OTHER for layer in range(layers)]
        return {"mixer_letters": mixers, **(_SIZES[mixer](fields) if OTHER in mixers else {})}

    return rule


def typed_ffns(fields: HubFields) -> dict[str, Any]:
    """Read the FFN of each layer from ``mlp_layer_types``, or from ``moe_layer_freq`` if it is a list."""
    ffns = letters(fields, "mlp_layer_types", _FFNS)
    frequency = fields.value("moe_layer_freq")
    if ffns is None and isinstance(frequency, list):
        if len(frequency) != fields.needed("num_hidden_layers"):
            raise fields.wrong_value_error("moe_layer_freq", "a number for each layer")
        ffns = [EXPERTS if number else DENSE for number in frequency]
    return {} if ffns is None else ffn_keys(ffns)


def ffn_keys(ffns: Sequence[str]) -> dict[str, Any]:
    """Return the shortest keys for the FFNs of the layers: the number of leading dense ones, or a letter for each."""
    leading = next((index for index, letter in enumerate(ffns) if letter != DENSE), len(ffns))
    if leading < len(ffns) and all(letter == EXPERTS for letter in ffns[leading:]):
        return {"dense_layers": leading, "moe_every": 1}
    return {"ffn_letters": list(ffns)}


def gated_delta(fields: HubFields) -> dict[str, Any]:
    """Read Gated DeltaNet's sizes."""
    sizes = {
        "key_heads": fields.needed("linear_num_key_heads"),
        "key_dim": fields.needed("linear_key_head_dim"),
        "value_heads": fields.needed("linear_num_value_heads"),
        "value_dim": fields.needed("linear_value_head_dim"),
        "kernel": fields.needed("linear_conv_kernel_dim"),
    }
    return {"mixers": {OTHER: {"kind": "gated-delta", **sizes}}}


def olmo_delta(fields: HubFields) -> dict[str, Any]:
    """Read Gated DeltaNet's sizes of OLMo Hybrid, whose defaults follow from the attention's."""
    heads = fields.needed("num_attention_heads")
    key_heads = fields.whole("linear_num_key_heads") or heads
    key = fields.whole("linear_key_head_dim") or int(0.75 * fields.needed("hidden_size") / key_heads)
    sizes = {
        "key_heads": key_heads,
        "key_dim": key,
        "value_heads": fields.whole("linear_num_value_heads") or heads,
        "value_dim": fields.whole("linear_value_head_dim") or 2 * key,
        "kernel": fields.needed("linear_conv_kernel_dim"),
    }
    return {"mixers": {OTHER: {"kind": "gated-delta", **sizes}}}


def kimi_linear(fields: HubFields) -> dict[str, Any]:
    """Read Kimi Linear's layers: their kinds are in ``linear_attn_config``, whose layers count from 1."""
    layers = fields.needed("num_hidden_layers")
    mixers = letters(fields, "layer_types", _TYPES)
    if mixers is None:
        whole = fields.items("linear_attn_config.full_attn_layers")
        if not whole:
            raise fields.missing_fields_error(["layer_types"])
        mixers = [ATTENTION if layer + 1 in whole else OTHER for layer in range(layers)]
    sizes = {
        "delta_heads": fields.whole("linear_attn_config.num_heads") or fields.needed("linear_num_heads"),
        "head_dim": fields.whole("linear_attn_config.head_dim") or fields.needed("linear_head_dim"),
        "kernel": fields.whole("linear_attn_config.short_conv_kernel_size") or fields.needed("linear_conv_kernel_dim"),
        "full_gate": fields.switch("linear_attn_config.use_full_rank_gate"),
    }
    return {"mixer_letters": mixers, "mixers": {OTHER: {"kind": "kimi-delta", **sizes}}}


def bailing_hybrid(fields: HubFields) -> dict[str, Any]:
    """Read the Kimi Delta Attention of Ling, with full projections for decay and gate."""
    kernel = fields.whole("linear_conv_kernel_dim")
    sizes = {
        "delta_heads": fields.whole("linear_num_heads") or fields.needed("num_attention_heads"),
        "head_dim": fields.whole("linear_head_dim") or fields.needed("head_dim"),
        "kernel": fields.whole("short_conv_kernel_size") or kernel,
        "full_gate": True,
        "full_decay": True,
    }
    return {"mixers": {OTHER: {"kind": "kimi-delta", **sizes}}}


def mamba(fields: HubFields) -> dict[str, Any]:
    """Read Mamba-2's sizes under the names of Bamba and Granite."""
    heads = fields.needed("mamba_n_heads")
    dim, expand = fields.value("mamba_d_head"), fields.whole("mamba_expand") or 2
    if not isinstance(dim, int):
        dim = expand * fields.needed("hidden_size") // heads
    sizes = {
        "state_heads": heads,
        "head_dim": dim,
        "groups": fields.needed("mamba_n_groups"),
        "state_dim": fields.needed("mamba_d_state"),
        "kernel": fields.needed("mamba_d_conv"),
        "conv_bias": fields.switch("mamba_conv_bias"),
        "bias": fields.switch("mamba_proj_bias"),
    }
    return {"mixers": {OTHER: {"kind": "mamba-2", **sizes}}}


_SIZES: Mapping[str, Rule] = {
    "gated_delta": gated_delta,
    "olmo_delta": olmo_delta,
    "bailing_hybrid": bailing_hybrid,
    "mamba": mamba,
}
"""Rules for the sizes of the mixers of :func:`interleaved`."""


def bamba(fields: HubFields) -> dict[str, Any]:
    """Read Bamba's layers: Mamba-2 in all but those in ``attn_layer_indices``."""
    whole = fields.items("attn_layer_indices")
    mixers = letters(fields, "layers_block_type", _TYPES) or [
        ATTENTION if layer in whole else OTHER for layer in range(fields.needed("num_hidden_layers"))
    ]
    return {"mixer_letters": mixers, **mamba(fields)}


def granite_hybrid(fields: HubFields) -> dict[str, Any]:
    """Read Granite 4's FFNs: shared experts in every layer, which alone are a dense FFN, and routed ones."""
    shared, experts = fields.needed("shared_intermediate_size"), fields.whole("num_local_experts") or 0
    if not experts:
        return {"ffn": shared}
    return {
        "experts": experts,
        "topk": fields.needed("num_experts_per_tok"),
        "moe_ffn": fields.needed("intermediate_size"),
        "shared_ffn": shared,
    }


_NEMOTRON = {"M": (OTHER, ""), "*": (ATTENTION, ""), "-": ("", DENSE), "E": ("", EXPERTS)}
_NEMOTRON_TYPES = {
    "mamba": "M",
    "linear_attention": "M",
    "attention": "*",
    "full_attention": "*",
    "mlp": "-",
    "moe": "E",
}


def nemotron_hybrid(fields: HubFields) -> dict[str, Any]:
    """Read Nemotron-H's layers, each a mixer or an FFN alone, from ``hybrid_override_pattern`` or its list of types."""
    text = fields.value("hybrid_override_pattern")
    symbols: Sequence[str] = (
        text
        if isinstance(text, str)
        else letters(fields, "layers_block_type", _NEMOTRON_TYPES, len(fields.items("layers_block_type"))) or ""
    )
    if not symbols:
        raise fields.missing_fields_error(["hybrid_override_pattern"])
    stray = next((symbol for symbol in symbols if symbol not in _NEMOTRON), None)
    if stray is not None:
        raise fields.wrong_value_error("hybrid_override_pattern", f"M, *, - and E, not {stray!r}")
    sizes = {
        "state_heads": fields.needed("mamba_num_heads"),
        "head_dim": fields.needed("mamba_head_dim"),
        "groups": fields.needed("n_groups"),
        "state_dim": fields.needed("ssm_state_size"),
        "kernel": fields.needed("conv_kernel"),
        "conv_bias": fields.switch("use_conv_bias"),
        "bias": fields.switch("use_bias"),
    }
    document: dict[str, Any] = {
        "layers": len(symbols),
        "mixer_letters": [_NEMOTRON[symbol][0] for symbol in symbols],
        "ffn_letters": [_NEMOTRON[symbol][1] for symbol in symbols],
        "rope_theta": None,
    }
    # NVIDIA's recipes predict two further tokens with one layer: mtp_num_layers 2 and mtp_use_repeated_layer.
    if further := fields.whole("num_nextn_predict_layers"):
        document |= {"mtp": 1, "mtp_passes": max(2, further)}
    if "M" in symbols:
        document["mixers"] = {OTHER: {"kind": "mamba-2", **sizes}}
    if "E" in symbols:
        document |= {
            "experts": fields.needed("n_routed_experts"),
            "topk": fields.needed("num_experts_per_tok"),
            "moe_ffn": fields.needed("moe_intermediate_size"),
            "shared_ffn": fields.whole("moe_shared_expert_intermediate_size") or 0,
            "router_bias": True,
            "router_score": "sigmoid",
            "moe_latent": fields.whole("moe_latent_size"),
        }
    return document


def short_convolutions(fields: HubFields) -> dict[str, Any]:
    """Read LFM2's layers: attention in ``full_attn_idxs`` or where ``layer_types`` says, short convolutions elsewhere."""
    mixers, whole = letters(fields, "layer_types", _TYPES), fields.items("full_attn_idxs")
    if mixers is None:
        mixers = [ATTENTION if layer in whole else OTHER for layer in range(fields.needed("num_hidden_layers"))]
    if OTHER not in mixers:
        return {}
    sizes = {
        "filters": fields.needed("hidden_size"),
        "kernel": fields.needed("conv_L_cache"),
        "bias": fields.switch("conv_bias"),
    }
    return {"mixer_letters": mixers, "mixers": {OTHER: {"kind": "short-convolution", **sizes}}}


def adjusted_ffn(fields: HubFields) -> dict[str, Any]:
    """Read LFM2's dense FFN, which takes two thirds of the width in the file, rounded up."""
    width = fields.whole("block_ff_dim") or fields.needed("intermediate_size")
    if not fields.switch("block_auto_adjust_ff_dim"):
        return {"ffn": width}
    step = fields.needed("block_multiple_of") or 1
    multiplier = as_number(fields.value("block_ffn_dim_multiplier"))
    width = int((1 if multiplier is None else multiplier) * int(2 * width / 3))
    return {"ffn": step * -(-width // step)}


def lightning(fields: HubFields) -> dict[str, Any]:
    """Read MiniMax-01's layers: lightning attention where ``attn_type_list`` has 0 or ``layer_types`` says."""
    mixers = letters(fields, "layer_types", _TYPES)
    if mixers is None:
        kinds = fields.items("attn_type_list")
        layers = fields.needed("num_hidden_layers")
        mixers = [ATTENTION if kind == 1 else OTHER for kind in kinds] or [
            OTHER if layer % 2 else ATTENTION for layer in range(layers)
        ]
        if len(mixers) != layers:
            raise fields.wrong_value_error("attn_type_list", "a number for each layer")
    heads = fields.needed("num_attention_heads")
    dim = fields.whole("head_dim") or fields.needed("hidden_size") // heads
    mixer = {"kind": "lightning", "linear_heads": heads, "head_dim": dim}
    return {"mixer_letters": mixers, "mixers": {OTHER: mixer}}


def indexed_attention(fields: HubFields) -> dict[str, Any]:
    """Read latent attention with an indexer; layers whose indexer is ``shared`` read the keys of an earlier one."""
    document = latent_attention(fields)
    document["sparse"] = {
        "heads": fields.needed("index_n_heads"),
        "dim": fields.needed("index_head_dim"),
        "keys": fields.needed("index_topk"),
    }
    mixers = letters(fields, "indexer_types", {"full": ATTENTION, "shared": SHARED})
    pattern = fields.value("index_topk_pattern")
    if mixers is None and isinstance(pattern, str):
        mixers = [ATTENTION if symbol == "F" else SHARED for symbol in pattern]
    if mixers is None:
        step, offset = fields.whole("index_topk_freq") or 1, fields.whole("index_skip_topk_offset")
        offset = 2 if offset is None else offset
        layers = range(fields.needed("num_hidden_layers"))
        mixers = [ATTENTION if max(layer - offset + 1, 0) % step == 0 else SHARED for layer in layers]
    return {**document, "mixer_letters": mixers} if SHARED in mixers else document


def mimo(fields: HubFields) -> dict[str, Any]:
    """Read MiMo-V2's attention: windowed layers have twice the key-value heads, and sinks; values are narrower."""
    mixers = letters(fields, "layer_types", _TYPES)
    if mixers is None:
        mixers = [WINDOWED if number else ATTENTION for number in fields.items("hybrid_layer_pattern")]
    heads = {
        "heads": fields.whole("swa_num_attention_heads"),
        "kv_heads": fields.whole("swa_num_key_value_heads") or 2 * fields.needed("num_key_value_heads"),
        "head_dim": fields.whole("swa_head_dim"),
        "value_head_dim": fields.whole("swa_v_head_dim"),
        "attention_sinks": True,
    }
    return {
        "mixer_letters": mixers,
        "value_head_dim": fields.needed("v_head_dim"),
        "windowed_heads": {key: value for key, value in heads.items() if value is not None},
    }


def heads_by_layer(fields: HubFields) -> dict[str, Any]:
    """Read Laguna's numbers of heads of each layer, which differ between windowed layers and the others.

    Raises
    ------
    InputError
        If they differ otherwise.
    """
    heads, mixers = fields.items("num_attention_heads_per_layer"), letters(fields, "layer_types", _TYPES)
    if not heads or mixers is None:
        return {}
    whole = [number for number in heads if isinstance(number, int)]
    by_mixer = {
        mixer: {number for number, other in zip(whole, mixers, strict=False) if other == mixer} for mixer in mixers
    }
    if not len(heads) == len(whole) == len(mixers) or any(len(numbers) > 1 for numbers in by_mixer.values()):
        raise fields.wrong_value_error(
            "num_attention_heads_per_layer", "one number for windowed layers, and one for the others"
        )
    (usual,) = by_mixer.get(ATTENTION) or by_mixer[WINDOWED]
    (windowed,) = by_mixer.get(WINDOWED, {usual})
    return {"heads": usual, "windowed_heads": None if windowed == usual else {"heads": windowed}}


_COMPRESSED = {
    "sliding_attention": "L",
    "compressed_sparse_attention": "C",
    "heavily_compressed_attention": "G",
}


def compressed_attention(fields: HubFields) -> dict[str, Any]:
    """Read DeepSeek-V4's layers: windows alone (``L``), or with compressed keys, selected (``C``) or all of them (``G``)."""
    layers = fields.needed("num_hidden_layers")
    selective = fields.whole("compress_rates.compressed_sparse_attention") or 4
    heavy = fields.whole("compress_rates.heavily_compressed_attention") or 128
    mixers = letters(fields, "layer_types", _COMPRESSED)
    if mixers is None:
        rates = fields.items("compress_ratios")[:layers]
        mixers = ["L" if not rate else "C" if rate == selective else "G" for rate in rates]
    if len(mixers) != layers:
        raise fields.missing_fields_error(["layer_types"])
    common = {
        "kind": "compressed-attention",
        "query_heads": fields.needed("num_attention_heads"),
        "head_dim": fields.needed("head_dim"),
        "query_rank": fields.needed("q_lora_rank"),
        "groups": fields.needed("o_groups"),
        "group_rank": fields.needed("o_lora_rank"),
        "window": fields.needed("sliding_window"),
    }
    index = {
        "index_heads": fields.needed("index_n_heads"),
        "index_dim": fields.needed("index_head_dim"),
        "keys": fields.needed("index_topk"),
    }
    kinds = {"L": common, "C": {**common, "rate": selective, **index}, "G": {**common, "rate": heavy}}
    hashed = fields.whole("num_hash_layers") or 0
    ffns = letters(fields, "mlp_layer_types", _FFNS) or [
        HASHED if layer < hashed else EXPERTS for layer in range(layers)
    ]
    width = fields.needed("moe_intermediate_size")
    return {
        "mixer_letters": mixers,
        "ffn_letters": ffns,
        "mixers": {letter: kinds[letter] for letter in kinds if letter in mixers},
        "streams": fields.whole("hc_mult") or 1,
        "experts": fields.needed("n_routed_experts"),
        "topk": fields.needed("num_experts_per_tok"),
        "moe_ffn": width,
        "shared_ffn": width * (fields.whole("n_shared_experts") or 0),
        "mtp": fields.whole("num_nextn_predict_layers") or 0,
    }
