"""The obvious slow simulator on communication streams."""

from __future__ import annotations

from pipeplan.costs import Costs
from pipeplan.model import Schedule, Timeline
from tests.slow_collectives import Events


def slow_streams(schedule: Schedule, costs: Costs, streams: str) -> Timeline:
    """Every rank runs its row; messages wait in queues beside it, and begin where both ends are first.

    Raises
    ------
    DeadlockError
        Where something is left when nothing happens any more.
    """
    return Events(schedule, costs, "streams", streams=streams).timeline()
