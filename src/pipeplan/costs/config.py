"""Settings as users write them, in Python or in config files: converted to their types, with names of the first simulator.

A list of times is per stage or per rank, as on the command line. Likely slips are errors: an unknown key (the message
suggests the most similar one), a duplicate key, a text in place of a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeplan.costs.kinds import check_value, text_fault
from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import FactorTable, FactorTables, Lengths
from pipeplan.costs.segments import OPS, OpSegments, segments_in
from pipeplan.costs.setting import Setting
from pipeplan.costs.settings import SETTING_NAMES, SETTINGS, SettingsTable
from pipeplan.costs.written_numbers import parse_number, parse_size
from pipeplan.foundation.errors import CostError, FormatError, PipeplanError, UnknownNameError
from pipeplan.foundation.files import read_text
from pipeplan.foundation.syntax import type_fault
from pipeplan.model import require_text, shortened

_T = TypeVar("_T")

ALIASES = {alias: setting.name for setting in SETTINGS.values() for alias in setting.aliases} | {
    "output_file": "output",
    "strategy": "schedule",
}
"""Other names of settings and keys, which older files and the first simulator use, with the current names."""


_LONGEST_TEXT = 200_000
"""Maximum length of any text; settings with a smaller limit check it themselves."""


def settings_given(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return the settings in ``values`` that are not None, converted to their types; arrays and lists become tuples."""
    plain: dict[str, Any] = {}
    for name, value in known_names(values, SETTING_NAMES, where).items():
        if value is not None:
            plain[name] = SETTINGS[name].spelled(_plain(name, value))
            if SETTINGS[name].kind == "text":
                plain[name] = _text_of_counts(plain[name])
            if where:
                plain[name] = _counted(name, plain[name])
    try:
        for name, value in plain.items():
            setting = SETTINGS[name]
            if isinstance(value, str):
                require_text(value, name.replace("_", " "), longest=_LONGEST_TEXT, field=name)
                if setting.choices:
                    check_value(setting, value)
            if setting.kind in ("count", "number", "per_stage", "pair_times"):
                plain[name] = _numbers(setting, value)
            if setting.kind == "flag" and isinstance(value, str):
                raise CostError(f"{name}: invalid value '{shortened(value, 60)}': write true or false", field=name)
        converted = typed(plain | _records(plain), SettingsTable)
    except PipeplanError as error:
        if where:
            error.args = (f"{where}: {error}",)
        raise
    return {name: getattr(converted, name) for name in plain}


def known_names(values: Mapping[Any, Any], names: tuple[str, ...], where: str = "") -> dict[str, Any]:
    """Return the values by the current names of their keys."""
    named: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        name = ALIASES.get(plain, plain)
        if name not in names and where:
            from pipeplan.foundation.documents import other_kind  # loaded with files

            if other := other_kind(values):
                raise FormatError(f"{where} has no settings: {other}", field=str(key))
        if name not in names:
            noun = f"key in {where}:" if where else "setting"
            raise UnknownNameError(noun, str(key), (*names, *ALIASES), field=str(key))
        if name in named:
            prefix = f"{where}: " if where else ""
            raise CostError(f"{prefix}{name} is set twice, the second time as '{key}'", field=name)
        named[name] = value
    return named


