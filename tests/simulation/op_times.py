"""When the ops of a schedule in text run."""

from __future__ import annotations

from typing import Any

from pipeplan.costs import Communication, Settings
from pipeplan.model import Streams, parse_schedule
from pipeplan.simulation import simulate


def times(
    text: str, communication: Communication = "edge", *, level: Streams | None = None, **settings: Any
) -> dict[str, tuple[float, float]]:
    """The start and end of each op, by its text."""
    schedule = parse_schedule(text)
    costs = Settings(**settings).costs(schedule.placement)
    timeline = simulate(schedule, costs, communication=communication, streams=level).timeline
    ops = [str(op) for row in schedule for op in row]
    return dict(zip(ops, zip(timeline.start.tolist(), timeline.end.tolist(), strict=True), strict=True))
