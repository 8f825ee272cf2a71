"""JSON as its standard has it: a number is finite, a key stands once. What pipeplan writes as JSON is written here."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from pipeplan.errors import CostError, FormatError


def json_text(document: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """A document of plain values, or a record, as JSON.

    Parameters
    ----------
    indent
        Blanks before what stands inside of something else; None: all in one line.
    compact
        Without blanks between the parts.

    Raises
    ------
    CostError
        For a number that is not finite; the message says where it stands.
    """
    separators = (",", ":") if compact else None
    try:
        return json.dumps(document, indent=indent, separators=separators, allow_nan=False, default=msgspec.to_builtins)
    except ValueError:
        plain = json.loads(json.dumps(document, default=msgspec.to_builtins))
        place, value = next(_not_finite(plain, ""))
        raise CostError(
            f"{place} is {value}, which JSON cannot hold: times or sizes are too large, or too far apart"
        ) from None


def require_unique_keys(text: str) -> None:
    """Check that no object of a JSON text has a key twice: readers would take one of the values, and say nothing.

    Raises
    ------
    FormatError
        For one that has; the message names the key.
    """
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except ValueError as error:
        raise FormatError(str(error).partition("; use sys.set_int_max_str_digits")[0]) from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values. Raises ValueError for a key that stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key, count in Counter(keys).items() if count > 1)
        raise ValueError(f"the key '{repeated}' stands twice")
    return found


def no_constant(name: str) -> Any:
    """Raises ValueError: NaN and Infinity, which Python's reader takes for numbers, are no JSON."""
    raise ValueError(f"{name} is no number")


def _not_finite(value: Any, place: str) -> Iterator[tuple[str, float]]:
    """Where something is no finite number, and what it is."""
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _not_finite(part, f"{place}.{name}" if place else str(name))
