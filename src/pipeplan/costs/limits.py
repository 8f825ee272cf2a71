"""Sizes and memory limits: from ``12GiB`` or ``8act`` to numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from pipeplan.errors import CostError
from pipeplan.model import Floats, require_range, shortened


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The memory limit of every rank, shape (ranks,): in bytes with everything static included, or in activations."""

    values: Floats
    in_activations: bool


_LIMIT = re.compile(r"\s*([-0-9.eE+]+)\s*(act|activations?|[KMGT]i?B|B|)\s*")
_SIZE = re.compile(r"\s*([-+0-9.eE]+|[-+]?inf|nan)\s*([KMGT]i?B|B|)\s*")
_UNITS = {"": 1.0, "B": 1.0} | {
    f"{prefix}{binary}B": float((1024 if binary else 1000) ** power)
    for power, prefix in enumerate("KMGT", start=1)
    for binary in ("", "i")
}


def parse_size(value: str, field: str) -> float:
    """A number of bytes with its unit, or without: ``2GiB`` is 2 * 2**30, ``1.5e9`` itself.

    Parameters
    ----------
    field
        The setting that it is of, for the error.

    Raises
    ------
    CostError
        For text that is no size.
    """
    match = _SIZE.fullmatch(value)
    try:
        return float(match[1]) * _UNITS[match[2]]  # type: ignore[index]
    except (TypeError, ValueError):
        raise CostError(f"{field}: '{shortened(value, 60)}' is no size; write bytes, or 2GiB", field=field) from None


def parse_limit(value: float | str) -> tuple[float, Literal["byte", "act"]]:
    """A limit as a number with its unit: ``8act`` is (8, "act"), ``12GiB`` (12 * 2**30, "byte").

    Raises
    ------
    CostError
        For text that is no size, and for a size that is not more than 0 and finite, or too large to compute with.
    """
    match = _LIMIT.fullmatch(str(value))
    try:
        number, unit = float(match.group(1)), match.group(2)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        raise CostError(
            f"memory limit '{shortened(str(value), 60)}' is no size; write bytes, 12GiB or activations, 8act",
            field="memory_limit",
        ) from None
    if not 0 < number < math.inf:
        shown = shortened(value, 60) if isinstance(value, str) else f"{value:g}"
        raise CostError(f"memory limit must be more than 0 and finite, not {shown}", field="memory_limit")
    size = number if unit.startswith("act") else number * _UNITS[unit]
    require_range(f"memory limit {shortened(str(value), 60)}", size, field="memory_limit")
    return (size, "act") if unit.startswith("act") else (size, "byte")
