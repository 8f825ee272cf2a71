"""Patches: changes of settings as edits of the text that they were read from, in its own form.

An edit replaces the value where the text has it, and else adds a line beside a setting of the same kind. The patched text is
read again: a patch is proposed only if it then says exactly the changes.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeplan.extensions.review.facts import ReviewFacts, SettingPlace
from pipeplan.extensions.review.readers import Reading, SourceText, is_quoted, read_text_of
from pipeplan.extensions.review.settings import SETTINGS
from pipeplan.foundation.errors import PipeplanError

_CORE_SPELLINGS = {
    "vpp": "virtual_pipeline_model_parallel_size",
    "first_stage_layers": "num_layers_in_first_pipeline_stage",
    "last_stage_layers": "num_layers_in_last_pipeline_stage",
    "overlap_p2p": "overlap_p2p_comm",
    "batch_p2p": "batch_p2p_comm",
    "group_size": "microbatch_group_size_per_vp_stage",
    "fp8": "fp8",
    "experts": "num_moe_experts",
    "gpus": "num_gpus",
}
"""Fields of Megatron-core's configuration where Megatron-LM's argument has another name."""

_TORCH_SPELLINGS = {
    "torchtitan": {
        "tp": "tensor_parallel_degree",
        "pp": "pipeline_parallel_degree",
        "cp": "context_parallel_degree",
        "ep": "expert_parallel_degree",
        "dp_shard": "data_parallel_shard_degree",
        "local_batch": "local_batch_size",
        "micro_batch": "pipeline_parallel_microbatch_size",
        "schedule": "pipeline_parallel_schedule",
        "layers_per_stage": "pipeline_parallel_layers_per_stage",
        "microbatches": "num_pp_microbatches",
        "ac_mode": "mode",
    },
    "nemo-automodel": {
        "tp": "tp_size",
        "pp": "pp_size",
        "cp": "cp_size",
        "ep": "ep_size",
        "local_batch": "local_batch_size",
        "micro_batch": "pp_microbatch_size",
        "schedule": "pp_schedule",
        "layers_per_stage": "layers_per_stage",
        "round_stages": "round_virtual_stages_to_pp_multiple",
    },
}

_BESIDE = {
    "ac_mode": (),
    "last_stage_layers": ("first_stage_layers",),
    "first_stage_layers": ("last_stage_layers",),
    "eval_global_batch": ("global_batch", "micro_batch"),
    "micro_batch": ("global_batch", "local_batch"),
    "local_batch": ("global_batch", "micro_batch"),
    "global_batch": ("micro_batch", "local_batch"),
    "microbatches": ("schedule", "pp"),
}
"""Settings beside which a new one is written; of all others those of the pipeline."""

_PIPELINE = ("pp", "vpp", "layout", "first_stage_layers", "last_stage_layers", "tp", "cp", "ep", "schedule")


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes in the form of the input.

    Attributes
    ----------
    diff
        Unified diff of the text, or the changed settings one per line if the text cannot hold them.
    text
        The patched text; None if the text cannot hold the changes.
    """

    diff: str
    text: str | None


@dataclass
class _Lines:
    """Lines of a text with edits of columns and insertions, applied from the end."""

    lines: list[str]
    replacements: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict)
    insertions: dict[int, list[str]] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)

    def text(self) -> str:
        """Return the edited text."""
        edited: list[str] = []
        for number, line in enumerate(self.lines):
            changed = line
            for start, end, new in sorted(self.replacements.get(number, []), reverse=True):
                changed = changed[:start] + new + changed[end:]
            if number not in self.removed:
                edited.append(changed)
            edited += self.insertions.get(number, [])
        return "\n".join(edited)


def patched(reading: Reading, changes: Mapping[str, Any]) -> Patch:
    """Return a patch of changes for the text of a configuration."""
    source, facts = reading.source, reading.facts
    text = _edited(source, facts, changes)
    if text is None or text == source.text or not _says(source, facts, text, changes):
        return Patch(_listed(facts, changes), None)
    name = source.file.replace("\\", "/").lstrip("/")
    diff = difflib.unified_diff(
        source.text.splitlines(keepends=True), text.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=1
    )
    return Patch("".join(part if part.endswith("\n") else f"{part}\n" for part in diff), text)


def _listed(facts: ReviewFacts, changes: Mapping[str, Any]) -> str:
    return "".join(f"{spelling(facts, name, 'list')}: {plain(value)}\n" for name, value in changes.items())


