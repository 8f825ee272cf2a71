"""YAML, TOML and JSON of trainers, and blocks of arguments in logs: keys and values with their lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.source import phase_of
from pipeplan.extensions.review.settings import setting_of, switch_of
from pipeplan.extensions.review.stated import RawEntry

_KEY = re.compile(r"""^\s*(?:-\s+)?["']?(?:--)?([A-Za-z_][\w.\-]*)["']?\s*[:=]\s*""")
_INLINE = re.compile(r'"([\w.\-]+)"\s*:\s*("[^"]*"|[^,{}\[\]\s]+)')
_DEFAULT = re.compile(r"\$\{[\w.]+:-?([^{}$]*)\}")
"""Matches Primus' variables with a default: ``${PRIMUS_TP:8}``."""

_LOGGED = re.compile(r"^(?:.*?[\])]:?\s*)?\s*([A-Za-z_]\w*) \.{3,} (.*?)\s*$")
"""Matches a line of Megatron's block of arguments, behind an optional prefix of the launcher."""

ARGUMENTS = re.compile(r"(?<!-)-{8,100} arguments -{8}")
"""Matches the line above Megatron's block of arguments."""

_OTHER_JOBS = frozenset(
    {"generation", "rollout", "vllm_cfg", "sglang_cfg", "vllm", "sglang", "teacher", "draft", "eval"}
)
"""Groups of keys that configure another job than the training."""

_NAMES = ("pretrained_model_name_or_path", "hf_path", "hf_model_id", "model_id")
"""Keys that name a model of a hub."""


def read_in_document(document: Any, text: str, file: str) -> list[RawEntry]:
    """Return the settings of a document with nested groups, with the lines of its text."""
    places = _places(text, file)
    if isinstance(document, list) and document and all(isinstance(part, list) for part in document):
        names = [name for part in document for name in part]
        key = "module_fqns_per_model_part" if any("layers." in str(name) for name in names) else "pipeline_layout"
        return [RawEntry(key, document, SettingPlace(file, 1, "the table of stages"))] if names else []
    entries = [*phase_of(places, file), *_entries_of(document, (), places)]
    model = document.get("model") if isinstance(document, Mapping) else None
    if isinstance(model, Mapping) and isinstance(model.get("flavor"), str) and isinstance(model.get("name"), str):
        # torchtitan names a family and a size.
        entries.append(
            RawEntry("model_name", f"{model['name']}-{model['flavor']}", _place(places, "flavor", model["flavor"]))
        )
    return entries


def read_in_lines(text: str, file: str) -> list[RawEntry]:
    """Return the settings of the lines ``key: value`` of a text, without its groups."""
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _KEY.match(line)
        if match is None or (setting_of(match[1]) is None and switch_of(match[1]) is None):
            continue
        value = re.sub(r"\s+#.*$", "", line[match.end() :]).strip().rstrip(",")
        if value:
            place = SettingPlace(file, number, match[1], match.end(), match.end() + len(value))
            entries.append(RawEntry(match[1], _with_default(value.strip("\"'")), place))
    return entries


def _entries_of(value: Any, parents: tuple[str, ...], places: Mapping[str, list[SettingPlace]]) -> Iterator[RawEntry]:
    if isinstance(value, Mapping):
        if value.get("enabled") is False:
            # A part that is switched off sets nothing.
            return
        for key, inner in value.items():
            if isinstance(inner, Mapping) and str(key).lower() in _OTHER_JOBS:
                continue
            yield from _entries_of(inner, (*parents, str(key)), places)
        return
    if isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for part in value:
            yield from _entries_of(part, parents, places)
        return
    if not parents:
        return
    raw = _with_default(value)
    key = ".".join(parents)
    last = parents[-1].lstrip("-")
    if last in _NAMES and isinstance(raw, str):
        yield RawEntry("model_name", raw.rstrip("/").rpartition("/")[2], _place(places, last, raw))
    elif last == "model" and isinstance(raw, str) and re.fullmatch(r"[\w.-]+\.ya?ml", raw):
        # Primus names a model's file: deepseek_v3.yaml.
        yield RawEntry("model_name", re.sub(r"\.ya?ml$", "", raw).replace("_", "-"), _place(places, last, raw))
    elif setting_of(key) is not None or switch_of(key) is not None:
        yield RawEntry(key, raw, _place(places, last, raw))


def _with_default(value: Any) -> Any:
    if isinstance(value, str) and "${" in value:
        after = _DEFAULT.sub(lambda match: match[1], value)
        return {} if "${" in after else after
    return value


def _places(text: str, file: str) -> dict[str, list[SettingPlace]]:
    places: dict[str, list[SettingPlace]] = defaultdict(list)
    for number, line in enumerate(text.split("\n"), 1):
        match = _KEY.match(line)
        if match is None or line[match.end() : match.end() + 1] == "{":
            # JSON may have several keys on a line.
            for inner in _INLINE.finditer(line):
                places[inner[1].lstrip("-")].append(SettingPlace(file, number, inner[1], *inner.span(2)))
            continue
        value = re.match(r"""("(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^#,\n]*?)\s*,?\s*(?:#.*)?$""", line[match.end() :])
        end = match.end() + (len(value[1]) if value else 0)
        places[match[1]].append(SettingPlace(file, number, match[1], match.end(), end))
    return places


def _place(places: Mapping[str, list[SettingPlace]], key: str, raw: Any) -> SettingPlace:
    """Return the place of a key; of several, the first that nothing else has taken."""
    lines = places.get(key)
    if not lines:
        return SettingPlace(key=key)
    return lines.pop(0) if len(lines) > 1 else lines[0]


def read_in_log(text: str, file: str) -> list[RawEntry]:
    """Return the settings of the last block of arguments in a log; empty if it has none."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if ARGUMENTS.search(line)]
    if not starts:
        return []
    entries = []
    for number, line in enumerate(lines[starts[-1] + 1 :], starts[-1] + 2):
        if re.search(r"-{8,} end of arguments", line):
            break
        match = _LOGGED.match(line)
        if match:
            raw: Any = match[2]
            if raw.startswith("torch."):
                raw = raw.removeprefix("torch.")
            entries.append(RawEntry(match[1], raw, SettingPlace(file, number, match[1])))
    return entries
