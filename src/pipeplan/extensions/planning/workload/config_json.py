"""Model shape from an unmodified config.json of a model hub."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning.workload.approximate import in_usual_fields, unknown_sizes
from pipeplan.extensions.planning.workload.architectures import USUAL_FIELDS, Architecture, architectures
from pipeplan.extensions.planning.workload.hub import HubFields, norms_and_positions, routing
from pipeplan.extensions.planning.workload.hub_details import details, unread_fields
from pipeplan.extensions.planning.workload.parameters import parameter_counts
from pipeplan.extensions.planning.workload.pattern import ATTENTION, DENSE, EXPERTS, WINDOWED, joined_forms
from pipeplan.extensions.planning.workload.shape import ModelShape, check_layers
from pipeplan.extensions.planning.workload.short_forms import from_dict, known_model, shape_from, unknown_model
from pipeplan.foundation.documents import other_kind, read_document
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError
from pipeplan.foundation.files import MEBIBYTE

_SIZE_LIMIT = 8 * MEBIBYTE
"""Maximum file size: the longest published files list a format for the weights of each layer."""

_DEEPEST = 30
"""Maximum levels of nesting; published files have up to five."""

_LONGEST_LIST = 400
"""Maximum number of characters of a list of unknown fields."""

_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys under which a multimodal model's config.json contains its language model, which may itself have one of them."""

_SAME_WEIGHTS = frozenset({"fp8", "mxfp4", "compressed-tensors"})
"""Weight formats in which makers publish their models themselves: the shape is the trained one."""

_OTHER_LAYERS = {
    "mamba": "state-space layers without attention",
    "jamba": "state-space layers of type Mamba-1",
    "zamba": "state-space layers with shared attention",
    "falcon_h1": "state-space layers beside attention in one layer",
    "falcon_mamba": "state-space layers of type Mamba-1",
    "rwkv": "linear recurrences",
    "recurrent": "linear recurrences",
    "xlstm": "linear recurrences",
    "longcat_flash": "experts without computation and two attentions in one layer",
    "gemma3n": "embeddings in every layer",
    "gemma4": "embeddings in every layer",
    "minimax_m3": "attention to blocks that an indexer selects",
    "jetmoe": "experts of attention",
    "hrm": "layers that run several times",
    "dory": "layers that run several times",
    "inkling": "short convolutions in attention",
    "zaya": "convolutions in attention",
}
"""Layers that are not modelled and have no nearest architecture, by the start of an architecture's name."""

_MOST_WRONG = 0.05
"""Maximum error of the parameters of an approximation."""

_NEAREST = (
    (("hybrid_override_pattern", "mamba_num_heads"), "nemotron_h"),
    (("kv_lora_rank", "index_n_heads", "n_routed_experts"), "deepseek_v32"),
    (("kv_lora_rank", "n_routed_experts"), "deepseek_v3"),
    (("linear_num_value_heads", "num_experts"), "qwen3_next"),
    (("linear_num_value_heads",), "qwen3_5_text"),
    (("num_experts",), "qwen3_moe"),
    (("intermediate_size",), "llama"),
)
"""Fields by which the nearest architecture of an unknown one is found (``in_usual_fields``), the most specific first."""

_HUB_MARKS = ("model_type", "architectures", "num_hidden_layers", "hidden_size", "n_layer", "n_embd", *_TEXT_PARTS)
"""Fields that identify a config.json: each has at least one of them, and a short form has none."""

_WRITE = "write the model's shape with the keys layers, hidden, heads, kv_heads, ffn, vocab"


@cache
def _by_name() -> Mapping[str, Architecture]:
    """Return the architectures by every ``model_type``."""
    return {name: row for row in architectures() for name in (row.name, *row.also)}


def architecture_names() -> tuple[str, ...]:
    """Return every ``model_type`` whose config.json can be read, sorted."""
    return tuple(sorted(_by_name()))


