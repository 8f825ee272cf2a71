"""Fields of a hub's config.json, and rules for fields that single architectures use in their own way.

A rule takes the fields and returns keys of the short form (:mod:`pipeplan.extensions.planning.workload.short_forms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeplan.extensions.planning.workload.pattern import ATTENTION, DENSE, EXPERTS, WINDOWED
from pipeplan.extensions.planning.workload.short_forms import as_number
from pipeplan.foundation.errors import InputError


@dataclass(frozen=True, slots=True)
class HubFields:
    """Fields of a config.json, with the architecture's defaults.

    Attributes
    ----------
    architecture
        Name of the architecture, for messages.
    content
        Fields in the file.
    defaults
        Defaults of the architecture, by field.
    reads
        Fields that rules have read so far.
    """

    architecture: str
    content: Mapping[str, Any]
    defaults: Mapping[str, Any]
    reads: set[str] = field(default_factory=set, compare=False)

    def value(self, field: str) -> Any:
        """Return a field, a nested one (``attn_config.kv_n_heads``), or its default; None if there is neither.

        A null field stays null: only a missing field gets its default.
        """
        value: Any = self.content
        self.reads.update((field, field.partition(".")[0]))
        for part in field.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return self.defaults.get(field)
            value = value[part]
        return value

    def whole(self, field: str) -> int | None:
        """Return an integer >= 0, or None; a list of equal ones, one for each layer, is that integer."""
        value = self.value(field)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong_value_error(field, "an integer >= 0")
        return value

    def needed(self, field: str) -> int:
        """Return an integer that is required."""
        value = self.whole(field)
        if value is None:
            raise self.missing_fields_error([field])
        return value

    def switch(self, field: str) -> bool:
        """Return a boolean; a missing field is False."""
        value = self.value(field)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong_value_error(field, "true or false")
        return value

    def items(self, field: str) -> list[Any]:
        """Return a list; a missing field is empty."""
        value = self.value(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong_value_error(field, "a list")
        return value

    def wrong_value_error(self, field: str, wanted: str) -> InputError:
        """Return the error for a field with a wrong value."""
        shown = repr(self.value(field))
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        return InputError(
            f"invalid {field} {shown} of a {self.architecture} config.json: expected {wanted}", field=field
        )

    def missing_fields_error(self, fields: list[str]) -> InputError:
        """Return the error for missing fields."""
        return InputError(f"config.json of {self.architecture} lacks {', '.join(fields)}", field=fields[0])


Rule = Callable[[HubFields], dict[str, Any]]

_TYPES = {"full_attention": ATTENTION, "sliding_attention": WINDOWED, "chunked_attention": WINDOWED}


def letters(fields: HubFields, field: str, table: Mapping[str, str], layers: int | None = None) -> list[str] | None:
    """Return the letter of each layer's type in a list; None if the file has no such list.

    Raises
    ------
    InputError
        If the list has other layers than the model, or a type that is not modelled.
    """
    types = fields.items(field)
    if not types:
        return None
    layers = fields.needed("num_hidden_layers") if layers is None else layers
    if len(types) != layers:
        raise fields.wrong_value_error(field, f"{layers} types, one for each of num_hidden_layers, not {len(types)}")
    stray = next((word for word in types if not isinstance(word, str) or word not in table), None)
    if stray is not None:
        raise InputError(
            f"layers of type {str(stray)[:40]!r} of {fields.architecture} are not modelled: expected one of "
            f"{', '.join(table)}",
            field=field,
        )
    return [table[word] for word in types]


def attention_biases(fields: HubFields) -> dict[str, Any]:
    """Read ``attention_bias`` (biases of all four projections) and ``mlp_bias`` (also of the FFN).

    Raises
    ------
    InputError
        If only the FFN has biases.
    """
    attention, ffn = fields.switch("attention_bias"), fields.switch("mlp_bias")
    if ffn and not attention:
        raise fields.wrong_value_error("mlp_bias", "true only where attention_bias is, as all published models have it")
    return {"bias_all": True} if ffn else {"bias_qkv": True, "bias_out": True} if attention else {}


_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")
_BASES = (
    "attn_config.rope_theta",
    "rope_parameters.rope_theta",
    "rope_parameters.full_attention.rope_theta",
    "rope_theta",
    "rotary_emb_base",
)
"""In the order of preference: next to DBRX's own field, Transformers saves the default of its other models."""


