"""YAML, TOML and JSON of trainers with the files that they extend, and what trainers print: values with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.source import OTHER_JOBS, SourceText, text_near
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.stated import RawEntry
from pipeplan.foundation.documents import MOST_DEPTH, read_yaml
from pipeplan.foundation.errors import FormatError
from pipeplan.foundation.files import MEBIBYTE
from pipeplan.foundation.syntax import json_fault, syntax_fault


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """Value of a document that is no group of keys, and its place."""

    value: Any
    place: SettingPlace


Tree = dict[str, Any]
"""Groups of keys: trees, leaves, and lists that hold trees."""

_DEFAULT = re.compile(r"\$\{[\w.]+:-?([^{}$]*)\}")
"""Matches Primus' variables with a default: ``${PRIMUS_TP:8}``."""

_LENIENT = re.compile(r"duplicate key|YAML merge keys|unsupported YAML tag")
"""Matches faults of YAML that trainers' own loaders accept: the last of several equal keys counts, and groups are merged."""

_MOST_FILES = 40
_LARGEST = MEBIBYTE


# Parsing


def parsed(source: SourceText) -> Any:
    """Return a document as plain values, JSON as the YAML that it is; None for what only lenient loaders take."""
    if len(source.text) > _LARGEST:
        raise FormatError(f"the configuration {source.file} is larger than {_LARGEST:,} characters")
    try:
        if source.form == "toml":
            import tomllib

            return tomllib.loads(source.text)
        return read_yaml(_as_yaml(source))
    except (ValueError, RecursionError) as error:
        if _LENIENT.search(str(error)):
            return None
        # JSON is read as YAML, but a slip in it is named in the terms of JSON.
        reason = (json_fault(source.text) if source.form == "json" else None) or syntax_fault(error, source.text)
        raise FormatError(f"invalid {source.form.upper()} in {source.file}: {reason}") from None


