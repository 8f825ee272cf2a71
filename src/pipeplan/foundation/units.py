"""Units of time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TIME_UNITS: Mapping[str, float] = MappingProxyType({"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0})
"""Units per second. Whole numbers, so that their ratios are exact."""


def units_in(unit: str, other: str) -> float:
    """Return how many of ``other`` make one ``unit``; both are keys of ``TIME_UNITS``."""
    return TIME_UNITS[other] / TIME_UNITS[unit]