def read_model(source: str | Path | Mapping[str, Any], *, approximate: bool = False) -> ModelShape:
    """Return a model's shape from a name, a file, a folder or a mapping.

    Parameters
    ----------
    source
        Name of a published model (``model``); a file, which is a hub's config.json or a model's short
        form as YAML, JSON or TOML; a folder with a config.json; or the content of such a file.
    approximate
        As for :func:`read_config`.

    Raises
    ------
    InputError
        As for :func:`read_config`.
    UnknownNameError
        If the source is neither a known model nor a file.
    """
    if isinstance(source, str):
        preset = known_model(source)
        if preset is not None:
            return preset
        path = Path(source)
        if not (
            path.suffix.lower() in {".json", ".yaml", ".yml", ".toml"}
            or "/" in source
            or (source and os.path.exists(path))
        ):
            raise unknown_model(source)
        source = path
    return read_config(source, approximate=approximate)


def read_config(source: str | Path | Mapping[str, Any], *, approximate: bool = False) -> ModelShape:
    """Return a model's shape from a hub's config.json, or from its short form.

    Parameters
    ----------
    source
        File, folder that contains it, or its content. Of a multimodal model only the language model is read.
    approximate
        Whether a model whose layers are not modelled is read as the nearest architecture; ``approximates`` of the shape
        names both.

    Raises
    ------
    InputError
        If the file cannot be read, fields are missing, of the wrong type or contradictory, or the model is not a
        decoder-only transformer; ``field`` names the field.
    FormatError
        If the file is empty or not JSON, YAML or TOML.
    UnknownNameError
        If a key of a short form is unknown.
    """
    if isinstance(source, Mapping):
        return _shape(source, "", approximate)
    path = Path(source)
    file = path / "config.json" if path.is_dir() else path
    document = read_document(file, "model's config.json", limit=_SIZE_LIMIT, constants=True)
    if not isinstance(document, Mapping):
        raise FormatError(f"invalid config.json {file}: expected fields with values {{...}}, not {_kind(document)}")
    if (other := other_kind(document)) and "--model" not in other:
        raise FormatError(f"{file} is not a model: {other}", field="model")
    return _shape(document, file.parent.resolve().name if file.stem == "config" else file.stem, approximate)


def _kind(document: object) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}.get(type(document), "a number")


def _shape(document: Mapping[str, Any], name: str, approximate: bool) -> ModelShape:
    """Return the shape in a file's content; ``name`` is the file's name and may be empty."""
    _require_writable_numbers(document)
    if not any(mark in document for mark in _HUB_MARKS):
        return from_dict(document if "name" in document or not name else {"name": name, **document})
    text = _text_part(document)
    config = document if text is None else text
    _require_readable(document, config)
    kind, near = str(config.get("model_type", "")), None
    if approximate and kind and kind.lower() not in _by_name():
        try:
            near = _nearest(kind, config)
        except InputError as error:
            raise InputError(f"{kind} cannot be approximated: {error}; {_WRITE}", field=error.field) from None
        config = {**near.config, "model_type": near.name}
    row = _architecture(config)
    # Transformers saves the repository's name; without it the file's or the architecture's name is used.
    published = config.get("_name_or_path") or document.get("_name_or_path")
    name = (str(published).rstrip("/").rsplit("/", 1)[-1] if published else name) or row.name
    source = f"config.json of {row.name}" + ("" if text is None else ", its language model alone")
    try:
        shape = {**_short_form(row, config)[0], "name": name, "source": source}
        return shape_from(shape if near is None else {**shape, "approximates": kind, "unread": ""})
    except InputError as error:
        if error.field in config or "config.json" in str(error):
            raise
        raise InputError(f"contradictory config.json of {row.name}: {error}", field=error.field) from None