def spelling(facts: ReviewFacts, name: str, form: str) -> str:
    """Return the key by which the trainer spells a setting."""
    own = _TORCH_SPELLINGS.get(facts.trainer.name, {}).get(name)
    if own is None and "megatron-lm" not in facts.trainer.scopes and facts.trainer.name != "ms-swift":
        own = _CORE_SPELLINGS.get(name)
    return own or SETTINGS[name].keys[0].rpartition(".")[2]


def plain(value: Any) -> str:
    """Return a value as YAML and JSON write it."""
    if isinstance(value, tuple):
        return json.dumps(_lists(value))
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return str(value)


def _lists(value: Any) -> Any:
    return [_lists(part) for part in value] if isinstance(value, tuple | list) else value


def _edited(source: SourceText, facts: ReviewFacts, changes: Mapping[str, Any]) -> str | None:
    if source.form in ("log", "layout"):
        return _layout_text(source, changes) if source.form == "layout" else None
    lines = _Lines(source.text.split("\n"))
    for name, value in changes.items():
        entry = facts.settings.get(name)
        place = entry.place if entry is not None and not entry.assumed else SettingPlace()
        if place.line and place.start >= 0:
            done = _replace(lines, source, place, name, value)
        elif place.line and source.form == "python":
            done = _override(lines, facts, place, name, value)
        elif value is None or value is False:
            done = entry is None or entry.assumed
        else:
            done = _insert(lines, source, facts, name, value)
        if not done:
            return None
    return lines.text()


def _override(lines: _Lines, facts: ReviewFacts, place: SettingPlace, name: str, value: Any) -> bool:
    """Set a setting again behind the call that sets it: ``cfg.model.x = ...`` beside ``set_layout(cfg.model)``."""
    owner = next(
        (
            match[1]
            for other in _PIPELINE
            if (entry := facts.settings.get(other)) is not None and entry.place.line and entry.place.start > 0
            if (match := re.match(r"\s*((?:\w+\.)+)\w+\s*=", lines.lines[entry.place.line - 1]))
        ),
        None,
    )
    if owner is None:
        return False
    line = lines.lines[place.line - 1]
    indent = line[: len(line) - len(line.lstrip())]
    key = spelling(facts, name, "python")
    text = _literal(SourceText("", "", "python"), value, "")
    lines.insertions.setdefault(place.line - 1, []).append(f"{indent}{owner}{key} = {text}")
    return line.rstrip().endswith(")")


def _layout_text(source: SourceText, changes: Mapping[str, Any]) -> str | None:
    ending = "\n" if source.text.endswith("\n") else ""
    return f"{changes['layout']}{ending}" if changes.keys() == {"layout"} and changes["layout"] else None


def _replace(lines: _Lines, source: SourceText, place: SettingPlace, name: str, value: Any) -> bool:
    number = place.line - 1
    line = lines.lines[number]
    if source.form != "shell":
        new = _literal(source, value, line[place.start : place.end])
        lines.replacements.setdefault(number, []).append((place.start, place.end, new))
        return True
    if SETTINGS[name].kind == "flag" or value is None:
        if value is True and not place.key.startswith("--no-"):
            return True
        return _remove_flag(lines, number, place)
    new = _shell_value(source, place, value, line[place.start - 1 : place.start])
    lines.replacements.setdefault(number, []).append((place.start, place.end, new))
    return True


def _remove_flag(lines: _Lines, number: int, place: SettingPlace) -> bool:
    """Remove a flag and its value; the whole line if nothing else is on it."""
    line = lines.lines[number]
    start = line.rfind(place.key, 0, max(place.start, place.end, len(place.key)) + 1)
    if start < 0:
        return False
    end = max(place.end, start + len(place.key))
    rest = (line[:start] + line[end:]).strip()
    if rest in ("", "\\"):
        lines.removed.add(number)
    else:
        lines.replacements.setdefault(number, []).append((start, end + (line[end : end + 1] == " "), ""))
    return True


