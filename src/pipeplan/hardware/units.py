"""Sizes with units, as data sheets print them."""

from __future__ import annotations

import math
import re
from typing import Any

from pipeplan.errors import CostError

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*")
_EXAMPLES = {"B": "80 GiB", "B/s": "450 GB/s or 400 Gb/s", "FLOP/s": "989 TFLOP/s", "s": "5 us", "": "2.5"}


def quantity(name: str, value: Any, unit: str) -> float:
    """A number, or a text of number and unit.

    Parameters
    ----------
    name
        What it is, for messages.
    unit
        ``B``, ``B/s``, ``FLOP/s``, ``s``, or empty for a plain number; a number without a unit is in it. Bits (``b``) are
        eighths of bytes.

    Raises
    ------
    CostError
        For another type or unit, and what is not finite, negative, or 0 where others are divided by it.
    """
    number = _number(value, unit)
    if number is None:
        raise CostError(f"{name} is {value!r}: write a number, or such as {_EXAMPLES[unit]}", field="cluster")
    least = "at least 0" if unit in ("s", "") else "more than 0"
    if not math.isfinite(number) or number < 0 or (number == 0 and least != "at least 0"):
        raise CostError(f"{name} is {value!r}: it is {least} and finite", field="cluster")
    return number


def _number(value: Any, unit: str) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    scale = 1.0 if not match[2] else _scale(match[2], unit)
    return None if scale is None else float(match[1]) * scale


def _scale(text: str, unit: str) -> float | None:
    if unit == "s":
        return _SECONDS.get(text)
    if unit == "FLOP/s":
        match = re.fullmatch(r"([kKMGTPE]?)FLOP(?:/s|S|s)", text)
        return None if match is None else _PREFIXES[match[1]]
    if unit in ("B", "B/s"):
        end = "(?:/s|ps)" if unit == "B/s" else ""
        match = re.fullmatch(r"([KMGT]i|[kKMGT]?)([Bb])(?:it)?" + end, text)
        if match is None:
            return None
        return (_BINARY.get(match[1]) or _PREFIXES[match[1]]) * (1.0 if match[2] == "B" else 0.125)
    return None
