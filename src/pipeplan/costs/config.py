"""Config files: the settings of a command as YAML, TOML or JSON; names of the first simulator are aliases.

A list of times is per stage, as on the command line. Likely slips are errors: an unknown key (the message suggests the
most similar one), a duplicate key, a text in place of a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pipeplan.costs.conversion import known_names, settings_given, typed
from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import Lengths
from pipeplan.costs.settings import SETTING_NAMES
from pipeplan.errors import CostError, FormatError
from pipeplan.files import read_text
from pipeplan.model import shortened


@dataclass(frozen=True, kw_only=True)
class Config:
    """Content of a config file.

    Attributes
    ----------
    settings
        Its settings, by the names of :class:`~pipeplan.costs.from_settings.Settings`.
    schedule
        Name or file of a schedule, or None.
    output
        Output files.
    no_visualization
        True to draw nothing.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    schedule: str | None = None
    output: tuple[str, ...] = ()
    no_visualization: bool = False


class _Extras(msgspec.Struct, frozen=True):
    """Keys of a config file that are not settings."""

    schedule: str | None = None
    output: str | tuple[str, ...] = ()
    no_visualization: bool = False


_EXTRAS = _Extras.__struct_fields__


def load_config(path: Path) -> Config:
    """Read a config file in the format of its suffix."""
    from pipeplan.documents import read_document

    content = read_document(path, "config file")
    if not isinstance(content, dict):
        raise FormatError(f"the config file {path} has no settings: expected keys such as 'ranks: 4'")
    return parse_config(content, f"config file {path}")


def load_layers(path: Path) -> tuple[Layer, ...]:
    """Read costs per layer from a file: a list of layers, or a mapping with such a list as ``layers``."""
    from pipeplan.documents import read_document

    content = read_document(path, "layers file")
    layers = content.get("layers") if isinstance(content, dict) else content
    if not isinstance(layers, list) or not layers:
        raise FormatError(f"the layers file {path} has no list of layers", field="layers")
    converted: tuple[Layer, ...] = settings_given({"layers": layers}, f"layers file {path}")["layers"]
    return converted


def load_lengths(path: Path) -> Lengths:
    """Read the tokens of microbatches from a file.

    A YAML or JSON file has a list, or a mapping with such a list as ``lengths``. Any other file has a line per microbatch,
    with a number, or one per document separated by blanks or commas; ``#`` begins a comment.
    """
    from pipeplan.documents import SIZE_LIMIT, read_document

    if path.suffix.lower() in {".yaml", ".yml", ".json", ".toml"}:
        content = read_document(path, "lengths file")
        lengths = content.get("lengths") if isinstance(content, dict) else content
    else:
        lines = (
            line.partition("#")[0].replace(",", " ").split()
            for line in read_text(path, limit=SIZE_LIMIT, what="lengths file").splitlines()
        )
        lengths = [[_number(word, path) for word in words] for words in lines if words]
        lengths = [line[0] if len(line) == 1 else line for line in lengths]
    if not isinstance(lengths, list) or not lengths:
        raise FormatError(f"the lengths file {path} has no list of lengths", field="lengths")
    converted: Lengths = settings_given({"lengths": lengths}, f"lengths file {path}")["lengths"]
    return converted


def _number(word: str, path: Path) -> float:
    try:
        return float(word)
    except ValueError:
        raise FormatError(
            f"the lengths file {path}: invalid number '{shortened(word, 60)}': expected tokens per microbatch",
            field="lengths",
        ) from None


def parse_config(content: Mapping[Any, Any], where: str) -> Config:
    """Return the content of a config file as records; ``where`` is its source, for messages."""
    values = known_names(content, (*SETTING_NAMES, *_EXTRAS), where)
    try:
        extras = typed({name: values[name] for name in _EXTRAS if name in values}, _Extras)
    except CostError as error:
        error.args = (f"{where}: {error}",)
        raise
    return Config(
        settings=settings_given({name: value for name, value in values.items() if name not in _EXTRAS}, where),
        schedule=extras.schedule,
        output=(extras.output,) if isinstance(extras.output, str) else extras.output,
        no_visualization=extras.no_visualization,
    )