def _as_yaml(source: SourceText) -> str:
    """Return a text with the same columns, without the tabs and halves of letters that only JSON may have."""
    if source.form != "json":
        return source.text
    return re.sub(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", "??????", source.text.replace("\t", " "))


def tree_of(source: SourceText) -> Tree:
    """Return a document as groups of values with their places."""
    document = parsed(source)
    if source.form == "toml":
        return _of_toml(source, document)
    import yaml

    node = yaml.compose(_as_yaml(source), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    tree = None if node is None else _of_node(node, source, "")
    return tree if isinstance(tree, dict) else {}


def _of_node(node: Any, source: SourceText, key: str) -> Any:
    if node.id == "mapping":
        tree: Tree = {}
        for name, value in node.value:
            inner = _of_node(value, source, str(name.value))
            if name.value == "<<":
                for merged in inner if isinstance(inner, list) else [inner]:
                    tree = {**merged, **tree} if isinstance(merged, dict) else tree
            else:
                tree[str(name.value)] = inner
        return tree
    if node.id == "sequence" and any(part.id == "mapping" for part in node.value):
        return [_of_node(part, source, key) for part in node.value]
    first, last = node.start_mark, node.end_mark
    columns = (first.column, last.column) if first.line == last.line else ()
    if first.index == last.index and source.text[first.index - 1 : first.index + 1] == ": ":
        # Nothing behind a colon, whose blank stays.
        columns = (first.column + 1, first.column + 1)
    place = SettingPlace(source.file, first.line + 1, key, *columns)
    return PlacedValue(_plain(node), place)


def _plain(node: Any) -> Any:
    if node.id == "sequence":
        return [_plain(part) for part in node.value]
    if node.id == "mapping":
        return {}
    return None if node.style is None and node.value in ("", "null", "~", "Null", "NULL") else node.value


def _of_toml(source: SourceText, document: Any) -> Tree:
    """Return the values that stand in lines of their own."""
    tree: Tree = {}
    group: tuple[str, ...] = ()
    for number, line in enumerate(source.text.split("\n"), 1):
        if header := re.match(r"\s*\[+([\w.\- ]+)\]", line):
            group = tuple(part.strip() for part in header[1].split("."))
        elif match := re.match(r"""\s*"?([\w.-]+)"?\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^#\s{]+)""", line):
            path = ".".join((*group, match[1]))
            value = _at(document, path)
            if value is not None and not isinstance(value, dict):
                override(
                    tree,
                    path,
                    PlacedValue(value, SettingPlace(source.file, number, path.rpartition(".")[2], *match.span(2))),
                )
    return tree


# Files that a document extends


class Extended:
    """Document with the files that it extends, which are merged below it; ``missing`` are those that are not there."""

    def __init__(self, source: SourceText, folder: Path | None) -> None:
        self.source = source
        self.files: list[SourceText] = []
        self.missing: list[SettingPlace] = []
        self._search = [""]
        self.tree = self._merged(tree_of(source), folder, 0)

    def _merged(self, tree: Tree, folder: Path | None, depth: int) -> Tree:
        self._search += (f"{path.removeprefix('file://')}/" for path in _texts(_at(tree, "hydra.searchpath")))
        result: Tree = {}
        for name, path, place in _extends(tree):
            base = self._base(name, folder, depth)
            if base is not None:
                for key in reversed(path.split(".") if path else []):
                    base = {key: base}
                _overlay(result, base)
            elif place is not None:
                self.missing.append(SettingPlace(place.file, place.line, name))
        _overlay(result, tree)
        return result

    def _base(self, name: str, folder: Path | None, depth: int) -> Tree | None:
        file = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
        sources = (text_near(path + file, folder, "yaml") for path in self._search)
        source = next((one for one in sources if one is not None), None)
        if source is None or depth == MOST_DEPTH or len(self.files) == _MOST_FILES:
            return None
        self.files.append(source)
        return self._merged(tree_of(source), Path(source.file).parent, depth + 1)


def _extends(tree: Tree) -> Iterator[tuple[str, str, SettingPlace | None]]:
    """Yield the files that a document extends with the groups that they fill; no place: files of the trainer itself."""
    for key in ("defaults", "extends", "includes"):
        part = tree.pop(key, None)
        for one in part if isinstance(part, list) else [part]:
            for name in _texts(one):
                file, _, path = name.partition("@")
                yield file, path, one.place
            for option, leaf in one.items() if isinstance(one, dict) else ():
                if isinstance(leaf, PlacedValue) and isinstance(leaf.value, str):
                    folder, _, path = option.removeprefix("override ").partition("@")
                    yield f"{folder}/{leaf.value}", path or folder.replace("/", "."), leaf.place
    modules = tree.get("modules")
    for name, module in modules.items() if isinstance(modules, dict) else ():
        # Primus names files of its own: of a module's defaults, and of a model.
        for key, folder in (("config", "modules"), ("model", "models")) if isinstance(module, dict) else ():
            framework, leaf = module.get("framework"), module.get(key)
            if isinstance(framework, PlacedValue) and isinstance(leaf, PlacedValue) and isinstance(leaf.value, str):
                yield f"primus/configs/{folder}/{framework.value}/{_with_default(leaf.value)}", f"modules.{name}", None


def _texts(part: Any) -> list[str]:
    """Return the names of files in a leaf; ``_self_`` is the document itself."""
    values = part.value if isinstance(part, PlacedValue) else None
    values = [values] if isinstance(values, str) else values or ()
    return [one for one in values if isinstance(one, str) and one != "_self_"]


def _at(tree: Any, path: str) -> Any:
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _overlay(below: Tree, above: Tree) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            below[key] = dict(below[key])
            _overlay(below[key], value)
        else:
            below[key] = value


def override(tree: Tree, path: str, leaf: PlacedValue) -> None:
    """Set a value of a document, as ``a.b.c=value`` of a command does."""
    *groups, key = path.split(".")
    for group in groups:
        tree[group] = dict(tree[group]) if isinstance(tree.get(group), dict) else {}
        tree = tree[group]
    tree[key] = leaf


# Settings


def settings_of(tree: Tree) -> list[RawEntry]:
    """Return the settings of a document with nested groups."""
    entries = list(_entries_of(tree, (), tree))
    name, flavor = _at(tree, "model.name"), _at(tree, "model.flavor")
    if isinstance(name, PlacedValue) and isinstance(flavor, PlacedValue):
        # torchtitan names a family and a size.
        entries.append(RawEntry("model_name", f"{name.value}-{flavor.value}", flavor.place))
    return entries


def _entries_of(value: Any, parents: tuple[str, ...], root: Tree) -> Iterator[RawEntry]:
    if isinstance(value, dict):
        enabled = value.get("enabled")
        if isinstance(enabled, PlacedValue) and str(enabled.value).lower() == "false":
            # A part that is switched off sets nothing.
            return
        for key, inner in value.items():
            if not (isinstance(inner, dict) and key.lower() in OTHER_JOBS):
                yield from _entries_of(inner, (*parents, key), root)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict):
                yield from _entries_of(part, parents, root)
    elif isinstance(value, PlacedValue) and parents:
        raw, last = _resolved(value.value, root), parents[-1].lstrip("-")
        if last == "model" and isinstance(raw, str) and re.fullmatch(r"[\w.-]+\.ya?ml", raw):
            # Primus names a model's file: deepseek_v3.yaml.
            yield RawEntry("model_name", re.sub(r"\.ya?ml$", "", raw).replace("_", "-"), value.place)
        else:
            yield RawEntry(".".join(parents), raw, value.place)


def _resolved(value: Any, root: Tree) -> Any:
    """Return a value with the defaults of its variables, or the value of the key that it refers to."""
    for _ in range(5):
        refers = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) else None
        leaf = _at(root, refers[1]) if refers else None
        if not isinstance(leaf, PlacedValue):
            break
        value = leaf.value
    value = _with_default(value)
    return UNKNOWN if isinstance(value, str) and "${" in value else value