def _plain(name: str, value: Any) -> Any:
    """Convert arrays and numpy's numbers to lists and numbers; raise CostError for a set, which has no order."""
    if isinstance(value, set | frozenset):
        raise CostError(f"{name}: a set has no order; pass a list, not {shortened(repr(value), 60)}", field=name)
    if isinstance(value, list | tuple):
        return [_plain(name, entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _counted(name: str, value: Any) -> Any:
    """Convert a count such as ``4.0`` to int. JSON and YAML files made by spreadsheets contain those."""
    whole = SETTINGS[name].kind == "count" and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def _text_of_counts(value: Any) -> Any:
    """Convert a count, or a list of counts, to the text that means it: YAML reads ``2`` as a number."""
    counts = value if isinstance(value, list) else [value]
    return ",".join(map(str, counts)) if counts and all(type(count) is int for count in counts) else value


def _numbers(setting: Setting, value: Any) -> Any:
    """Convert texts such as ``2GiB`` to bytes, and refuse other texts as the shell does; leave other values as they are."""
    if not isinstance(value, list | tuple):
        return _number_of(setting, value, setting.name)
    return [_number_of(setting, part, f"{setting.name}[{place}]") for place, part in enumerate(value)]


def _number_of(setting: Setting, value: Any, where: str) -> Any:
    if not isinstance(value, str):
        return value
    if setting.in_bytes:
        return parse_size(value, where, field=setting.name)
    raise CostError(f"{where}: {text_fault(setting, value)}", field=setting.name)


def _records(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are lists of records, with all numbers and segments converted."""
    records: dict[str, Any] = {}
    if isinstance(values.get("layers"), Sequence):
        records["layers"] = [_layer(layer, f" in layers[{place}]") for place, layer in enumerate(values["layers"])]
    if "segments" in values:
        records["segments"] = _segments(values["segments"])
    return records


def _layer(layer: Any, where: str) -> Any:
    """Return a layer, if it is a mapping with converted values; its keys must be fields of :class:`Layer`."""
    if not isinstance(layer, Mapping):
        return layer
    names = [field.name for field in fields(Layer)]
    for key in layer:
        if key not in names:
            raise UnknownNameError("layer key", str(key), names, field="layers")
    plain = {key: _number_in_layer(key, value) for key, value in layer.items()}
    if plain.get("segments") is not None:
        plain["segments"] = _op_segments(layer["segments"], where)
        plain = {op: plain["segments"].time(op) for op in OPS} | plain
    return plain


def _segments(value: Any) -> list[OpSegments]:
    """Return the segments of each stage, from a list of them or those of all stages; one entry stands for all stages."""
    entries = value if isinstance(value, list | tuple) else [value]
    if not entries:
        raise CostError("segments: the list is empty", field="segments")
    several = len(entries) > 1
    return [_op_segments(entry, f" of stage {stage}" if several else "") for stage, entry in enumerate(entries)]


def _op_segments(entry: Any, where: str) -> OpSegments:
    """Return the segments of a stage or layer from a mapping of its ops to lists of names and times."""
    if isinstance(entry, OpSegments):
        return entry
    if not isinstance(entry, Mapping):
        raise CostError(
            f"segments{where}: expected a list for each of {', '.join(OPS)}, not {shortened(repr(entry), 60)}",
            field="segments",
        )
    for key in entry:
        if key not in OPS:
            raise UnknownNameError(f"key of segments{where}", str(key), OPS, field="segments")
    missing = [op for op in OPS if op not in entry]
    if missing:
        raise CostError(f"segments{where}: the key '{missing[0]}' is missing", field="segments")
    return OpSegments(**{op: segments_in(parts, op, where) for op, parts in entry.items()})


def _number_in_layer(key: str, value: Any) -> Any:
    """Convert a text such as ``2GiB`` to bytes, and refuse a text in place of another number."""
    if not isinstance(value, str) or key not in _NUMBERS_OF_LAYERS:
        return value
    return parse_number(value, f"{key} of a layer", "bytes" if key.endswith("bytes") else "time", field="layers")


_NUMBERS_OF_LAYERS = frozenset(field.name for field in fields(Layer) if "float" in str(field.type))


def typed(values: Mapping[str, Any], kind: type[_T]) -> _T:
    """Return a record of these values. Raises CostError, in words, for a value of the wrong type."""
    try:
        return msgspec.convert(values, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        text = type_fault(error)
        place = re.match(r"(\w+).*?: ", text)
        raise CostError(text, field=place[1] if place else "") from None


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
    from pipeplan.foundation.documents import instead_of_keys, read_document

    content = read_document(path, "config file")
    if not isinstance(content, dict):
        raise FormatError(f"the config file {path} has no settings: {instead_of_keys(content, 'ranks: 4')}")
    return parse_config(content, f"config file {path}")


def load_layers(path: Path) -> tuple[Layer, ...]:
    """Read costs per layer from a file: a list of layers, or a mapping with such a list as ``layers``.

    Raises
    ------
    InputError
        If it cannot be read.
    FormatError
        If it is empty, too large, not in the format of its suffix, or has a key twice.
    UnknownNameError
        If a key or the suffix is unknown.
    CostError
        If a value has the wrong type.
    """
    from pipeplan.foundation.documents import read_document

    layers: tuple[Layer, ...] = _list_of("layers", read_document(path, "layers file"), path)
    return layers


def _list_of(name: str, content: Any, path: Path) -> Any:
    """Return the setting ``name`` from a file that has its list, alone or under its name."""
    values = content.get(name) if isinstance(content, dict) else content
    if not isinstance(values, list) or not values:
        raise FormatError(
            f"the {name} file {path} has no list of {name}; expected one under the key '{name}'", field=name
        )
    return settings_given({name: values}, f"{name} file {path}")[name]


def load_factors(path: Path) -> FactorTable | FactorTables:
    """Read the factors of microbatches from a file.

    It has a list, tables by name, or a mapping with one of these as ``microbatch_factors``.

    Raises the errors of :func:`load_layers`.
    """
    from pipeplan.foundation.documents import read_document

    content = read_document(path, "factors file")
    if isinstance(content, dict):
        content = content.get("microbatch_factors", content)
    factors: FactorTable | FactorTables = settings_given({"microbatch_factors": content}, f"factors file {path}")[
        "microbatch_factors"
    ]
    return factors


def load_lengths(path: Path) -> Lengths:
    """Read the tokens of microbatches from a file.

    A YAML or JSON file has a list, or a mapping with such a list as ``lengths``. Any other file has a line per microbatch,
    with a number, or one per document separated by blanks or commas; ``#`` begins a comment.
    """
    from pipeplan.foundation.documents import ENDINGS, SIZE_LIMIT, read_document

    if path.suffix.lower() in ENDINGS:
        content = read_document(path, "lengths file")
    else:
        lines = (
            line.partition("#")[0].replace(",", " ").split()
            for line in read_text(path, limit=SIZE_LIMIT, what="lengths file").splitlines()
        )
        where = f"the lengths file {path}"
        rows = [[parse_number(word, where, "tokens", field="lengths") for word in words] for words in lines if words]
        content = [row[0] if len(row) == 1 else row for row in rows]
    lengths: Lengths = _list_of("lengths", content, path)
    return lengths


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
