"""Values of settings as files write them, in Python's types."""

from __future__ import annotations

import ast
import re
from typing import Any

from pipeplan.extensions.review.settings import UNKNOWN, ReviewSetting

_NOTHING = frozenset({"none", "null", "~", ""})
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})

_LARGEST = 10**9
"""Largest count that a review computes with."""


def value_of(setting: ReviewSetting, raw: Any) -> Any:
    """Return the value of a setting in its type; None for ``null``, and UNKNOWN for what cannot be read as its type.

    Parameters
    ----------
    raw
        Text of a shell script or a log, or a plain value of a document.
    """
    if isinstance(raw, str) and raw.strip().lower() in _NOTHING:
        raw = None
    if raw is UNKNOWN:
        return UNKNOWN
    if raw is None:
        return None if setting.nullable else UNKNOWN
    return _READERS[setting.kind](raw)


def _count(raw: Any) -> Any:
    number = _number(raw)
    return int(number) if number is not UNKNOWN and number == int(number) and abs(number) <= _LARGEST else UNKNOWN


def _number(raw: Any) -> Any:
    if isinstance(raw, bool):
        return UNKNOWN
    if isinstance(raw, str):
        text = raw.strip().replace("_", "")
        if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,2})?", text):
            return UNKNOWN
        raw = float(text)
    if not isinstance(raw, int | float) or not abs(raw) <= 1e18:
        # Also what is not a number, and integers that no float holds.
        return UNKNOWN
    return int(raw) if raw == int(raw) else float(raw)


def _flag(raw: Any) -> Any:
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    return True if text in _TRUE else False if text in _FALSE else UNKNOWN


def _text(raw: Any) -> Any:
    if isinstance(raw, list | tuple | dict):
        return UNKNOWN if isinstance(raw, dict) else " ".join(map(str, raw))
    return str(raw).strip().strip("'\"")


def _names(raw: Any) -> Any:
    if isinstance(raw, str):
        raw = _listed(raw)
    if isinstance(raw, list | tuple):
        return tuple(str(part) for part in raw)
    return (str(raw),) if isinstance(raw, int | float | str) else UNKNOWN


def _listed(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,\[\]()'\"]+", text) if part]


def _layout(raw: Any) -> Any:
    """Return a layout as text, or as a tuple of stages with their layers' names."""
    if isinstance(raw, str) and raw.lstrip().startswith("["):
        try:
            raw = ast.literal_eval(raw.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return raw.strip()
    if isinstance(raw, str):
        # Files whose values pass through a shell escape the bars and brackets.
        return raw.strip().strip("'\"").replace("\\", "")
    if isinstance(raw, list | tuple) and all(isinstance(stage, list | tuple) for stage in raw):
        return tuple(tuple(str(layer) for layer in stage) for stage in raw)
    return UNKNOWN


_READERS = {"count": _count, "number": _number, "flag": _flag, "text": _text, "names": _names, "layout": _layout}
