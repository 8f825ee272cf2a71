"""Effect of the measured op times: the planned timeline simulated again with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Settings
from pipeplan.model import Floats, Kind, Schedule, Timeline, crosses_ranks, dependencies, tolerances
from pipeplan.records import Record
from pipeplan.simulation import simulate

Positions = NDArray[np.intp]


class KindDifference(Record, frozen=True, kw_only=True):
    """All ops of one kind and stage, in the unit of the measured timeline.

    Attributes
    ----------
    kind, stage, ops
        Kind (``F+B``: overlapped pairs, by the forward's stage), stage, and number of ops.
    planned, measured
        Medians of their durations.
    effect
        By how much the planned makespan changes if these ops alone take their measured times.
    """

    kind: str
    stage: int
    ops: int
    planned: float
    measured: float
    effect: float


class Resimulation:
    """Simulates the schedule of a planned timeline with other op times and its own transfers."""

    def __init__(self, planned: Timeline) -> None:
        self.schedule, self.unit = planned.schedule, planned.unit
        self.transfer = transfer_of(planned)
        gap = gap_of(planned)
        ones = tuple(np.ones(self.schedule.stages).tolist())
        self._costs = Settings(
            forward_times=ones,
            backward_input_times=ones,
            backward_weight_times=ones,
            p2p_time=max(self.transfer - gap, 0.0),
            op_gap=gap,
        ).costs(self.schedule.placement)
        self._unit_durations = self._costs.durations(self.schedule)

    def __call__(self, durations: Floats) -> Timeline:
        """Return the timeline with these op times, shape (ops,)."""
        simulation = simulate(self.schedule, self._costs, factors=durations / self._unit_durations)
        return replace(simulation.timeline, unit=self.unit)


def transfer_of(planned: Timeline) -> float:
    """Return the transfer time: the least time between an op and one on another rank that needs it.

    It is that time wherever a rank waits for a message, as every rank but the first does for its first op.
    """
    arrival = dependencies(planned.schedule).arrival
    later = np.flatnonzero(crosses_ranks(planned.schedule, arrival))
    return (
        max(float((planned.start[later] - planned.end[arrival[later]]).min(initial=np.inf)), 0.0) if later.size else 0.0
    )


def gap_of(planned: Timeline) -> float:
    """Return the overhead before each op of a simulated timeline: the least time between two ops of a rank.

    Some ops wait for nothing, as a backward on the last stage right after its forward. 0 for a measured timeline, in which
    the least is an accident.
    """
    schedule = planned.schedule
    later = 1 + np.flatnonzero((schedule.rank[1:] == schedule.rank[:-1]) & ~schedule.joined[1:])
    if planned.source == "measured" or not later.size:
        return 0.0
    least = float((planned.start[later] - planned.end[later - 1]).min())
    return least if least > tolerances.ROUNDING * planned.makespan else 0.0


def kind_differences(
    planned: Timeline, before: Floats, after: Floats, resimulate: Resimulation
) -> Iterator[KindDifference]:
    """Yield a difference for the ops of each kind on each stage, and for the overlapped pairs of each stage.

    Parameters
    ----------
    planned
        Compute ops.
    before, after
        The planned and the measured time of each op, shape (ops,).
    resimulate
        Simulator of the planned timeline with other op times.
    """
    unchanged = resimulate(before).makespan
    for kind, stage, counted, changed in _groups(planned.schedule):
        # Every simulation takes as long as there are ops: none for those that took what was planned.
        same = np.array_equal(before[changed], after[changed])
        alone = unchanged if same else resimulate(_with(before, after, changed)).makespan
        yield KindDifference(
            kind=kind,
            stage=stage,
            ops=len(counted),
            planned=float(np.median(before[counted])),
            measured=float(np.median(after[counted])),
            effect=alone - unchanged,
        )


def _with(before: Floats, after: Floats, changed: Positions) -> Floats:
    durations = before.copy()
    durations[changed] = after[changed]
    return durations


def _groups(schedule: Schedule) -> Iterator[tuple[str, int, Positions, Positions]]:
    """Yield kind, stage, the counted ops, and the ops whose time changes with them: a pair counts once and is two ops."""
    columns, second = schedule.columns, schedule.joined
    first = np.append(second[1:], False)
    number = columns.kind.astype(np.int64) * schedule.stages + columns.stage
    for group, alone in _alike(np.flatnonzero(~(first | second)), number):
        kind, stage = divmod(group, schedule.stages)
        yield Kind(kind).name, stage, alone, alone
    for stage, pairs in _alike(np.flatnonzero(first), columns.stage):
        yield "F+B", stage, pairs, np.concatenate((pairs, pairs + 1))


def _alike(chosen: Positions, numbers: NDArray[np.integer[Any]]) -> Iterator[tuple[int, Positions]]:
    """Yield each number among the chosen ops, in order, with the ops that have it."""
    order = chosen[np.argsort(numbers[chosen], kind="stable")]
    classes, begins = np.unique(numbers[order], return_index=True)
    yield from zip(classes.tolist(), np.split(order, begins[1:]), strict=len(classes) > 0)
