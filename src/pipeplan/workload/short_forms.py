"""Short form"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.workload.shape import Experts, LatentAttention, ModelShape

_SHAPE = {
    "name": "name",
    "layers": "layers",
    "hidden": "hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "ffn": "ffn",
    "vocab": "vocabulary",
    "gated": "gated",
    "tied": "tied_embeddings",
    "norm": "norm",
    "norms_a_layer": "norms_a_layer",
    "bias_qkv": "bias_qkv",
    "bias_out": "bias_out",
    "bias_all": "bias_all",
    "qk_norm": "qk_norm",
    "qk_norm_whole": "qk_norm_whole",
    "learned_positions": "learned_positions",
    "norm_epsilon": "norm_epsilon",
    "rope_theta": "rope_theta",
    "attention_sinks": "attention_sinks",
    "sliding_window": "sliding_window",
    "sliding_every": "sliding_every",
    "chunked_windows": "chunked_windows",
    "mtp": "mtp_layers",
    "seq": "trained_sequence",
    "source": "source",
}
_EXPERTS = {
    "experts": "count",
    "topk": "top_k",
    "moe_ffn": "width",
    "shared_ffn": "shared_width",
    "shared_gate": "shared_gate",
    "dense_layers": "leading_dense_layers",
    "moe_every": "every",
    "router_bias": "router_bias",
    "expert_bias": "expert_bias",
    "nodes_a_token": "nodes_a_token",
}
_LATENT = {
    "q_lora": "query_rank",
    "kv_lora": "key_value_rank",
    "qk_nope": "nope_dim",
    "qk_rope": "rope_dim",
    "v": "value_dim",
}
_COUNTED = frozenset({"parameters", "active_parameters", "mtp_unknown"})
"""What tables of runs say of a model beside its shape: nothing is read from it."""

_NUMBERS = frozenset({"norm_epsilon", "rope_theta"})
_TEXTS = frozenset({"name", "source", "norm"})
_SWITCHES = frozenset(
    {
        *("gated", "tied", "bias_qkv", "bias_out", "bias_all", "qk_norm", "qk_norm_whole"),
        *("attention_sinks", "chunked_windows", "shared_gate", "router_bias", "expert_bias"),
    }
)
_NEEDED = ("name", "layers", "hidden", "heads", "vocab")
_NEEDED_OF_EXPERTS = ("experts", "topk", "moe_ffn")
_NEEDED_OF_LATENT = ("kv_lora", "qk_nope", "qk_rope", "v")

KEYS = (*_SHAPE, *_EXPERTS, "mla")
"""Of the short form, in the order in which it is shown."""


def shape_from(document: Mapping[str, Any]) -> ModelShape:
    """Return a model's shape from its short form.

    The keys are those of :data:`KEYS`; ``mla`` holds ``q_lora``, ``kv_lora``, ``qk_nope``, ``qk_rope`` and ``v``. ``name``,
    ``layers``, ``hidden``, ``heads`` and ``vocab`` are needed, and what a model has of experts (``experts``, ``topk``,
    ``moe_ffn``) or latent attention as a whole. An FFN without a gate and tied embeddings make a model of GPT-2's kind: it
    has LayerNorm, biases and as many learned positions as ``seq`` unless they are given; an FFN without a gate alone has
    LayerNorm.

    Raises
    ------
    InputError
        For a key that is missing, of the wrong type, or contradicts another; ``field`` names it.
    UnknownNameError
        For a key that is none of the short form.
    """
    name = f"the model {document['name']}" if document.get("name") else "the model"
    entries = {key: value for key, value in document.items() if value is not None and key not in _COUNTED}
    for key in entries:
        if key not in KEYS:
            raise UnknownNameError(f"key of {name}", str(key), KEYS, field=str(key))
    _require(entries, _NEEDED, name)
    values = {field: _value(key, entries[key]) for key, field in _SHAPE.items() if key in entries}
    if "learned_positions" in document:
        values["learned_positions"] = document["learned_positions"]
    return ModelShape(
        **{**_usual(values), **values, "experts": _experts(entries, name), "latent": _latent(entries, name)}
    )


def _usual(values: Mapping[str, Any]) -> dict[str, Any]:
    """What models of a kind have that nothing is said about."""
    if values.get("gated", True):
        return {}
    if not values.get("tied_embeddings", False):
        return {"norm": "layer"}
    biases = values.get("norm", "layer") == "layer"
    return {
        "norm": "layer",
        "bias_qkv": biases,
        "bias_all": biases,
        "learned_positions": values.get("trained_sequence"),
    }


def _experts(document: Mapping[str, Any], name: str) -> Experts | None:
    values = {field: _value(key, document[key]) for key, field in _EXPERTS.items() if key in document}
    if not any(key in document for key in _NEEDED_OF_EXPERTS):
        stray = next((key for key in _EXPERTS if document.get(key)), None)
        if stray is not None:
            raise InputError(
                f"{stray} says how experts are, and {name} has none: add {', '.join(_NEEDED_OF_EXPERTS)}",
                field=stray,
            )
        return None
    _require(document, _NEEDED_OF_EXPERTS, f"the experts of {name}")
    return Experts(**values)


def _latent(document: Mapping[str, Any], name: str) -> LatentAttention | None:
    if "mla" not in document:
        return None
    parts = document["mla"]
    if not isinstance(parts, Mapping):
        raise InputError(f"mla is a mapping of {', '.join(_LATENT)}; it is {parts!r}", field="mla")
    parts = {key: value for key, value in parts.items() if value is not None}
    for key in parts:
        if key not in _LATENT:
            raise UnknownNameError(f"key of the latent attention of {name}", str(key), _LATENT, field=f"mla.{key}")
    _require(parts, _NEEDED_OF_LATENT, f"the latent attention (mla) of {name}")
    return LatentAttention(**{"query_rank": None, **{_LATENT[key]: _value(key, parts[key]) for key in parts}})


def _require(document: Mapping[str, Any], keys: tuple[str, ...], what: str) -> None:
    missing = [key for key in keys if key not in document]
    if missing:
        raise InputError(
            f"{what} lacks {', '.join(missing)}: give its shape, or a known model's name", field=missing[0]
        )


def _value(key: str, value: Any) -> Any:
    """A value of a key's type; whole numbers are checked by the shape itself."""
    if key in _NUMBERS:
        number = as_number(value)
        if number is None:
            raise InputError(f"{key} is a number; it is {value!r}", field=key)
        return number
    kind, wanted = (
        (str, "a text") if key in _TEXTS else (bool, "true or false") if key in _SWITCHES else (object, "anything")
    )
    if not isinstance(value, kind):
        raise InputError(f"{key} is {wanted}; it is {value!r}", field=key)
    return value