def norms_and_positions(fields: HubFields) -> dict[str, Any]:
    """Return the epsilon of norms and the base of rotary positions; both cost nothing, so invalid values are ignored."""
    epsilons = [as_number(fields.value(field)) for field in _EPSILONS]
    bases = [as_number(fields.value(field)) for field in _BASES]
    return {
        "norm_epsilon": next((number for number in epsilons if number is not None and 0 < number < 1), None),
        "rope_theta": next((number for number in bases if number is not None and number >= 1), None),
    }


_ROUTING_SCALES = ("routed_scaling_factor", "router_scaling_factor", "route_scale", "moe_routed_scaling_factor")


def routing(fields: HubFields) -> dict[str, Any]:
    """Return how a router weights a token's experts, which costs nothing: invalid values are ignored.

    The fields are DeepSeek's and Qwen's; an architecture's defaults say what its files leave out.
    """
    groups, score = fields.value("n_group"), fields.value("scoring_func")
    scales = [
        number for name in _ROUTING_SCALES if (number := as_number(fields.value(name))) is not None and number > 0
    ]
    normalized = [fields.value(name) for name in ("norm_topk_prob", "moe_renormalize")]
    return {
        "expert_groups": groups if isinstance(groups, int) and groups > 1 else None,
        "router_score": score if score in ("softmax", "sigmoid") else None,
        "normalized_weights": False not in normalized,
        "weight_scale": scales[0] if scales else None,
    }


def where(field: str, **keys: Any) -> Rule:
    """Return a rule for keys of the short form that hold where a switch of the file is on."""
    return lambda fields: keys if fields.switch(field) else {}


def required(*names: str) -> Rule:
    """Return a rule for fields that a file must have."""

    def rule(fields: HubFields) -> dict[str, Any]:
        missing = [name for name in names if fields.value(name) is None]
        if missing:
            raise fields.missing_fields_error(missing)
        return {}

    return rule


def windows(every: int = 1, *, size: str = "sliding_window", pattern: str | None = None) -> Rule:
    """Return a rule for windows of ``size`` tokens in all but every ``every``-th layer.

    ``layer_types`` or ``pattern`` in the file override ``every``.
    """

    def rule(fields: HubFields) -> dict[str, Any]:
        window, mixers = fields.whole(size), letters(fields, "layer_types", _TYPES)
        period = fields.whole(pattern) if pattern else None
        if mixers is None:
            return {"sliding_window": window, "sliding_every": period or every} if window else {}
        if WINDOWED not in mixers:
            return {}
        if not window:
            raise fields.missing_fields_error(["sliding_window"])
        step = mixers.index(ATTENTION) + 1 if ATTENTION in mixers else 1
        regular = [ATTENTION if step > 1 and (layer + 1) % step == 0 else WINDOWED for layer in range(len(mixers))]
        return {
            "sliding_window": window,
            **({"sliding_every": step} if mixers == regular else {"mixer_letters": mixers}),
        }

    return rule


def optional_windows(fields: HubFields) -> dict[str, Any]:
    """Read Qwen's windows: with ``use_sliding_window``, layers from ``max_window_layers`` on are windowed."""
    whole, layers = fields.whole("max_window_layers") or 0, fields.needed("num_hidden_layers")
    window, types = fields.whole("sliding_window"), fields.items("layer_types")
    if not fields.switch("use_sliding_window"):
        return {}
    if types:
        return windows()(fields)
    if 0 < whole < layers and window:
        mixers = [ATTENTION if layer < whole else WINDOWED for layer in range(layers)]
        return {"sliding_window": window, "mixer_letters": mixers}
    return windows()(fields) if whole == 0 else {}


def biases_throughout(fields: HubFields) -> dict[str, Any]:
    """Read GPT-NeoX's biases: every linear layer has one; ``attention_bias`` must not be false.

    Raises
    ------
    InputError
        If it is.
    """
    if not fields.switch("attention_bias"):
        raise fields.wrong_value_error("attention_bias", "true, as all published models have it")
    return {"bias_qkv": True, "bias_all": True}


def learned_positions(field: str, extra: int = 0) -> Rule:
    """Return a rule for learned position embeddings, ``extra`` more than the longest sequence has tokens."""

    def rule(fields: HubFields) -> dict[str, Any]:
        positions = fields.needed(field)
        return {"learned_positions": positions + extra, "seq": positions}

    return rule


def uniform_experts(count: str, top_k: str, width: str, *, shared: str = "", shared_width: str = "") -> Rule:
    """Return a rule for experts in all layers, whose number, top-k and width are in these fields.

    ``shared`` is the field of the number of shared experts of the same width, ``shared_width`` that of their whole width.
    """

    def rule(fields: HubFields) -> dict[str, Any]:
        own = fields.needed(width)
        several = own * (fields.whole(shared) or 0) if shared else 0
        return {
            "experts": fields.needed(count),
            "topk": fields.needed(top_k),
            "moe_ffn": own,
            "shared_ffn": (fields.whole(shared_width) or 0) if shared_width else several,
        }

    return rule