def _with_default(value: Any) -> Any:
    return _DEFAULT.sub(lambda match: match[1], value) if isinstance(value, str) and "${" in value else value


# What trainers print

ARGUMENTS = re.compile(r"(?<!-)-{8,100} arguments -{8}")
"""Matches the line above Megatron's block of arguments."""

_LOGGED = re.compile(r"^(?:.*?[\])]:?\s*)?\s*([A-Za-z_]\w*) \.{3,} (.*?)\s*$")
"""Matches a line of Megatron's block of arguments, behind an optional prefix of the launcher."""

_RANK = re.compile(r"^(?:\[[\w-]*\d+\]|\d+):[ ]?")
"""Matches the rank that a launcher writes before each line."""

_YAML_LINE = re.compile(r"\s*(?:- )?[\"']?[\w.\-/]+[\"']?:(?:\s.*)?$|\s*- .*$|\s{2,}\S.*$|\s*$")


def printed_arguments(text: str, file: str) -> list[RawEntry]:
    """Return the settings of the last block of arguments in a log; empty if it has none."""
    lines = text.split("\n")
    start = next((number for number in range(len(lines) - 1, -1, -1) if ARGUMENTS.search(lines[number])), len(lines))
    entries = []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if re.search(r"-{8,} end of arguments", line):
            break
        if match := _LOGGED.match(line):
            entries.append(RawEntry(match[1], match[2].removeprefix("torch."), SettingPlace(file, number, match[1])))
    return entries


def printed_document(text: str, file: str) -> SourceText | None:
    """Return the configuration in a log as a document with the lines of the log; None if it has none.

    torchtitan prints JSON, Megatron-Bridge and NeMo print YAML with the classes of their groups as ``_target_``.
    """
    lines = [_RANK.sub("", line.rstrip("\r")) for line in text.split("\n")]
    start = next((at for at, line in enumerate(lines) if re.search(r"Running with (?:args|configs?): \{$", line)), -1)
    if start >= 0 and "}" in lines[start:]:
        end = lines.index("}", start)
        return SourceText(file, "\n".join([*[""] * start, "{", *lines[start + 1 : end + 1]]), "json")
    start = next((at for at, line in enumerate(lines) if re.match(r"\s+_target_: ", line)), -1)
    if start < 0:
        return None
    end = start
    while start > 0 and _YAML_LINE.match(lines[start - 1]):
        start -= 1
    while end < len(lines) and _YAML_LINE.match(lines[end]):
        end += 1
    return SourceText(file, "\n".join([*[""] * start, *lines[start:end]]), "yaml")