def short_form(shape: ModelShape) -> dict[str, Any]:
    """A shape's short form: what stands at its default is left out, and :func:`shape_from` makes the same shape of it."""
    document = _told(_SHAPE, shape)
    if not shape.gated:
        # What a model of GPT-2's kind has by itself is said either way.
        document |= {key: getattr(shape, _SHAPE[key]) for key in ("norm", "bias_qkv", "bias_all", "learned_positions")}
    if shape.experts is not None:
        document |= _told(_EXPERTS, shape.experts)
    if shape.latent is not None:
        document["mla"] = {key: getattr(shape.latent, field) for key, field in _LATENT.items()}
    return {key: document[key] for key in KEYS if key in document}


def as_number(value: Any) -> float | None:
    """Return a number as it is, whole ones as integers, and one that YAML reads as text (``1e-5``); None for others."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(value, bool) or not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _told(keys: Mapping[str, str], part: Any) -> dict[str, Any]:
    """What of a part does not stand at its default."""
    defaults = {field.name: field.default for field in fields(part)}
    return {key: getattr(part, field) for key, field in keys.items() if getattr(part, field) != defaults[field]}


_RELEASES = ("basehf", "base", "instruct", "chat", "hf", "pt", "it")
"""How names of releases end that have the shape of the model before it."""

_WELL_KNOWN = ("llama3-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b", "gpt3-175b")
"""Names that say how the others are."""


def model_names() -> tuple[str, ...]:
    """Return the names of the known models, sorted; :func:`model` also takes other spellings and names of releases."""
    return tuple(sorted(_records()))


def model(name: str) -> ModelShape:
    """Return a published model's shape.

    Parameters
    ----------
    name
        Such as ``llama3-70b``; letter case, blanks, underscores, dashes and the publisher before a slash do not matter.

    Raises
    ------
    UnknownNameError
        If nobody knows it; the message names the nearest one.
    """
    shape = known_model(name)
    if shape is None:
        raise unknown_model(name)
    return shape


def unknown_model(name: str) -> UnknownNameError:
    """The error for a name that nobody knows: the nearest one; where none is near, some, as all would fill a page."""
    error = UnknownNameError("model", name, model_names(), field="model")
    if "did you mean" not in str(error):
        some = ", ".join(_WELL_KNOWN)
        error.args = (
            f"{str(error).rpartition('; ')[0]}; give its config.json, or one of {len(model_names())} names such as {some}",
        )
    return error


def known_model(name: str) -> ModelShape | None:
    """A published model's shape, or None where nobody knows its name."""
    record = _record(name)
    return None if record is None else shape_from(record)


def from_dict(document: Mapping[str, Any]) -> ModelShape:
    """A model's shape from its short form (:func:`shape_from`).

    What it does not say is taken from the published model whose name it has: ``{"name": "llama3-8b", "seq": 32768}`` is
    that model with longer sequences, and what is called ``grok-1, 2 layers`` is a cut of ``grok-1``. Learned positions are
    as many as a sequence has tokens. Where ``layers`` is given, so are MTP layers, or there are none: trainers leave them
    out as they like.

    Raises
    ------
    InputError, UnknownNameError
        As :func:`shape_from` does.
    """
    name = document.get("name")
    record = _record(name.split(",")[0]) if isinstance(name, str) else None
    if record is None:
        return shape_from(document)
    overrides = {key: value for key, value in document.items() if value is not None}
    merged = {**record, **overrides}
    if record.get("learned_positions") and "seq" in overrides and "learned_positions" not in overrides:
        merged["learned_positions"] = overrides["seq"]
    if "layers" in overrides:
        merged["mtp"] = overrides.get("mtp", 0)
    return shape_from(merged)


def _record(name: str) -> dict[str, Any] | None:
    plain = _plain(name)
    release = next((ending for ending in _RELEASES if plain.endswith(ending)), "")
    official = _spellings().get(plain) or _spellings().get(plain.removesuffix(release))
    return None if official is None else _records()[official]


def _plain(name: str) -> str:
    """A name without what people spell in different ways."""
    return "".join(letter for letter in name.strip().lower().rsplit("/", 1)[-1] if letter not in " _-")


@cache
def _published() -> list[dict[str, Any]]:
    return list(json.loads(files("pipeplan.workload").joinpath("models.json").read_text(encoding="utf-8")))


@cache
def _records() -> dict[str, dict[str, Any]]:
    return {
        record["name"]: {key: value for key, value in record.items() if key != "aliases"} for record in _published()
    }


@cache
def _spellings() -> dict[str, str]:
    """The name of a preset by record of its names, plainly spelled."""
    return {
        _plain(name): record["name"] for record in _published() for name in (record["name"], *record.get("aliases", ()))
    }
