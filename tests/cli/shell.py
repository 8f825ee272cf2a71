"""Settings as the words of a command line."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeplan.costs import SETTINGS


def words_of(settings: Mapping[str, Any], folder: Path) -> list[str]:
    """Return settings as options of the shell; those that the shell reads from a file become files in the folder."""
    words: list[str] = []
    in_file = {
        name: value
        for name, value in settings.items()
        if name in SETTINGS and (SETTINGS[name].shell == "none" or (name == "overlap_times" and "[[" in str(value)))
    }
    if in_file:
        path = folder / "settings.json"
        path.write_text(json.dumps({"costs_name": "", **in_file}))
        words += ["-c", str(path)]
    for name, value in settings.items():
        if name in in_file:
            continue
        texts = list(_texts(name, value, folder))
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [f"{option}={text}" for text in texts]
    return words


_FILES = ("layers", "lengths", "microbatch_factors")


def _texts(name: str, value: Any, folder: Path) -> Iterator[str]:
    if isinstance(value, dict | list) and name in _FILES:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(value))
        yield str(path)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(name, item, folder)
    elif value is not False:
        yield str(value)
