"""The timing table of a strategy, simulated, and as its docstring draws it."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from pipeplan.costs import Settings
from pipeplan.model import Schedule
from pipeplan.strategies.protocol import Shape
from tests.slow_simulator import slow_simulate
from tests.strategies.picture import picture


def timing_table(schedule: Schedule) -> str:
    """A column a stage's forward on one slice; B takes two columns, I and W one, an overlapped pair three."""
    whole = float(schedule.slices)
    settings = Settings(times_per="stage", forward_times=whole, backward_times=2 * whole)
    return picture(slow_simulate(schedule, settings.costs(schedule.placement)))


def documented_table(documented: Callable[[Shape], Schedule]) -> str:
    """The table in the docstring of a strategy's builder."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip().startswith("rank "))
