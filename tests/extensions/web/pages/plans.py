"""Views to look at: small ones whose times are known, and one that was measured."""

from __future__ import annotations

import numpy as np

from pipeplan.costs import Limits, Settings
from pipeplan.drawing import View, view_of
from pipeplan.model import Timeline
from pipeplan.simulation import Simulation, idle_times, simulate
from tests.drawing.examples import schedule_named


def simulated(name: str, ranks: int, microbatches: int, **settings) -> Simulation:
    schedule = schedule_named(name, ranks, microbatches)
    return simulate(schedule, Settings(**settings).costs(schedule.placement))


def plan(name: str = "1f1b", ranks: int = 4, microbatches: int = 8, title: str = "", **settings) -> View:
    """A view with everything: transfers of 0.5, memory with a cap of 3 activations, reasons."""
    simulation = simulated(name, ranks, microbatches, p2p_time=0.5, **settings)
    timeline = simulation.timeline
    reasons = idle_times(timeline, simulation.costs).drawn
    limit = Limits(np.full(ranks, 3.0), in_activations=True)
    return view_of(timeline, simulation.memory, title=title, limit=limit, reasons=reasons)


def measured(ranks: int = 4, microbatches: int = 8) -> View:
    """A run of the plan in which everything takes a tenth longer."""
    timeline = simulated("1f1b", ranks, microbatches, p2p_time=0.5).timeline
    slow = Timeline(timeline.schedule, np.array(timeline.start * 1.1), np.array(timeline.end * 1.1), "", "measured")
    return view_of(slow, title="measured step")