def qwen_experts(fields: HubFields) -> dict[str, Any]:
    """Read Qwen's experts: every ``decoder_sparse_step``-th layer has experts, except those in ``mlp_only_layers``."""
    step, dense = fields.whole("decoder_sparse_step") or 1, fields.items("mlp_only_layers")
    if not all(isinstance(layer, int) for layer in dense):
        raise fields.wrong_value_error("mlp_only_layers", "a list of layers")
    irregular: dict[str, Any] = {}
    if dense and (step > 1 or sorted(dense) != list(range(len(dense)))):
        layers = range(fields.needed("num_hidden_layers"))
        ffns = [DENSE if layer in dense or (layer + 1) % step else EXPERTS for layer in layers]
        irregular = {"ffn_letters": ffns}
    shared = fields.whole("shared_expert_intermediate_size") or 0
    return {
        # Newer releases of Transformers save it under Mixtral's name.
        "experts": fields.whole("num_local_experts") or fields.needed("num_experts"),
        "topk": fields.needed("num_experts_per_tok"),
        "moe_ffn": fields.needed("moe_intermediate_size"),
        "shared_ffn": shared,
        "shared_gate": shared > 0,
        "dense_layers": len(dense),
        "moe_every": step,
        **irregular,
    }


def deepseek_experts(fields: HubFields) -> dict[str, Any]:
    """Read DeepSeek's experts: layers from ``first_k_dense_replace`` on have routed and equally wide shared experts.

    A token uses ``topk_group`` of ``n_group`` groups of experts; each group is on one node (arXiv 2412.19437 section 2.1.2).

    Raises
    ------
    InputError
        If ``moe_layer_freq`` is a period other than 1; a list of it is read with the layers' types.
    """
    frequency = fields.value("moe_layer_freq")
    if frequency not in (None, 1) and not isinstance(frequency, list):
        raise fields.wrong_value_error("moe_layer_freq", "1: every layer after the dense ones has experts")
    width = fields.needed("moe_intermediate_size")
    groups, chosen_groups = fields.whole("n_group") or 1, fields.whole("topk_group") or 1
    limited = chosen_groups < groups and fields.value("topk_method") != "greedy"
    return {
        "experts": fields.needed("n_routed_experts"),
        "topk": fields.needed("num_experts_per_tok"),
        "moe_ffn": width,
        "shared_ffn": width * (fields.whole("n_shared_experts") or 0),
        "dense_layers": fields.whole("first_k_dense_replace") or 0,
        "nodes_a_token": chosen_groups if limited else None,
        "mtp": fields.whole("num_nextn_predict_layers") or 0,
    }


def ernie_experts(fields: HubFields) -> dict[str, Any]:
    """Read ERNIE's experts: layers from ``moe_layer_start_index`` on have routed and equally wide shared experts.

    Raises
    ------
    InputError
        If dense layers are after or between those with experts, or anything has a bias.
    """
    if fields.switch("use_bias"):
        raise fields.wrong_value_error("use_bias", "false, as the published models have it")
    layers, last = fields.needed("num_hidden_layers"), fields.whole("moe_layer_end_index")
    if last is not None and last != layers - 1:
        raise fields.wrong_value_error("moe_layer_end_index", f"the last layer, {layers - 1}")
    if fields.whole("moe_layer_interval") not in (None, 1):
        raise fields.wrong_value_error("moe_layer_interval", "1: every layer after the dense ones has experts")
    width = fields.needed("moe_intermediate_size")
    return {
        "experts": fields.needed("moe_num_experts"),
        "topk": fields.needed("moe_k"),
        "moe_ffn": width,
        "shared_ffn": width * (fields.whole("moe_num_shared_experts") or 0),
        "dense_layers": fields.whole("moe_layer_start_index") or 0,
    }


def separate_biases(fields: HubFields) -> dict[str, Any]:
    """Read Seed-OSS's biases: ``attention_bias`` for q, k and v, ``attention_out_bias`` for the output, no ``mlp_bias``."""
    if fields.switch("mlp_bias"):
        raise fields.wrong_value_error("mlp_bias", "false, as the published models have it")
    return {"bias_qkv": fields.switch("attention_bias"), "bias_out": fields.switch("attention_out_bias")}