def _insert(lines: _Lines, source: SourceText, facts: ReviewFacts, name: str, value: Any) -> bool:
    anchor = _anchor(source, facts, name)
    if anchor is None:
        return False
    number = anchor.line - 1
    line = lines.lines[number]
    indent = line[: len(line) - len(line.lstrip())]
    key = spelling(facts, name, source.form)
    if source.form == "shell":
        underscores = "_" in anchor.key and "-" not in anchor.key.lstrip("-")
        flag = f"--{key}" if underscores else f"--{key.replace('_', '-')}"
        value_text = "" if value is True else f" {_shell_value(source, anchor, value)}"
        continued = line.rstrip().endswith("\\")
        end = " \\" if continued else ""
        own_line = line.lstrip().startswith("--") and not line.rstrip().endswith((")", '"', "'"))
        if own_line and (continued or not (number and lines.lines[number - 1].rstrip().endswith("\\"))):
            lines.insertions.setdefault(number, []).append(f"{indent}{flag}{value_text}{end}")
        else:
            lines.replacements.setdefault(number, []).append((anchor.end, anchor.end, f" {flag}{value_text}"))
        return True
    text = _literal(source, value, "")
    if source.form in ("list", "python"):
        in_list = source.form == "list"
        return _insert_in_list(lines, anchor, key, value) if in_list else _insert_python(lines, number, key, text)
    stripped = line.strip()
    if source.form == "yaml":
        dashes = "--" if stripped.startswith("--") else ""
        new = f"{indent}{dashes}{key.replace('_', '-') if dashes else key}: {text}"
    elif source.form == "toml":
        new = f"{indent}{key} = {text}"
    else:
        if not stripped.startswith('"'):
            return False
        # Before the anchor, so that no comma is missing behind it.
        lines.insertions.setdefault(number - 1, []).append(f'{indent}"{key}": {text},')
        return number > 0
    lines.insertions.setdefault(number, []).append(new)
    return True


def _insert_in_list(lines: _Lines, anchor: SettingPlace, key: str, value: Any) -> bool:
    """Insert an argument behind another one of a list: ``"--num-layers", "46"``."""
    at = anchor.end + 1
    quote = lines.lines[anchor.line - 1][anchor.end : at]
    flag = f"--{key.replace('_', '-')}"
    further = "".join(f", {quote}{word}{quote}" for word in ((flag,) if value is True else (flag, value)))
    lines.replacements.setdefault(anchor.line - 1, []).append((at, at, further))
    return quote in ("'", '"')


def _insert_python(lines: _Lines, number: int, key: str, text: str) -> bool:
    line = lines.lines[number]
    assigned = re.match(r"(\s*)((?:\w+(?:\[[^\]]*\])?\.)+)\w+\s*=(?!=)", line)
    if assigned:
        lines.insertions.setdefault(number, []).append(f"{assigned[1]}{assigned[2]}{key} = {text}")
        return True
    keyword = re.match(r"(\s*)\w+=.*,\s*(?:#.*)?$", line)
    if keyword:
        lines.insertions.setdefault(number, []).append(f"{keyword[1]}{key}={text},")
        return True
    quoted = re.match(r"""(\s*)(["'])\w+\2:.*,\s*(?:#.*)?$""", line)
    if quoted:
        lines.insertions.setdefault(number, []).append(f"{quoted[1]}{quoted[2]}{key}{quoted[2]}: {text},")
        return True
    return False


def _anchor(source: SourceText, facts: ReviewFacts, name: str) -> SettingPlace | None:
    """Return the place of a setting beside which another one belongs."""
    for other in (*_BESIDE.get(name, ()), *_PIPELINE, "global_batch", "micro_batch"):
        entry = facts.settings.get(other)
        if entry is None or entry.assumed or not entry.place.line or entry.place.file != source.file:
            continue
        if source.form != "shell" or entry.place.key.startswith("--"):
            return entry.place
    return None


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
        return json.dumps(_lists(value))
    if source.form == "python":
        return repr(value) if not isinstance(value, str) else json.dumps(value)
    if source.form == "toml":
        return json.dumps(value) if value is not None else '""'
    if source.form == "json" or isinstance(value, bool | int | float) or value is None:
        return json.dumps(value)
    quote = old[:1] if old[:1] in ("'", '"') else '"' if re.search(r"[|*:#{}\[\],&!%@`]", value) else ""
    return f"{quote}{value}{quote}"


def _says(source: SourceText, facts: ReviewFacts, text: str, changes: Mapping[str, Any]) -> bool:
    """Return True if the patched text, read again, has the changes in this configuration."""
    try:
        again = read_text_of(text, source.file, trainer=facts.trainer.name or None, release=facts.release)
    except PipeplanError:
        return False
    named: Sequence[ReviewFacts] = [reading.facts for reading in again if reading.facts.name == facts.name]
    return len(named) == 1 and all(_same(named[0].get(name, None), value) for name, value in changes.items())


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, tuple) or isinstance(other, tuple):
        return str(_lists(value)) == str(_lists(other))
    return bool(value == other) or (not value and not other) or str(value) == str(other)
