"""Units of time, and timelines in one or the other."""

from __future__ import annotations

from dataclasses import replace

from pipeplan.model import Timeline

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""How many seconds a unit of time is."""


def in_unit(timeline: Timeline, unit: str) -> Timeline:
    """A timeline in another unit of time; where either unit is unknown, its numbers stay."""
    scale = SECONDS[timeline.unit] / SECONDS[unit] if timeline.unit in SECONDS and unit in SECONDS else 1.0
    return replace(timeline, start=timeline.start * scale, end=timeline.end * scale, unit=unit)