def llama4_experts(fields: HubFields) -> dict[str, Any]:
    """Read Llama 4's experts: every ``interleave_moe_layer_step``-th layer has routed experts and a shared one."""
    width, step = fields.needed("intermediate_size"), fields.whole("interleave_moe_layer_step") or 1
    listed, layers = fields.items("moe_layers"), fields.needed("num_hidden_layers")
    return {
        "unread": "moe_layers" if listed and listed != [*range(step - 1, layers, step)] else None,
        "experts": fields.needed("num_local_experts"),
        "topk": fields.needed("num_experts_per_tok"),
        "moe_ffn": width,
        "shared_ffn": width,
        "moe_every": step,
        "ffn": fields.whole("intermediate_size_mlp"),
    }


def latent_attention(fields: HubFields) -> dict[str, Any]:
    """Read multi-head latent attention; a null ``q_lora_rank`` means that queries are not compressed."""
    if fields.switch("attention_bias"):
        raise fields.wrong_value_error("attention_bias", "false, as all published models with latent attention have it")
    return {
        "mla": {
            "q_lora": fields.whole("q_lora_rank"),
            "kv_lora": fields.needed("kv_lora_rank"),
            "qk_nope": fields.needed("qk_nope_head_dim"),
            "qk_rope": fields.needed("qk_rope_head_dim"),
            "v": fields.needed("v_head_dim"),
        },
        "kv_heads": None,
        "head_dim": None,
    }


def mtp(field: str) -> Rule:
    """Return a rule for the number of multi-token prediction layers."""

    def rule(fields: HubFields) -> dict[str, Any]:
        return {"mtp": fields.whole(field) or 0}

    return rule


def falcon(fields: HubFields) -> dict[str, Any]:
    """Read Falcon's two architectures: one norm and one key-value head (7B), or two norms and groups (40B, 180B)."""
    new = fields.switch("new_decoder_architecture")
    heads = fields.needed("num_attention_heads")
    parallel = fields.switch("parallel_attn")
    two = fields.whole("num_ln_in_parallel_attn") in (None, 2) if new else not parallel
    shared = fields.switch("multi_query")
    groups = fields.whole("num_kv_heads") if new else 1 if shared else heads
    return {
        "kv_heads": groups or heads,
        "ffn": fields.whole("ffn_hidden_size") or 4 * fields.needed("hidden_size"),
        "norms_a_layer": 2 if two else 1,
        "parallel_residual": new or parallel,
        **where("bias", bias_qkv=True, bias_all=True)(fields),
    }


def mpt(fields: HubFields) -> dict[str, Any]:
    """Read MPT: neither linear layers nor norms have biases, positions are ALiBi's, and the FFN is a multiple of the width.

    Raises
    ------
    InputError
        If the width of the FFN is not a multiple of the hidden size.
    """
    biases = not fields.switch("no_bias")
    ratio = fields.value("ffn_config.expansion_ratio") or fields.value("expansion_ratio")
    if isinstance(ratio, bool) or not isinstance(ratio, int) or ratio < 1:
        raise fields.wrong_value_error("expansion_ratio", "an integer >= 1")
    embedded = fields.value("learned_pos_emb") is not False
    learned = embedded and not fields.switch("attn_config.alibi") and not fields.switch("attn_config.rope")
    return {
        "ffn": ratio * fields.needed("d_model"),
        "norm": "layer" if biases else "layer-no-bias",
        "bias_qkv": biases,
        "bias_all": biases,
        "learned_positions": fields.needed("max_seq_len") if learned else None,
        "seq": fields.whole("max_seq_len"),
        **where("attn_config.qk_ln", qk_norm_whole=True)(fields),
    }


def constant(**keys: Any) -> Rule:
    """Return a rule for keys that override those of earlier rules."""
    return lambda _: keys


def multi_query(fields: HubFields) -> dict[str, Any]:
    """Read GPT-BigCode's key and value heads: one, or as many as there are heads."""
    return {"kv_heads": 1 if fields.switch("multi_query") else fields.needed("n_head")}


def projected_embeddings(fields: HubFields) -> dict[str, Any]:
    """Leave OPT's embeddings of another width than the model unread."""
    width = fields.value("word_embed_proj_dim")
    return {} if width in (None, fields.value("hidden_size")) else {"unread": "word_embed_proj_dim"}


def minimax_mixers(fields: HubFields) -> dict[str, Any]:
    """Leave MiniMax-M2's other mixers, and layers without norms of queries and keys, unread."""
    kinds, norms = fields.items("attn_type_list"), fields.value("use_qk_norm")
    if norms is False:
        return {"unread": "use_qk_norm"}
    return {"unread": "attn_type_list"} if any(kind != 1 for kind in kinds) else {}
