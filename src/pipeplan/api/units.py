"""Timelines in another unit of time."""

from __future__ import annotations

from dataclasses import replace

from pipeplan.model import TIME_UNITS, Timeline, units_in


def in_unit(timeline: Timeline, unit: str) -> Timeline:
    """Return a timeline in another unit of time; if either unit is unknown, its numbers stay."""
    scale = units_in(timeline.unit, unit) if timeline.unit in TIME_UNITS and unit in TIME_UNITS else 1.0
    occupied = None if timeline.occupied is None else timeline.occupied * scale
    return replace(timeline, start=timeline.start * scale, end=timeline.end * scale, occupied=occupied, unit=unit)
