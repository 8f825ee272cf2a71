"""The timing table of a strategy, simulated, and as its docstring draws it."""

from __future__ import annotations

import inspect

from pipeplan.costs import Settings
from pipeplan.model import Schedule
from pipeplan.strategies.protocol import Strategy
from tests.slow_simulator import slow_simulate
from tests.strategies.picture import picture


def timing_table(schedule: Schedule, *, backward: float = 2.0) -> str:
    """A column a stage's forward on one slice; I and W take one, B takes ``backward``, an overlapped pair the sum."""
    whole = float(schedule.slices)
    settings = Settings(times_per="stage", forward_times=whole, backward_times=backward * whole)
    return picture(slow_simulate(schedule, settings.costs(schedule.placement)))


def documented_table(strategy: Strategy) -> str:
    """The table in the docstring of a strategy's builder."""
    lines = (inspect.getdoc(strategy.build) or "").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip().startswith("rank "))
