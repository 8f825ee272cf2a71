"""The config file that holds measured costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeplan.costs.from_settings import Settings
from pipeplan.documents import json_text
from pipeplan.errors import InputError
from pipeplan.files import write_text


def require_costs_file(path: Path) -> None:
    """Refuse an ending that no costs file has. Raises InputError."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        raise InputError(f"a costs file is .yaml or .json, not {path.name}")


def write_costs_file(path: Path, settings: Settings, comments: Iterable[str] = ()) -> None:
    """Write the settings that say something as a config file; its ending is .yaml, .yml or .json.

    A YAML file says in ``comments``, a line each, where the numbers come from.

    Raises
    ------
    InputError
        For another ending, or where it cannot be written.
    """
    require_costs_file(path)
    defaults = asdict(Settings())
    values = {key: value for key, value in asdict(settings).items() if value != defaults[key]}
    if path.suffix == ".json":
        write_text(path, json_text(_rounded(values), indent=2) + "\n")
        return
    lines = (f"# {line}\n" for line in comments)
    write_text(path, "".join([*lines, *(f"{key}: {json_text(_rounded(value))}\n" for key, value in values.items())]))


def _rounded(value: Any) -> Any:
    """Five digits of a time, all of a size."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.5g}")
    return value