def _require_writable_numbers(value: Any, field: str = "", depth: int = 0) -> None:
    """Raise InputError for numbers too long for Python to print and for nesting that would exhaust its stack."""
    if depth > _DEEPEST:
        raise InputError("this config.json is nested too deeply", field=field)
    if isinstance(value, int) and value.bit_length() > 64:
        raise InputError(f"invalid {field}: about 10^{value.bit_length() * 3 // 10} is too large", field=field)
    if isinstance(value, Mapping):
        for key, part in value.items():
            _require_writable_numbers(part, str(key), depth + 1)
    elif isinstance(value, list):
        for part in value:
            _require_writable_numbers(part, field, depth + 1)


def _text_part(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the language model in a multimodal model's config; None if the config is a language model's."""
    part = next((document[key] for key in _TEXT_PARTS if isinstance(document.get(key), Mapping)), None)
    if part is None:
        return None
    inherited = ("model_type", "tie_word_embeddings", "vocab_size")
    text = {**{key: document[key] for key in inherited if key in document}, **part}
    return _text_part(text) or text


def _require_readable(document: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Raise InputError unless the model is a decoder-only transformer as it was trained."""
    kind = str(config.get("model_type", ""))
    if document.get("is_encoder_decoder") is True or config.get("is_encoder_decoder") is True:
        raise InputError(
            f"{kind or 'this model'} is an encoder-decoder; only decoder-only transformers are supported",
            field="is_encoder_decoder",
        )
    packed = document.get("quantization_config") or config.get("quantization_config")
    method = packed.get("quant_method") if isinstance(packed, Mapping) else None
    if method is not None and str(method) not in _SAME_WEIGHTS:
        raise InputError(
            f"this model is quantized for inference ({method}): use the config.json of the original model",
            field="quantization_config",
        )


def _architecture(config: Mapping[str, Any]) -> Architecture:
    kind, rows = config.get("model_type"), _by_name()
    some = f"one of {len(rows)} types such as llama, qwen3_moe, deepseek_v3, gpt_oss or nemotron_h"
    if not isinstance(kind, str) or not kind:
        raise InputError(f"config.json has no model_type: expected {some}", field="model_type")
    row = rows.get(kind) or rows.get(kind.lower())
    if row is not None:
        return row
    other = _other_layers(kind)
    if other is not None:
        raise InputError(f"{kind} is not modelled: it has {other}", field="model_type")
    if "patch_size" in config or "image_size" in config:
        raise InputError(f"{kind} is an image model; only language models are supported", field="model_type")
    try:
        offer = f"; --approximate treats it as {_nearest(kind, config).name}"
    except InputError:
        offer = ""
    close = get_close_matches(kind.lower(), rows, n=1, cutoff=0.6)
    nearest = f"did you mean '{close[0]}'?" if close else f"supported: {some}."
    raise InputError(
        f"unsupported architecture '{kind}'{offer}; {nearest} Set model_type to a supported one with the same layers, or "
        f"{_WRITE}",
        field="model_type",
    )


def _other_layers(kind: str) -> str | None:
    return next((what for start, what in _OTHER_LAYERS.items() if kind.lower().startswith(start)), None)


@dataclass(frozen=True, slots=True)
class _Nearest:
    """Modelled architecture with the most of a config's fields, and the config in its fields."""

    name: str
    config: Mapping[str, Any]


def _nearest(kind: str, config: Mapping[str, Any]) -> _Nearest:
    """Return the nearest modelled architecture.

    Raises
    ------
    InputError
        If the file cannot be read as one, or its sizes may depend on something else.
    """
    other = _other_layers(kind)
    if other is not None:
        raise InputError(f"it has {other}", field="model_type")
    usual, read = in_usual_fields(config)
    for fields, name in _NEAREST:
        if all(usual.get(field) is not None for field in fields):
            try:
                document, unread = _short_form(_by_name()[name], usual)
                counts = parameter_counts(shape_from({**document, "name": name}))
            except PipeplanError:
                continue
            if "tie_word_embeddings" not in config and counts.embedding > _MOST_WRONG * counts.total:
                raise InputError("it does not state tie_word_embeddings", field="tie_word_embeddings")
            unknown = unknown_sizes(config, (field for field in unread if field not in read))
            if unknown:
                raise InputError(f"its sizes also depend on {', '.join(unknown[:5])}", field=unknown[0])
            return _Nearest(name, usual)
    raise InputError("it has the fields of no supported one", field="model_type")


def _short_form(row: Architecture, config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the short form of a config, and its fields of unknown meaning."""
    renamed = {usual: config[name] for name, usual in row.renamed.items() if name in config}
    own = {name: value for name, value in config.items() if name not in row.renamed}
    fields = HubFields(row.name, {**renamed, **own}, row.defaults)
    names = {**USUAL_FIELDS, **row.fields}
    if row.listed_layers and isinstance(fields.value(row.listed_layers), list | str):
        fields = replace(fields, content={names["layers"]: len(fields.value(row.listed_layers)), **fields.content})
    missing = [names[key] for key in ("layers", "hidden", "heads", "vocab") if fields.whole(names[key]) is None]
    if missing:
        raise fields.missing_fields_error(missing)
    sizes = {key: fields.whole(name) for key, name in names.items() if key != "tied"}
    if sizes["ffn"] is None and row.ffn_from_hidden:
        sizes["ffn"] = row.ffn_from_hidden * fields.needed(names["hidden"])
    document: dict[str, Any] = {
        "bias_qkv": False,
        "bias_all": False,
        "learned_positions": None,
        **sizes,
        "tied": fields.switch(names["tied"]),
        **norms_and_positions(fields),
        **details(fields),
        **row.always,
    }
    # Rules list the layers one by one.
    check_layers(document["layers"])
    for rule in row.rules:
        document |= rule(fields)
    document = routing(fields) | document if document.get("experts") else document
    unread = [field for field in (document.get("unread"), *unread_fields(fields)) if field]
    document["unread"] = ", ".join(unread)[:_LONGEST_LIST]
    if _has_usual_activation(document):
        document["activation"] = None
    if not _merge_letters(document):
        document["ffn"] = None
    elif document["ffn"] is None:
        raise fields.missing_fields_error([names["ffn"]])
    return document, unread


def _has_usual_activation(document: Mapping[str, Any]) -> bool:
    """Return True for the activation that trainers compute unless they are told otherwise: SiLU, or GELU beside biases."""
    if document.get("gated", True):
        return document.get("activation") == "silu"
    return bool(document.get("bias_all")) and document.get("activation") == "gelu-tanh"


def _merge_letters(document: dict[str, Any]) -> bool:
    """Replace the letters of layers in a short form by its pattern; return True if any layer has a dense FFN."""
    mixers, ffns = document.pop("mixer_letters", None), document.pop("ffn_letters", None)
    layers, experts = document["layers"], bool(document.get("experts"))
    leading, every = document.get("dense_layers") or 0, document.get("moe_every") or 1
    if mixers is None and ffns is None:
        return not experts or leading > 0 or every > 1
    if ffns is None:
        moe = [experts and layer >= leading and (layer - leading + 1) % every == 0 for layer in range(layers)]
        ffns = [EXPERTS if routed else DENSE for routed in moe]
    if mixers is None:
        window, step = document.get("sliding_window"), document.get("sliding_every") or 1
        windowed = [window and (step == 1 or (layer + 1) % step) for layer in range(layers)]
        mixers = [WINDOWED if limited else ATTENTION for limited in windowed]
    if not len(mixers) == len(ffns) == layers:
        raise InputError(f"the kinds of layers in config.json are not those of {layers} layers", field="layer_types")
    document["pattern"] = joined_forms(mixers, ffns)
    for key in ("dense_layers", "moe_every", "sliding_every"):
        document.pop(key, None)
    return DENSE in ffns
