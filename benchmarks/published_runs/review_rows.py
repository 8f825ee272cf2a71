"""Rows of public repairs and of public recipes: ``{"trainer", "model": {...}, "config": {...}}``.

A row says only what it names. ``before`` and ``after`` of a repair are read as two configurations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeplan.extensions.review.facts import Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.models import properties_of
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN
from pipeplan.extensions.review.values import value_of
from pipeplan.trainers import trainer_kind

_PARTS = ("config", "before", "after")
"""Parts of a row that hold a configuration."""

_NAMES = {
    "eval_global_batch_size": "eval_global_batch",
    "kv_heads": "kv_groups",
    "num_layers": "layers",
    "sequence": "seq_length",
    "seq": "seq_length",
    "sp": "sequence_parallel",
    "micro": "micro_batch",
    "world_size": "gpus",
    "task": "phase",
}
"""Further spellings of settings in rows."""


def read_row(row: Mapping[str, Any], file: str) -> Iterator[ReviewFacts]:
    """Yield the configurations of a row."""
    for part in _PARTS:
        if isinstance(row.get(part), Mapping):
            yield _facts(row, part, file, row["id"] if part == "config" else f"{row['id']} {part}")


def _facts(row: Mapping[str, Any], part: str, file: str, name: str) -> ReviewFacts:
    model = row.get("model") if isinstance(row.get("model"), Mapping) else {"name": row.get("model")}
    settings: dict[str, Entry] = {}
    for where, values in (("model", model), (part, row[part])):
        for key, raw in (values or {}).items():
            setting = SETTINGS.get(_NAMES.get(key, key))
            if where == "model" and key == "name":
                setting = SETTINGS["model_name"]
            if setting is None:
                continue
            value = value_of(setting, raw)
            if value is not UNKNOWN:
                settings[setting.name] = Entry(value, SettingPlace(file, 0, f"{where}.{key}"))
    if row[part].get("etp_unset"):
        settings["etp"] = Entry(None, SettingPlace(file, 0, f"{part}.etp"))
    if isinstance(row.get("phase"), str):
        settings["phase"] = Entry(row["phase"], SettingPlace(file, 0, "phase"))
    for name_of_property, value in properties_of(str((model or {}).get("name") or "")).items():
        settings.setdefault(name_of_property, Entry(value, SettingPlace(file, 0, "model.name"), assumed=True))
    trainer = re.sub(r"\s*\(.*\)", "", row["trainer"])  # without brackets: ``megatron-lm (slime)``
    return ReviewFacts(trainer_kind(trainer), settings, row.get("release") or row.get("trainer_version") or "", name)
