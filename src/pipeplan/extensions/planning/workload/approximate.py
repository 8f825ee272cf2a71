"""Config.json of an unknown architecture in the fields of the nearest modelled one.

Makers name the same sizes differently: the number of experts has six names, and their width is ``moe_intermediate_size`` or
that of the FFN. ``config_fields.toml`` has the names. A field that may state a size and that the nearest architecture does
not read is a reason to refuse the approximation: the model could have any number of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeplan.extensions.planning.workload.hub_details import TABLES
from pipeplan.extensions.planning.workload.shape import check_layers
from pipeplan.foundation.errors import InputError

_EXPERTS: Mapping[str, list[str]] = TABLES["approximate"]["experts"]

_SIZES = re.compile("|".join(TABLES["approximate"]["sizes"]))

_ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function")
_GATED = ("silu", "swish", "swiglu", "gelu_pytorch_tanh")
"""Activations of FFNs with three matrices in all architectures of Transformers; of others some have two."""


def in_usual_fields(config: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a config with its experts in the fields of Qwen and DeepSeek, and the fields that this reads.

    Kinds of single layers are dropped: an approximation takes them from the nearest architecture. Sizes that a file leaves
    out have defaults that only its own architecture knows.

    Raises
    ------
    InputError
        If a size that matters is left out: key and value heads, activation, or the number of experts, their width or their
        number per token, or which layers have them.
    """
    stated = {
        "num_key_value_heads": "num_key_value_heads" in config or "kv_lora_rank" in config,
        "hidden_act": any(config.get(name) for name in _ACTIVATIONS),
    }
    missing = [name for name, known in stated.items() if not known]
    if missing:
        raise InputError(f"it does not state {', '.join(missing)}", field=missing[0])
    if "vision_config" in config:
        raise InputError("it does not say which part of it is the language model", field="vision_config")
    usual = {field: value for field, value in config.items() if field not in ("layer_types", "layers_block_type")}
    read = frozenset(name for names in _EXPERTS.values() for name in names)
    experts = _size(config, "count")
    off = any(config.get(name) is False for name in _EXPERTS["switch"])
    if not experts and not off and (_size(config, "topk") or _size(config, "width")):
        raise InputError("the number of its experts is unknown", field="num_experts")
    if not experts or off:
        return {field: value for field, value in usual.items() if field not in read}, read
    layers, topk = config.get("num_hidden_layers"), _size(config, "topk")
    width, dense_width = _size(config, "width"), _size(config, "dense_width")
    if not (isinstance(layers, int) and topk and width):
        raise InputError(f"its {experts} experts have no width or no number per token", field="moe_intermediate_size")
    placed = ("leading", "step", "listed")
    if config.get("intermediate_size") and not any(
        config.get(name) is not None for what in placed for name in _EXPERTS[what]
    ):
        raise InputError("it does not state which layers have experts", field="mlp_layer_types")
    check_layers(layers)  # they are listed one by one
    dense = _dense_layers(config, layers)
    shared = _size(config, "shared_width") or width * (_size(config, "shared_count") or 0)
    leading = len(dense) if dense == list(range(len(dense))) else None
    return {
        **{field: value for field, value in usual.items() if field not in read},
        **({"intermediate_size": dense_width} if dense_width else {}),
        **({} if leading is None else {"n_routed_experts": experts, "first_k_dense_replace": leading}),
        "num_experts": experts,
        "num_experts_per_tok": topk,
        "moe_intermediate_size": width,
        "moe_shared_expert_intermediate_size": shared,
        "shared_expert_intermediate_size": shared,
        "n_shared_experts": shared // width,
        "decoder_sparse_step": 1,
        "mlp_only_layers": dense,
    }, read


def _size(config: Mapping[str, Any], what: str) -> int | None:
    """Return the first integer among the fields of a size; a list of equal ones is that integer.

    Raises InputError for a list of others.
    """
    for name in _EXPERTS[what]:
        value = config.get(name)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if isinstance(value, list):
            raise InputError(f"{name} differs between layers", field=name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _dense_layers(config: Mapping[str, Any], layers: int) -> list[int]:
    """Return the layers without experts."""
    for name in _EXPERTS["listed"]:
        listed = config.get(name)
        if not isinstance(listed, list) or not listed:
            continue
        if name in ("mlp_only_layers", "moe_layers", "moe_layers_enum"):
            if not all(isinstance(layer, int) for layer in listed):
                raise InputError(f"{name} has no numbers of layers", field=name)
            return sorted(listed) if name == "mlp_only_layers" else sorted({*range(layers)} - {*listed})
        kinds = {"dense": True, 0: True, "sparse": False, "moe": False, 1: False}
        if len(listed) != layers or not all(isinstance(kind, str | int) and kind in kinds for kind in listed):
            raise InputError(f"{name} does not say which of {layers} layers have experts", field=name)
        return [layer for layer, kind in enumerate(listed) if kinds[kind]]
    leading, step = _size(config, "leading") or 0, _size(config, "step") or 1
    return [layer for layer in range(layers) if layer < leading or (layer + 1) % step]


def unknown_sizes(config: Mapping[str, Any], unread: Iterable[str]) -> list[str]:
    """Return the fields that may state sizes of layers and that nothing reads, and an activation of unknown matrices."""
    activations = [name for name in _ACTIVATIONS if config.get(name)]
    return [
        *(name for name in activations if config[name] not in _GATED),
        *(name for name in unread if _SIZES.search(name) and _may_be_size(config.get(name.partition(".")[0]))),
    ]


def _may_be_size(value: Any) -> bool:
    return bool(value) and value is not True and value != 1 and not isinstance(value, str | float)
