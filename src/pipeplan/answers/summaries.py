"""Summaries of answers: the parts of their JSON that answer the question, in at most :data:`MOST_BYTES`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeplan.answers.parts import MOST_ROWS
from pipeplan.foundation.documents import json_text

MOST_BYTES = 4_000
"""Maximum length of a summary as compact JSON: below 1,500 tokens, of which one is 2.9 bytes of such text on average."""

MOST_CHARACTERS = 1_000
"""Maximum length of a text in a summary; a longer one, such as a patch, is left out whole."""

DIGITS = 6
"""Significant digits of the numbers in a summary."""

_EMPTY: tuple[Any, ...] = (None, "", [], {})

Path = Sequence[str]


def summary_of(document: dict[str, Any], fields: str) -> dict[str, Any]:
    """Return the headline of an answer and the parts of its JSON at these paths, such as ``results.makespan warnings``.

    Of a number for each rank, it has the largest; of a longer list, the first ten rows, or fewer if the summary would be
    too long. Empty parts are left out. ``not_shown`` names the rows, texts and keys of the JSON that are missing.
    """
    paths = [path.split(".") for path in ("headline", *fields.split())]
    for rows in range(MOST_ROWS, 0, -1):
        summary = _Summary(rows)
        parts: dict[str, Any] = summary.of(document, paths)
        others = [name for name, value in document.items() if name not in parts and value not in _EMPTY]
        if missing := list(dict.fromkeys([*summary.cut(), *others])):
            parts["not_shown"] = ", ".join(missing)
        if len(json_text(parts, compact=True)) <= MOST_BYTES:
            break
    return parts


class _Summary:
    """Parts of a document with at most so many rows of each list, and what was left out of it."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._lists: dict[str, tuple[int, int]] = {}
        self._texts: dict[str, None] = {}

    def of(self, value: Any, paths: Sequence[Path], name: str = "") -> Any:
        """Return the parts of a value at these paths; ``name`` is that of the field that holds it."""
        if isinstance(value, list):
            return self._list(value, paths, name)
        if isinstance(value, dict):
            return self._object(value, paths)
        if isinstance(value, float):
            return _rounded(value)
        if isinstance(value, str) and len(value) > MOST_CHARACTERS:
            self._texts[name] = None
            return None
        return value

    def _list(self, value: list[Any], paths: Sequence[Path], name: str) -> Any:
        if value and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            return _rounded(max(value))
        if len(value) > self._rows:
            shown, total = self._lists.get(name, (0, 0))
            self._lists[name] = (shown + self._rows, total + len(value))
        return [self.of(item, paths, name) for item in value[: self._rows]]

    def _object(self, value: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
        names = value if [] in paths else dict.fromkeys(path[0] for path in paths)
        parts = {
            name: self.of(value[name], [[]] if [] in paths else [path[1:] for path in paths if path[0] == name], name)
            for name in names
            if name in value
        }
        return {name: part for name, part in parts.items() if part not in _EMPTY}

    def cut(self) -> list[str]:
        """Return what was left out of lists, such as ``15 of 25 results``, and the names of the texts that were left out."""
        lists = (f"{total - shown} of {total} {name}" for name, (shown, total) in self._lists.items())
        return [*lists, *self._texts]


def _rounded(number: float) -> float:
    """Return a number with its significant digits; a large one without its fraction."""
    if abs(number) >= 10 ** (DIGITS - 1) or float(number).is_integer():
        return round(number)
    return float(f"{number:.{DIGITS}g}")
