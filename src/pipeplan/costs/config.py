"""Config files: the settings of a command as YAML, TOML or JSON, with the names of the first simulator understood.

A list of times is per stage, as on the command line. Anything that could be a slip is an error: an unknown key (the
message names the nearest known one), a key given twice, a text where a number belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from pipeplan.costs.from_settings import Settings
from pipeplan.costs.layers import Layer
from pipeplan.costs.limits import parse_size
from pipeplan.costs.settings import SETTING_NAMES, SETTINGS
from pipeplan.errors import CostError, FormatError, PipeplanError, UnknownNameError
from pipeplan.model import require_text, shortened

_T = TypeVar("_T")

ALIASES = {alias: each.name for each in SETTINGS.values() for alias in each.aliases} | {
    "output_file": "output",
    "strategy": "schedule",
}
"""Names of older files and of the first simulator, and ours."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a config file says.

    Attributes
    ----------
    settings
        The settings that it gives, by the names of :class:`~pipeplan.costs.from_settings.Settings`.
    schedule
        The name or file of a schedule, or None.
    output
        Output files.
    no_visualization
        Whether no picture is wanted.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    schedule: str | None = None
    output: tuple[str, ...] = ()
    no_visualization: bool = False


class _Extras(msgspec.Struct, frozen=True):
    """The keys of a config file that are no settings."""

    schedule: str | None = None
    output: str | tuple[str, ...] = ()
    no_visualization: bool = False


_EXTRAS = tuple(extra.name for extra in msgspec.structs.fields(_Extras))


def load_config(path: Path) -> Config:
    """Read a config file; its ending says which language it is in.

    Raises
    ------
    InputError
        If it cannot be read.
    FormatError
        If it is empty, too large, not a mapping, not in the language of its ending, or has a key twice.
    UnknownNameError
        For an unknown key or ending.
    CostError
        For a value of the wrong type.
    """
    from pipeplan.documents import read_document

    content = read_document(path, "config file")
    if not isinstance(content, dict):
        raise FormatError(f"the config file {path} holds no keys: write 'ranks: 4' and so on")
    return _config(content, f"config file {path}")


def load_layers(path: Path) -> tuple[Layer, ...]:
    """Read costs per layer: a list of layers, or a file with such a list as its ``layers``.

    Raises
    ------
    InputError
        For whatever :func:`load_config` raises it.
    """
    from pipeplan.documents import read_document

    content = read_document(path, "layers file")
    layers = content.get("layers") if isinstance(content, dict) else content
    if not isinstance(layers, list) or not layers:
        raise FormatError(f"the layers file {path} holds no list of layers", field="layers")
    found: tuple[Layer, ...] = settings_given({"layers": layers}, f"layers file {path}")["layers"]
    return found


def _config(content: Mapping[Any, Any], where: str) -> Config:
    known = _known_names(content, (*SETTING_NAMES, *_EXTRAS), where)
    try:
        extras = _typed({name: known[name] for name in _EXTRAS if name in known}, _Extras)
    except CostError as error:
        error.args = (f"{where}: {error}",)
        raise
    return Config(
        settings=settings_given({name: value for name, value in known.items() if name not in _EXTRAS}, where),
        schedule=extras.schedule,
        output=(extras.output,) if isinstance(extras.output, str) else extras.output,
        no_visualization=extras.no_visualization,
    )


_LONGEST_TEXT = 200_000
"""Letters of any setting: those that are shorter say so themselves."""


