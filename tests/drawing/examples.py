"""Timelines small enough to know by heart, and large ones."""

import numpy as np

from pipeplan.costs import Settings
from pipeplan.drawing import View, view_of
from pipeplan.model import Placement, Schedule, Timeline, parse_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy

ONE_F_ONE_B = """
0F0 0F1 0B0 0B1
1F0 1B0 1F1 1B1
"""
"""Forwards take 1, backwards 2: rank 0 is F0 F1 . B0 B0 B1 B1 with a gap each."""

OVERLAPPED = """
0F0 0F1 (0F2;0B0)OVERLAP_F_B 0B1 0B2
"""


def one_f_one_b() -> Timeline:
    schedule = parse_schedule(ONE_F_ONE_B, name="1f1b")
    start = np.array([0.0, 1, 4, 7, 1, 2, 4, 5])
    return Timeline(schedule, start, start + np.array([1.0, 1, 2, 2, 1, 2, 1, 2]))


def overlapped() -> Timeline:
    schedule = parse_schedule(OVERLAPPED, name="overlapped")
    start = np.array([0.0, 1, 2, 2, 5, 7])
    return Timeline(schedule, start, np.array([1.0, 2, 5, 5, 7, 9]))


def schedule_named(name: str, ranks: int, microbatches: int, chunks: int | None = None) -> Schedule:
    rule = strategy(name)
    return rule(rule.shape(ranks, microbatches, chunks))


def view_named(name: str, ranks: int, microbatches: int, chunks: int | None = None, *, memory: bool = False) -> View:
    schedule = schedule_named(name, ranks, microbatches, chunks)
    simulation = simulate(schedule, costs_for(schedule.placement))
    return view_of(simulation.timeline, simulation.memory if memory else None)


def costs_for(placement: Placement, **settings: float):
    return Settings(**settings).costs(placement)  # type: ignore[arg-type]
