"""Changes of settings as edits of the text that they were read from, in its own form.

An edit replaces the value where the text has it, and else adds a line beside a setting of the same kind. A value that
other configurations of a Python file share is overridden at the end of the configuration's own function.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.facts import ReviewFacts, SettingPlace
from pipeplan.extensions.review.readers import Reading, SourceText, is_quoted
from pipeplan.extensions.review.settings import SETTINGS
from pipeplan.extensions.review.spellings import BESIDE, BRIDGE_PARTS, PIPELINE, anchor_of, spelling
from pipeplan.extensions.review.text_edits import NoPatch, TextEdit
from pipeplan.model import one_line


def edits_of(
    reading: Reading, changes: Mapping[str, Any], shared: Mapping[SettingPlace, str] = MappingProxyType({})
) -> list[TextEdit]:
    """Return the edits of a configuration's text that make changes.

    Parameters
    ----------
    shared
        Places that the changes must leave as they are, with the other configurations that share them.

    Raises
    ------
    NoPatch
        If the text cannot hold the changes.
    """
    source, facts = reading.source, reading.facts
    if source.form == "log":
        raise NoPatch("the file is a log: change the arguments where they are set")
    if source.form == "layout":
        return [_whole_layout(source, changes)]
    edits: list[TextEdit] = []
    for name, value in changes.items():
        entry = facts.settings.get(name)
        stated = entry is not None and not entry.assumed
        place = entry.place if entry is not None and stated else SettingPlace()
        removes = value is None or value is False
        if removes and not stated:
            continue
        own = place.file == source.file and place not in shared
        if own and place.line and place.start >= 0:
            if name == "gpus" and "nodes" in changes and "$" in _text_at(source, place):
                continue  # computed from the nodes
            edits += _replace(source, place, name, value)
        elif source.form == "python":
            edits += _in_python(reading, name, value, place if own else None, shared)
        elif removes and (source.form not in ("yaml", "json") or place in shared):
            raise NoPatch(_elsewhere(place, name, shared))
        else:
            edits += _insert(source, facts, name, value, shared)
        if own and name in _DIRECTIVES and source.form == "shell":
            edits += _directives(source, place, name, entry.value if entry is not None else None, value)
    return edits


def _elsewhere(place: SettingPlace, name: str, shared: Mapping[SettingPlace, str]) -> str:
    """Return why a setting cannot be changed at its place."""
    key = SETTINGS[name].keys[0]
    if place in shared:
        return f"{key} in line {place.line} is shared with {shared[place]}, which needs another value"
    return f"{key} is set at {one_line(str(place))}" if place.line else f"the text has no place for {key}"


_DIRECTIVES = {"nodes": r"--nodes|-N", "gpus_per_node": r"--gpus-per-node|--gres|--gpus-on-node"}
"""Directives of Slurm that say the same as an argument of a launcher."""


def _directives(source: SourceText, place: SettingPlace, name: str, old: Any, value: Any) -> Iterator[TextEdit]:
    """Yield the edits of further directives that say the old value, which a launcher's argument repeats."""
    pattern = re.compile(rf"#SBATCH\s+(?:{_DIRECTIVES[name]})(?:[=\s]+|=\S*:)(?:gpu:(?:\w+:)?)?({old})\s*$")
    for number, line in enumerate(source.text.split("\n")):
        if number + 1 != place.line and (match := pattern.match(line)):
            yield TextEdit(number, match.start(1), match.end(1), str(value))


_Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=4)
def _functions_of(text: str) -> dict[str, _Function]:
    """Return the functions of a Python module by their names."""
    try:
        return {node.name: node for node in ast.parse(text).body if isinstance(node, _Function)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _in_python(
    reading: Reading, name: str, value: Any, call: SettingPlace | None, shared: Mapping[SettingPlace, str]
) -> list[TextEdit]:
    """Set a setting beside another one of the configuration's own, or behind all that its function sets.

    Parameters
    ----------
    call
        Place of a call that sets it, such as ``set_layout(cfg.model)``; it must come before.
    """
    source, facts = reading.source, reading.facts
    function = _functions_of(source.text).get(facts.name)
    lines = source.text.split("\n")
    text = _literal(SourceText("", "", "python"), value, "")
    entry = facts.settings.get(name)
    refused = NoPatch(_elsewhere(entry.place if entry is not None else SettingPlace(), name, shared))
    inside = range(0, len(lines) + 1) if function is None else range(function.lineno, (function.end_lineno or 0) + 1)
    anchor = anchor_of(source, facts, name, lambda place: place.line in inside and place not in shared)
    if (entry is None or entry.assumed) and anchor is not None and (edits := _beside(lines, facts, name, text, anchor)):
        return edits
    path = _path_of(facts, name)
    if function is None or not path:
        raise refused
    if call is not None and call.line in inside and lines[call.line - 1].rstrip().endswith(")"):
        owner = anchor and re.match(r"\s*(\w+)\.", lines[anchor.line - 1])
        indent = re.match(r"\s*", lines[call.line - 1])
        if owner and indent:
            return [TextEdit(call.line - 1, new=f"{indent[0]}{owner[1]}.{path} = {text}")]
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        raise refused
    return [TextEdit(last.lineno - 2, new=f"{' ' * last.col_offset}{last.value.id}.{path} = {text}")]


def _path_of(facts: ReviewFacts, name: str) -> str:
    """Return the attribute of a configuration that holds a setting: ``model.pipeline_dtype``; empty if unknown.

    A key may begin with the variable of the configuration: ``cfg.model.pipeline_dtype``.
    """
    for other in (name, *BESIDE.get(name, ()), *PIPELINE):
        entry = facts.settings.get(other)
        parts = [] if entry is None or not entry.place.line else entry.place.key.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            continue
        owner = parts[len(parts) > 2 : -1]
        if other == name:
            return ".".join((*owner, parts[-1]))
        if "megatron-bridge" in facts.trainer.scopes and owner == ["model"]:
            owner = [BRIDGE_PARTS.get(name, "model")]
        return ".".join((*owner, spelling(facts, name, "python")))
    return ""


def _beside(lines: list[str], facts: ReviewFacts, name: str, text: str, anchor: SettingPlace) -> list[TextEdit]:
    """Return the edit that sets a setting in the line behind another one, in the same form; empty for other forms."""
    number, key = anchor.line - 1, spelling(facts, name, "python")
    line = lines[number]
    if assigned := re.match(r"(\s*)((?:\w+(?:\[[^\]]*\])?\.)+)\w+\s*=(?!=)", line):
        owner = assigned[2]
        if (part := BRIDGE_PARTS.get(name)) and "megatron-bridge" in facts.trainer.scopes and owner.endswith(".model."):
            owner = f"{owner[: -len('model.')]}{part}."
        return [TextEdit(number, new=f"{assigned[1]}{owner}{key} = {text}")]
    if keyword := re.match(r"(\s*)\w+=.*,\s*(?:#.*)?$", line):
        return [TextEdit(number, new=f"{keyword[1]}{key}={text},")]
    if quoted := re.match(r"""(\s*)(["'])\w+\2:.*,\s*(?:#.*)?$""", line):
        return [TextEdit(number, new=f"{quoted[1]}{quoted[2]}{key}{quoted[2]}: {text},")]
    if anchor.start > 0 and re.search(r"[(,]\s*\w+=$", line[: anchor.start]):
        return [TextEdit(number, anchor.end, anchor.end, f", {key}={text}")]
    return []


def _text_at(source: SourceText, place: SettingPlace) -> str:
    return source.text.split("\n")[place.line - 1][place.start : place.end]


def _assigned(source: SourceText, place: SettingPlace) -> SettingPlace:
    """Return the place where a script's variable gets its value, if a place only repeats it; else the place itself."""
    variable = re.fullmatch(r"""["']?\$\{?(\w+)\}?["']?""", _text_at(source, place)) if source.form == "shell" else None
    if variable is None:
        return place
    assignment = re.compile(
        rf"""\s*(?:export\s+)?{variable[1]}=["']?(?:\$\{{{variable[1]}:-)?([\w.-]+)[}}"']*\s*(?:#.*)?$"""
    )
    lines = list(enumerate(source.text.split("\n"), 1))
    assigned = [(number, line) for number, line in lines if re.match(rf"\s*(?:export\s+)?{variable[1]}=", line)]
    value = assignment.match(assigned[0][1]) if len(assigned) == 1 else None
    return place if value is None else replace(place, line=assigned[0][0], start=value.start(1), end=value.end(1))


def _whole_layout(source: SourceText, changes: Mapping[str, Any]) -> TextEdit:
    if changes.keys() != {"layout"} or not changes["layout"] or len(source.text.strip().split("\n")) > 1:
        raise NoPatch("the file has room for a layout alone")
    return TextEdit(0, 0, len(source.text.split("\n")[0].rstrip("\r")), changes["layout"])


def _replace(source: SourceText, place: SettingPlace, name: str, value: Any) -> list[TextEdit]:
    number = place.line - 1
    line = source.text.split("\n")[number]
    if value is None and source.form == "yaml" and line.lstrip().startswith("--"):
        # An argument has no null.
        return [TextEdit(number)]
    if source.form != "shell":
        return [TextEdit(number, place.start, place.end, _literal(source, value, line[place.start : place.end]))]
    if SETTINGS[name].kind == "flag" or value is None:
        if value is True and not place.key.startswith("--no-"):
            return []
        return [_without_flag(line, place)]
    if place.start == place.end and not line[: place.start].endswith(place.key):
        # A launcher's default, which is written out behind its other flag.
        return [TextEdit(number, place.end, place.end, f" {place.key} {_shell_value(source, place, value)}")]
    at = _assigned(source, place)
    before = source.text.split("\n")[at.line - 1][at.start - 1 : at.start]
    return [TextEdit(at.line - 1, at.start, at.end, _shell_value(source, at, value, before))]


def _without_flag(line: str, place: SettingPlace) -> TextEdit:
    """Return the edit that removes a flag and its value; the whole line if nothing else is on it."""
    start = line.rfind(place.key, 0, max(place.start, place.end, len(place.key)) + 1)
    if start < 0:
        raise NoPatch(f"{one_line(place.key)} is not in its line {place.line}")
    end = max(place.end, start + len(place.key))
    rest = (line[:start] + line[end:]).strip()
    if rest == "\\":
        return TextEdit(place.line - 1)
    if not rest:
        # The line before may go on here, so that its end stays.
        return TextEdit(place.line - 1, 0, len(line.rstrip("\r")), "")
    return TextEdit(place.line - 1, start, end + (line[end : end + 1] == " "), "")


def _insert(
    source: SourceText, facts: ReviewFacts, name: str, value: Any, shared: Mapping[SettingPlace, str]
) -> list[TextEdit]:
    anchor = anchor_of(source, facts, name, lambda place: place not in shared)
    if anchor is None:
        raise NoPatch(f"the text has no setting beside which {SETTINGS[name].keys[0]} belongs")
    number, lines = anchor.line - 1, source.text.split("\n")
    line = lines[number]
    indent = line[: len(line) - len(line.lstrip())]
    key = spelling(facts, name, source.form)
    if source.form == "shell":
        return [_inserted_flag(source, lines, anchor, key, value)]
    if source.form == "list":
        return [_inserted_argument(lines, anchor, key, value)]
    text, stripped = _literal(source, value, ""), line.strip()
    if source.form == "yaml":
        dashes = "--" if stripped.startswith("--") else ""
        return [TextEdit(number, new=f"{indent}{dashes}{key.replace('_', '-') if dashes else key}: {text}")]
    if source.form == "toml":
        return [TextEdit(number, new=f"{indent}{key} = {text}")]
    if not stripped.startswith('"') or not number:
        raise NoPatch(f"the text has no line beside which {key} belongs")
    # Before the anchor, so that no comma is missing behind it.
    return [TextEdit(number - 1, new=f'{indent}"{key}": {text},')]


def _inserted_flag(source: SourceText, lines: list[str], anchor: SettingPlace, key: str, value: Any) -> TextEdit:
    """Return the edit that adds a flag behind another one: on a line of its own if that one is."""
    number = anchor.line - 1
    line = lines[number].rstrip()
    if key == "nnodes" and anchor.key.endswith("num_gpus"):
        key = "num_nodes"
    underscores = "_" in anchor.key and "-" not in anchor.key.lstrip("-")
    flag = f"--{key}" if underscores else f"--{key.replace('_', '-')}"
    added = flag if value is True else f"{flag} {_shell_value(source, anchor, value)}"
    continued = line.endswith("\\")
    own_line = line.lstrip().startswith("--") and not line.endswith((")", '"', "'"))
    if own_line and (continued or not (number and lines[number - 1].rstrip().endswith("\\"))):
        indent = line[: len(line) - len(line.lstrip())]
        return TextEdit(number, new=f"{indent}{added}{' ' + chr(92) if continued else ''}")
    return TextEdit(number, anchor.end, anchor.end, f" {added}")


def _inserted_argument(lines: list[str], anchor: SettingPlace, key: str, value: Any) -> TextEdit:
    """Return the edit that adds an argument behind another one of a list: ``"--num-layers", "46"``."""
    at = anchor.end + 1
    quote = lines[anchor.line - 1][anchor.end : at]
    if quote not in ("'", '"'):
        raise NoPatch(f"{one_line(anchor.key)} is not a text in a list")
    flag = f"--{key.replace('_', '-')}"
    further = "".join(f", {quote}{word}{quote}" for word in ((flag,) if value is True else (flag, value)))
    return TextEdit(anchor.line - 1, at, at, further)


def _shell_value(source: SourceText, place: SettingPlace, value: Any, before: str = "") -> str:
    """Return a value as a script writes it: with quotes, unless it stands in quotes that a shell does not read again."""
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    if isinstance(value, tuple) or not re.search(r"[|()*\s]", text) or (before and before in "\"'"):
        return text
    again = re.search(r"(?:^|\s)(?:-l?c\s+[\"$]|eval\s)", source.text)
    return text if is_quoted(source.text, place.line, place.start) and not again else f"'{text}'"


def _literal(source: SourceText, value: Any, old: str) -> str:
    """Return a value as the form writes it, in the quotes of the old one."""
    if source.form == "list":
        return str(value)
    if isinstance(value, tuple):
        return json.dumps(value)
    if source.form == "python":
        return repr(value) if not isinstance(value, str) else json.dumps(value)
    if source.form == "toml":
        return json.dumps(value) if value is not None else '""'
    if source.form == "json" or isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    quote = old[:1] if old[:1] in ("'", '"') else '"' if re.search(r"[|*:#{}\[\],&!%@`]", value) else ""
    return f"{quote}{value}{quote}"
