"""Short form of a model's shape, a flat mapping with short keys for YAML files; published models by name."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from importlib.resources import files
from math import isfinite
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pipeplan.extensions.planning.workload.components import (
    Experts,
    LatentAttention,
    MixerOfModel,
    SparseAttention,
    WindowedHeads,
)
from pipeplan.extensions.planning.workload.details import Details, RotaryScaling
from pipeplan.extensions.planning.workload.mixers import described, mixer_from
from pipeplan.extensions.planning.workload.pattern import read_pattern, write_pattern
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.foundation.registry import Registry


def _keys(record: type, left_out: Collection[str] = (), **others: str) -> dict[str, str]:
    """Return the field of a record by its key in the short form: the field's own name, or another key by field."""
    return {others.get(field.name, field.name): field.name for field in fields(record) if field.name not in left_out}


_SHAPE = _keys(
    ModelShape,
    left_out=("experts", "latent", "sparse", "windowed_heads", "mixers", "details"),
    vocabulary="vocab",
    tied_embeddings="tied",
    residual_streams="streams",
    mtp_layers="mtp",
    trained_sequence="seq",
)
_EXPERTS = _keys(
    Experts,
    count="experts",
    top_k="topk",
    width="moe_ffn",
    shared_width="shared_ffn",
    leading_dense_layers="dense_layers",
    every="moe_every",
    latent_width="moe_latent",
    groups="expert_groups",
)
_LATENT = _keys(
    LatentAttention,
    query_rank="q_lora",
    key_value_rank="kv_lora",
    nope_dim="qk_nope",
    rope_dim="qk_rope",
    value_dim="v",
)
_SPARSE = _keys(SparseAttention, index_heads="heads", index_dim="dim")
_WINDOWED = _keys(WindowedHeads)
_SCALING = _keys(RotaryScaling, low_frequency="low", high_frequency="high")
_DETAILS = _keys(Details, left_out=("rotary_scaling",))
_COUNTED = frozenset({"parameters", "active_parameters", "mtp_unknown"})
"""Keys in tables of runs that are ignored: they describe a model beyond its shape."""

_NEEDED_OF_EXPERTS = ("experts", "topk", "moe_ffn")

KEYS = (*_SHAPE, *_EXPERTS, "mla", "sparse", "windowed_heads", "mixers", *_DETAILS, "rope_scaling")
"""Keys of the short form, in the order of display."""


def shape_from(document: Mapping[str, Any]) -> ModelShape:
    """Return a model's shape from its short form.

    The keys are those of :data:`KEYS`; ``mla`` holds ``q_lora``, ``kv_lora``, ``qk_nope``, ``qk_rope`` and ``v``. Required
    are ``name``, ``layers``, ``hidden``, ``heads`` and ``vocab``; experts also need ``experts``, ``topk`` and ``moe_ffn``,
    latent attention all of its keys. ``sparse`` holds ``heads``, ``dim`` and ``keys`` of an indexer, ``windowed_heads`` what
    differs in windowed layers, ``rope_scaling`` the scaling of rotary positions, and ``mixers`` other mixers by their
    letters in ``pattern``, each with its ``kind`` and sizes (``mixers``). The keys of details are the
    fields of ``Details``. A model with an ungated FFN and tied embeddings is like GPT-2: by
    default it has LayerNorm, biases and ``seq`` learned positions. With an ungated FFN alone, the default is LayerNorm.

    Raises
    ------
    InputError
        If a key is missing, of the wrong type, or contradicts another; ``field`` names it.
    UnknownNameError
        If a key is not part of the short form.
    """
    name = f"the model {document['name']}" if document.get("name") else "the model"
    entries = {key: value for key, value in document.items() if value is not None and key not in _COUNTED}
    for key in entries:
        if key not in KEYS:
            raise UnknownNameError(f"key of {name}", str(key), KEYS, field=str(key))
    values = _values(ModelShape, _SHAPE, entries, name)
    if "learned_positions" in document:
        values["learned_positions"] = document["learned_positions"]
    return ModelShape(
        **{
            **_usual(values),
            **values,
            "experts": _experts(entries, name),
            "latent": _part(LatentAttention, _LATENT, "mla", entries, name),
            "sparse": _part(SparseAttention, _SPARSE, "sparse", entries, name),
            "windowed_heads": _part(WindowedHeads, _WINDOWED, "windowed_heads", entries, name),
            "mixers": _mixers(entries, name),
            "details": Details(
                **_values(Details, _DETAILS, entries, name),
                rotary_scaling=_part(RotaryScaling, _SCALING, "rope_scaling", entries, name),
            ),
        }
    )


