"""Parsing of sizes, memory limits and ranges of stages: ``2GiB``, ``8act``, ``0-3,6``."""

from __future__ import annotations

import math
import re
from typing import Literal

from pipeplan.errors import CostError, ShapeError
from pipeplan.model import require_range, shortened

_LIMIT = re.compile(r"\s*([-0-9.eE+]+)\s*(act|activations?|[KMGT]i?B|B|)\s*")
_SIZE = re.compile(r"\s*([-+0-9.eE]+|[-+]?inf|nan)\s*([KMGT]i?B|B|)\s*")
_UNITS = {"": 1.0, "B": 1.0} | {
    f"{prefix}{binary}B": float((1024 if binary else 1000) ** power)
    for power, prefix in enumerate("KMGT", start=1)
    for binary in ("", "i")
}


def parse_size(value: str, field: str) -> float:
    """Return the bytes of a size with or without a unit: ``2GiB`` is 2 * 2**30, ``1.5e9`` is 1.5e9.

    Parameters
    ----------
    field
        Name of the setting, for the error.

    Raises
    ------
    CostError
        If the text is not a size.
    """
    match = _SIZE.fullmatch(value)
    try:
        return float(match[1]) * _UNITS[match[2]]  # type: ignore[index]
    except (TypeError, ValueError):
        raise CostError(
            f"{field}: invalid size '{shortened(value, 60)}': expected bytes or a unit such as 2GiB", field=field
        ) from None


def parse_limit(value: float | str) -> tuple[float, Literal["byte", "act"]]:
    """Return a limit as a number with its unit: ``8act`` is (8, "act"), ``12GiB`` is (12 * 2**30, "byte").

    Raises
    ------
    CostError
        If the text is not a size, or the size is not positive, not finite or too large.
    """
    match = _LIMIT.fullmatch(str(value))
    try:
        number, unit = float(match.group(1)), match.group(2)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        raise CostError(
            f"invalid memory limit '{shortened(str(value), 60)}': expected bytes, a size such as 12GiB, or activations "
            "such as 8act",
            field="memory_limit",
        ) from None
    if not 0 < number < math.inf:
        shown = shortened(value, 60) if isinstance(value, str) else f"{value:g}"
        raise CostError(f"memory limit must be more than 0 and finite, not {shown}", field="memory_limit")
    size = number if unit.startswith("act") else number * _UNITS[unit]
    require_range(f"memory limit {shortened(str(value), 60)}", size, field="memory_limit")
    return (size, "act") if unit.startswith("act") else (size, "byte")


def ranges_in(text: str, name: str) -> list[tuple[int, int]]:
    """Return the first and last stage of every range in a text such as ``0-3,6``.

    Parameters
    ----------
    name
        Name of the setting, for the error.

    Raises
    ------
    ShapeError
        If the text is invalid.
    """
    # At most nine digits: no schedule has more stages, and int() of a long text would take quadratic time.
    matches = [re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", word) for word in re.split(r"[\s,]+", text.strip())]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in matches if match is not None]
    if len(ranges) < len(matches) or any(first > last for first, last in ranges):
        raise ShapeError(f"{name} must be none, all or stages such as 0-3,6, not '{shortened(text, 60)}'", field=name)
    return ranges
