"""The units of time that are known, and how many of one are in the other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TIME_UNITS: Mapping[str, float] = MappingProxyType({"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0})
"""How many of each make a second: whole numbers, whose ratios are exact."""


def units_in(unit: str, other: str) -> float:
    """How many of ``other`` a ``unit`` is; both are of ``TIME_UNITS``."""
    return TIME_UNITS[other] / TIME_UNITS[unit]