def _usual(values: Mapping[str, Any]) -> dict[str, Any]:
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
    if any(key in document for key in _NEEDED_OF_EXPERTS):
        return Experts(**_values(Experts, _EXPERTS, document, f"the experts of {name}"))
    stray = next((key for key in _EXPERTS if document.get(key)), None)
    if stray is not None:
        raise InputError(
            f"{stray} needs experts, and {name} has none: add {', '.join(_NEEDED_OF_EXPERTS)}", field=stray
        )
    return None


def _part(record: type, keys: Mapping[str, str], key: str, document: Mapping[str, Any], name: str) -> Any:
    """Return a nested record of the short form, or None without its key."""
    if key not in document:
        return None
    parts = document[key]
    if not isinstance(parts, Mapping):
        raise InputError(f"invalid {key} {parts!r}: expected a mapping with {', '.join(keys)}", field=key)
    parts = {word: value for word, value in parts.items() if value is not None}
    for word in parts:
        if word not in keys:
            raise UnknownNameError(f"key of {key} of {name}", str(word), keys, field=f"{key}.{word}")
    return record(**_values(record, keys, parts, f"{key} of {name}"))


def _values(record: type, keys: Mapping[str, str], document: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the values of a record's fields in a short form. Raises InputError if one without a default is missing.

    A field without a default that may be None is None if it is left out.
    """
    hints = _hints(record)
    without = {field.name for field in fields(record) if field.default is MISSING}
    needed = {field for field in without if NoneType not in get_args(hints[field])}
    missing = [key for key, field in keys.items() if field in needed and key not in document]
    if missing:
        raise InputError(
            f"{what} lacks {', '.join(missing)}: write its shape, or the name of a known model", field=missing[0]
        )
    values = {field: _value(key, document[key], hints[field]) for key, field in keys.items() if key in document}
    return dict.fromkeys(without - needed) | values


def _mixers(document: Mapping[str, Any], name: str) -> tuple[MixerOfModel, ...]:
    """Return the mixers of the short form, by their letters."""
    mixers = document.get("mixers", {})
    if not isinstance(mixers, Mapping) or not all(isinstance(words, Mapping) for words in mixers.values()):
        raise InputError(f"invalid mixers of {name}: expected a letter with a kind and sizes for each", field="mixers")
    return tuple(described(str(letter), mixer_from(words)) for letter, words in mixers.items())


_hints = cache(get_type_hints)


def _value(key: str, value: Any, hint: Any) -> Any:
    """Return a value of the type that a hint names; the records check integers themselves."""
    kinds = {hint, *get_args(hint)}
    if float in kinds:
        number = as_number(value)
        if number is None:
            raise InputError(f"invalid {key} {value!r}: expected a number", field=key)
        return number
    if bool in kinds and not isinstance(value, bool):
        raise InputError(f"invalid {key} {value!r}: expected true or false", field=key)
    is_text = str in kinds or get_origin(hint) is Literal
    if is_text and not isinstance(value, str):
        raise InputError(f"invalid {key} {value!r}: expected text", field=key)
    return value


def short_form(shape: ModelShape) -> dict[str, Any]:
    """Return a shape's short form without defaults; :func:`shape_from` converts it to the same shape."""
    document = _without_defaults(_SHAPE, shape)
    if not shape.gated:
        # The defaults of GPT-2-like models depend on other keys, so these are always written.
        document |= {key: getattr(shape, _SHAPE[key]) for key in ("norm", "bias_qkv", "bias_all", "learned_positions")}
    if shape.experts is not None:
        document |= _without_defaults(_EXPERTS, shape.experts)
    if shape.latent is not None:
        document["mla"] = {key: getattr(shape.latent, field) for key, field in _LATENT.items()}
    for key, keys, part in (
        ("sparse", _SPARSE, shape.sparse),
        ("windowed_heads", _WINDOWED, shape.windowed_heads),
        ("rope_scaling", _SCALING, shape.details.rotary_scaling),
    ):
        if part is not None:
            document[key] = _without_defaults(keys, part)
    if shape.mixers:
        document["mixers"] = {mixer.letter: {"kind": mixer.kind, **dict(mixer.sizes)} for mixer in shape.mixers}
    document |= _without_defaults(_DETAILS, shape.details)
    return {key: document[key] for key in KEYS if key in document}


def as_number(value: Any) -> float | None:
    """Return a number as it is, integers as int, and one that YAML reads as text (``1e-5``); None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(value, bool) or not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _without_defaults(keys: Mapping[str, str], part: Any) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(part)}
    return {key: getattr(part, field) for key, field in keys.items() if getattr(part, field) != defaults[field]}


_RELEASES = ("basehf", "base", "instruct", "chat", "hf", "pt", "it")
"""Suffixes of release names that have the shape of the model before the suffix."""

_WELL_KNOWN = ("llama3-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b", "gpt3-175b")
"""Names shown as examples."""


def model_names() -> tuple[str, ...]:
    """Return the names of the known models, sorted; :func:`model` also accepts other spellings and release names."""
    return tuple(sorted(MODELS))


def model(name: str) -> ModelShape:
    """Return the shape of a published model.

    Parameters
    ----------
    name
        Name such as ``llama3-70b``; letter case, blanks, underscores, dashes and the publisher before a slash do not matter.

    Raises
    ------
    UnknownNameError
        If the name is unknown; names the nearest one.
    """
    shape = known_model(name)
    if shape is None:
        raise unknown_model(name)
    return shape


def unknown_model(name: str) -> UnknownNameError:
    """Return the error for an unknown name, with the nearest name or, if none is near, some examples."""
    error = UnknownNameError("model", name, model_names(), field="model")
    if "did you mean" not in str(error):
        some = ", ".join(_WELL_KNOWN)
        error.args = (
            f"{str(error).rpartition('; ')[0]}; give its config.json, or one of {len(model_names())} names such as {some}",
        )
    return error


def known_model(name: str) -> ModelShape | None:
    """Return the shape of a published model, or None if its name is unknown."""
    record = _record(name)
    return None if record is None else shape_from(record)


@cache
def published_model(model: ModelShape) -> ModelShape | None:
    """Return the published model with a model's network, whatever the names and sources of both; None if there is none."""
    same_name = known_model(model.name)
    for name in (*(() if same_name is None else (same_name.name,)), *model_names()):
        shape = known_model(name)
        if shape is not None and shape == replace(
            model, name=shape.name, source=shape.source, trained_sequence=shape.trained_sequence
        ):
            return shape
    return None


def from_dict(document: Mapping[str, Any]) -> ModelShape:
    """Return a model's shape from its short form (:func:`shape_from`), completed from a published model of its name.

    ``{"name": "llama3-8b", "seq": 32768}`` is that model with longer sequences, and ``grok-1, 2 layers`` is a shortened
    ``grok-1``. There are as many learned positions as tokens in a sequence. If ``layers`` is given, there are no MTP layers
    unless ``mtp`` is given, because many trainers leave them out.

    Raises
    ------
    InputError, UnknownNameError
        As for :func:`shape_from`.
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
        if "pattern" in record and "pattern" not in overrides and isinstance(overrides["layers"], int):
            merged["pattern"] = write_pattern(read_pattern(record["pattern"])[: overrides["layers"]])
    return shape_from(merged)


def _record(name: str) -> dict[str, Any] | None:
    plain = _plain(name)
    release = next((ending for ending in _RELEASES if plain.endswith(ending)), "")
    record = MODELS.find(plain) or (MODELS.find(plain.removesuffix(release)) if release else None)
    return None if record is None else {key: value for key, value in record.items() if key != "aliases"}


def _plain(name: str) -> str:
    """Return a name without characters that people spell in different ways."""
    return "".join(letter for letter in name.strip().lower().rsplit("/", 1)[-1] if letter not in " _-")


def _published() -> Iterable[Mapping[str, Any]]:
    published: list[dict[str, Any]] = json.loads(
        files("pipeplan.extensions.planning.workload").joinpath("models.json").read_text("utf-8")
    )
    return published


MODELS: Registry[Mapping[str, Any]] = Registry(
    "pipeplan.models",
    ModelShape,
    "model",
    _published,
    names=lambda record: (record["name"], *record.get("aliases", ())),
    plain=_plain,
    item=short_form,
)
"""The short form of every published model by its name, then those of registered ones and plugins."""