def settings_given(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings among ``values`` that are not None, each of its type; lists become tuples, numpy's numbers plain.

    Parameters
    ----------
    values
        By the names of :class:`~pipeplan.costs.from_settings.Settings`, or older ones.
    where
        Where they come from, for messages; empty for keyword arguments.

    Raises
    ------
    UnknownNameError
        For an unknown name, or an unknown word where a few are known.
    CostError
        For a value of the wrong type, and a time or size out of its range.
    ShapeError
        For a count out of its range.
    """
    return _settings_and_names(values, where)[1]


def settings_from(values: Mapping[str, Any], base: Mapping[str, Any] = MappingProxyType({})) -> Settings:
    """The settings of keyword arguments laid over those of a file; see :func:`settings_given` for what it raises."""
    typed, given = _settings_and_names(values, "")
    return merged(base, given) if base else typed


def _settings_and_names(values: Mapping[str, Any], where: str) -> tuple[Settings, dict[str, Any]]:
    """The settings, and those of them that are given, by name."""
    known = _known_names(values, SETTING_NAMES, where)
    given = {name: _plain(name, value) for name, value in known.items() if value is not None}
    if where:
        given = {name: _counted(name, value) for name, value in given.items()}
    try:
        for name, value in given.items():
            if isinstance(value, str):
                require_text(value, name.replace("_", " "), longest=_LONGEST_TEXT, field=name)
        given |= {name: _sizes(name, given[name]) for name in given if SETTINGS[name].in_bytes}
        if isinstance(given.get("layers"), Sequence):
            given["layers"] = [_plain_layer(layer) for layer in given["layers"]]
        for name, value in given.items():
            if SETTINGS[name].choices and isinstance(value, str):
                SETTINGS[name].check(value)
        typed = _typed(given, Settings)
    except PipeplanError as error:
        if where:
            error.args = (f"{where}: {error}",)
        raise
    return typed, {name: getattr(typed, name) for name in given}


def merged(base: Mapping[str, Any], override: Mapping[str, Any]) -> Settings:
    """The settings of a file with those of the command line over them.

    Ranks and stages say the same thing twice: who overrides one of them does not mean the file's other one. Costs of which
    some are overridden no longer have the file's name.
    """
    rest = dict(base)
    if any(SETTINGS[name].timing for name in override):
        rest.pop("costs_name", None)
    if "ranks" in override or "stages" in override:
        rest = {name: value for name, value in base.items() if name not in ("ranks", "stages")}
    return Settings(**(rest | dict(override)))


def _known_names(values: Mapping[Any, Any], names: tuple[str, ...], where: str) -> dict[str, Any]:
    """The values by our names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        name = ALIASES.get(plain, plain)
        if name not in names:
            what = f"key in {where}:" if where else "setting"
            raise UnknownNameError(what, str(key), (*names, *ALIASES), field=str(key))
        if name in found:
            prefix = f"{where}: " if where else ""
            raise CostError(f"{prefix}{name} is given twice, the second time as '{key}'", field=name)
        found[name] = value
    return found


def _plain(name: str, value: Any) -> Any:
    """Arrays and numpy's numbers as lists and numbers. Raises CostError for a set, which has no order."""
    if isinstance(value, set | frozenset):
        raise CostError(f"{name}: a set has no order; give a list, not {shortened(repr(value), 60)}", field=name)
    return value.tolist() if hasattr(value, "tolist") else value


def _counted(name: str, value: Any) -> Any:
    """A count of a file as a whole number: JSON and YAML tell ``4.0`` and ``4`` apart no more than spreadsheets do."""
    whole = SETTINGS[name].kind == "count" and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def _sizes(name: str, value: Any) -> Any:
    """Sizes that are texts with their unit as numbers of bytes; anything else as it stands. Raises CostError."""
    if isinstance(value, str):
        return parse_size(value, name)
    if not isinstance(value, list | tuple):
        return value
    return [parse_size(each, name) if isinstance(each, str) else each for each in value]


def _plain_layer(layer: Any) -> Any:
    """A layer as keys and values, which must be those of one.

    Raises
    ------
    UnknownNameError
        For another key.
    """
    if isinstance(layer, Layer):
        return asdict(layer)
    names = [each.name for each in fields(Layer)]
    for key in layer if isinstance(layer, Mapping) else ():
        if key not in names:
            raise UnknownNameError("key of a layer:", str(key), names, field="layers")
    return layer


_TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "null": "nothing",
    "object": "a group of keys",
}


def _typed(values: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(values, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        text = _in_words(str(error))
        place = re.match(r"(\w+).*?: ", text)
        raise CostError(text, field=place[1] if place else "") from None


def _in_words(message: str) -> str:
    """Turn "Expected `float`, got `str` - at `$.p2p_time`" into "p2p_time: expected a number, got text"."""
    match = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", message, re.DOTALL)
    assert match is not None
    text, place = match.groups()
    text = re.sub(r"`([\w |]+)`", lambda found: _words(found.group(1)), text)
    text = text.replace("whole number, got a number", "whole number, got a fraction")
    return f"{place}: {text[0].lower()}{text[1:]}" if place else text


def _words(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null" or types == "null"]
    return " or ".join(_TYPE_WORDS.get(name, name) for name in names)
