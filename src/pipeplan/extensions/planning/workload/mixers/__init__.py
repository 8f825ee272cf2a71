"""Mixers of tokens in the place of attention: one class each, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from pipeplan.extensions.planning.workload.components import MixerOfModel
from pipeplan.extensions.planning.workload.mixers.compressed import CompressedAttention
from pipeplan.extensions.planning.workload.mixers.delta import GatedDelta, KimiDelta
from pipeplan.extensions.planning.workload.mixers.mamba import Mamba2
from pipeplan.extensions.planning.workload.mixers.mixer import Mixer
from pipeplan.extensions.planning.workload.mixers.simple import LightningAttention, ShortConvolution
from pipeplan.foundation.errors import InputError, UnknownNameError

__all__ = ["MIXERS", "Mixer", "described", "mixer_from"]

MIXERS: Mapping[str, type[Mixer]] = {
    mixer.kind: mixer
    for mixer in (
        CompressedAttention,
        GatedDelta,
        KimiDelta,
        LightningAttention,
        Mamba2,
        ShortConvolution,
    )
}
"""Mixers by the kind that a model's short form names."""


def mixer_from(words: Mapping[str, Any]) -> Mixer:
    """Return a mixer from its short form: its kind, and its sizes by name.

    Raises
    ------
    InputError
        If a size is missing or of the wrong type.
    UnknownNameError
        If the kind or a size is unknown.
    """
    kind = str(words.get("kind"))
    if kind not in MIXERS:
        raise UnknownNameError("kind of mixer", kind, MIXERS, field="mixers")
    mixer = MIXERS[kind]
    sizes = {name: value for name, value in words.items() if name != "kind" and value is not None}
    names = [field.name for field in fields(mixer)]
    stray = next((name for name in sizes if name not in names), None)
    if stray is not None:
        raise UnknownNameError(f"size of {mixer.title}", stray, names, field="mixers")
    missing = [field.name for field in fields(mixer) if field.default is MISSING and field.name not in sizes]
    if missing:
        raise InputError(f"{mixer.title} lacks {', '.join(missing)}", field="mixers")
    for field in fields(mixer):
        if field.name in sizes and isinstance(field.default, bool) != isinstance(sizes[field.name], bool):
            raise InputError(f"invalid {field.name} {sizes[field.name]!r} of {mixer.title}", field="mixers")
    return mixer(**sizes)


def described(letter: str, mixer: Mixer) -> MixerOfModel:
    """Return the description of a mixer with a letter, as a model has it; sizes with their default are left out."""
    sizes = {field.name: getattr(mixer, field.name) for field in fields(mixer)}
    defaults = {field.name: field.default for field in fields(mixer)}
    return MixerOfModel(
        letter=letter,
        kind=mixer.kind,
        sizes=tuple((name, value) for name, value in sizes.items() if value != defaults[name]),
    )
