"""Files of keys and values: JSON, YAML and TOML, with errors for likely mistakes and for content that expands without limit.

JSON is as its standard has it: a number is finite, and a key occurs once. What pipeplan writes as JSON is written here.

PyYAML reads YAML 1.1, in which ``1:30`` is 90, ``010`` is 8, ``no`` is false and ``2024-01-01`` is a date. Here YAML is the
core schema of YAML 1.2 (section 10.3.2): a plain value is a number (``010`` is 10, ``0o10`` is 8, ``1e9`` is a number),
``true`` or ``false``, ``null`` or nothing, and else text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pipeplan.foundation.errors import CostError, FormatError, UnknownNameError
from pipeplan.foundation.files import MEBIBYTE, read_text, require_no_folder
from pipeplan.foundation.syntax import syntax_fault

SIZE_LIMIT = MEBIBYTE
"""Maximum size in bytes of a file that people write by hand."""

MOST_DEPTH = 20
"""Maximum nesting of groups in YAML; PyYAML's C loader has no such limit."""

_TAG = "tag:yaml.org,2002:"

_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}
"""Patterns of plain YAML values by their kind, with the characters that they start with; the first match applies."""


def json_text(document: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """Return a document of plain values, or a record, as JSON."""
    separators = (",", ":") if compact else None
    try:
        return json.dumps(document, indent=indent, separators=separators, allow_nan=False, default=msgspec.to_builtins)
    except ValueError:
        plain = json.loads(json.dumps(document, default=msgspec.to_builtins))
        place, value = next(_not_finite(plain, ""))
        raise CostError(
            f"{place} is {value}, which JSON cannot hold: times or sizes are too large, or too far apart"
        ) from None


def _not_finite(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _not_finite(part, f"{place}.{name}" if place else str(name))


def require_unique_keys(text: str) -> None:
    """Check that no object of a JSON text has a duplicate key: readers would silently take one of its values."""
    try:
        json.loads(text, object_pairs_hook=_unique_keys)
    except ValueError as error:
        raise FormatError(syntax_fault(error, text)) from None


def read_document(path: Path, what: str, *, limit: int = SIZE_LIMIT, constants: bool = False) -> Any:
    """Return the content of a YAML, TOML or JSON file as plain values.

    With ``constants``, JSON may have NaN and Infinity, which Python writes.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        require_no_folder(path, what)
        raise UnknownNameError(f"suffix of a {what}", path.suffix or path.name, _READERS)
    text = read_text(path, limit=limit, what=what)
    try:
        return read_json(text, constants=True) if constants and reader is read_json else reader(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"invalid {what} {path}: {syntax_fault(error, text)}") from None


def instead_of_keys(content: Any, example: str) -> str:
    """Return what a document holds in place of a group of keys, with the remedy; of ``ranks:4``, how it is written."""
    if isinstance(content, str) and (pair := re.match(r"([A-Za-z]\w*)(?: *[:=] *| +)(\S+)", content)):
        return f"write '{pair[1]}: {pair[2]}', with a colon and a blank"
    kinds = {list: "it is a list", str: "it is a text", type(None): "it has only comments"}
    return f"{kinds.get(type(content), 'it is a single value')}; expected keys such as '{example}'"


_KINDS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"headline"}), "it is an answer of pipeplan, not an input"),
    (frozenset({"traceEvents"}), "it is a trace; pass it to 'pipeplan explain' or 'pipeplan profile --from'"),
    (frozenset({"model", "cluster"}), "it is a configuration; pass it to 'pipeplan estimate'"),
    (
        frozenset({"peft_type"}),
        "it is an adapter (LoRA); pass the config.json of its base model, and its rank as lora_rank to 'pipeplan estimate'",
    ),
    (frozenset({"model_type"}), "it is a model's config.json; pass it with --model"),
    (frozenset({"gpu", "per_node"}), "it is a cluster; pass it with --cluster"),
    (frozenset({"gpu", "factors"}), "it is a calibration; pass it with --calibration"),
    (frozenset({"runs"}), "it is a ledger of runs; pass it with --runs"),
)
"""Keys that files of one kind have, with what such a file is, in order of precedence."""

_FORMATS = {
    "pipeplan-schedule": "it is a schedule; pass it in place of a schedule's name, as in 'pipeplan simulate FILE'",
    "pipeplan-timeline": "it is a timeline; pass it in place of a schedule's name, as in 'pipeplan explain FILE'",
    "pipeplan-costs": "it contains costs; pass it with --config",
}


def other_kind(content: Any) -> str | None:
    """Return what a document is that was passed for another kind of file, and where to pass it; None if unknown."""
    if not isinstance(content, Mapping):
        return None
    declared = _FORMATS.get(str(content.get("format")))
    return declared or next((kind for keys, kind in _KINDS if keys <= content.keys()), None)


def _require_once(names: list[Any], lines: Sequence[int] = ()) -> None:
    if len(set(map(str, names))) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        places = [line + 1 for name, line in zip(names, lines, strict=False) if name == repeated]
        where = f" in lines {places[0]} and {places[1]}" if places else ""
        raise ValueError(f"duplicate key '{repeated}'{where}; keep one of them")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        _require_once([key for key, _ in pairs])
    return unique


def _no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python's reader takes for numbers but JSON does not have."""
    raise ValueError(f"{name} is not a valid JSON number")


def read_json(text: str, *, constants: bool = False) -> Any:
    """Return the content of a JSON text as plain values; with ``constants``, NaN and Infinity are numbers."""
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=float if constants else _no_constant)


def _read_toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def read_yaml(text: str) -> Any:
    """Return the content of a YAML document as plain values."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's way

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            if any(key.tag == f"{_TAG}merge" for key, _ in node.value):
                raise ValueError("YAML merge keys ('<<') are not supported: write the keys out")
            _require_once([key.value for key, _ in node.value], [key.start_mark.line for key, _ in node.value])
            mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
            return mapping

    for kind, (pattern, firsts) in _PLAIN.items():
        Loader.add_implicit_resolver(f"{_TAG}{kind}", re.compile(f"(?:{pattern})\\Z"), firsts)
    Loader.add_constructor(f"{_TAG}int", lambda loader, node: _whole(loader.construct_scalar(node)))
    Loader.add_constructor(f"{_TAG}float", lambda loader, node: _number(loader.construct_scalar(node)))
    try:
        _require_small(yaml.parse(text, Loader), len(text))
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(syntax_fault(error, text)) from None


def _whole(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _number(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _require_small(events: Iterable[Any], most: int) -> None:
    """Refuse deep nesting, and aliases that expand to more values than the text has characters."""
    import yaml

    sizes: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias '*{event.anchor}' is undefined or refers to itself")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, total))
            elif event.anchor is not None:
                sizes[event.anchor] = 1
        if len(opened) > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        if total > most:
            raise ValueError(
                "its YAML aliases expand to more values than the file has characters: write the values out"
            )


_READERS: dict[str, Callable[[str], Any]] = {
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".toml": _read_toml,
    ".json": read_json,
}

ENDINGS = frozenset(_READERS)
"""The suffixes of files that :func:`read_document` reads."""
