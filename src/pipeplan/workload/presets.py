"""Published models by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pipeplan.errors import UnknownNameError
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.short_forms import shape_from

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
