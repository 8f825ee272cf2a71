"""The form that a published row must have: which parts, and which of their values are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeplan.errors import InputError

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "model": ("seq",),
    "hardware": ("gpu",),
    "parallel": ("tp", "pp"),
    "batch": (),
    "measured": (),
}
"""Parts of a row, and what they must hold."""

_WHOLE: Mapping[str, tuple[str, ...]] = {
    "model": ("seq",),
    "hardware": ("count", "gpus_per_node", "nvlink_domain"),
    "parallel": ("tp", "pp", "dp", "cp", "vp", "ep", "etp"),
    "batch": ("micro", "global", "microbatches"),
}
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "hardware": ("hbm_tb_s",),
    "measured": (
        *("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu"),
        *("peak_memory_gib", "peak_memory_gb", "peak_reserved_gib", "allocated_gib"),
    ),
}
_TEXTS = ("schedule", "recompute", "precision", "layout", "framework", "notes")


def require_form(row: Mapping[str, Any]) -> None:
    """Refuse a row that lacks what every row has, or holds something else than numbers where these stand.

    Raises
    ------
    InputError
        With the part and the value.
    """
    if row.get("kind"):
        raise InputError(f"it holds {row['kind']}, which are not a whole step's")
    for part, needed in _NEEDED.items():
        if not isinstance(row.get(part, {}), dict):
            raise InputError(f"'{part}' of the row is no mapping of keys", field=part)
        missing = [key for key in needed if row.get(part, {}).get(key) is None]
        if missing:
            raise InputError(f"the row does not say {part}.{missing[0]}", field=f"{part}.{missing[0]}")
    for place, value in _values(row, _WHOLE):
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{place} is a whole number of at least 1, not {value!r}", field=place)
    for place, value in _values(row, _NUMBERS):
        if not isinstance(value, int | float) or not value > 0:
            raise InputError(f"{place} is a number above 0, not {value!r}", field=place)
    for key in _TEXTS:
        if not isinstance(row.get(key), str | None):
            raise InputError(f"'{key}' of the row is no text", field=key)


def _values(row: Mapping[str, Any], parts: Mapping[str, tuple[str, ...]]) -> list[tuple[str, Any]]:
    """Values by their places; switches as text, which no number is."""
    found = [(f"{part}.{key}", row.get(part, {}).get(key)) for part, keys in parts.items() for key in keys]
    return [(place, str(value) if isinstance(value, bool) else value) for place, value in found if value is not None]
