"""Run of a configuration's schedule on the costs of its stages: when each rank finishes.

A pipeline soon repeats itself: after a warm-up, each further group of microbatches takes as long as the busiest rank needs
for it. A step of many microbatches is therefore simulated twice with few of them, the second time with one more group. The
last microbatches, as many as are ever in flight, are compared: if all of their ops are later by exactly the busiest rank's
time for a group, every further group delays them by the same amount, because what decides an op's start is among them. The
rest of the step is then a multiplication; otherwise the whole step is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from pipeplan.costs import Costs, Limits, Memory, Overhead, Segments, Transfer
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.segments import pair_slowdown
from pipeplan.extensions.planning.estimates.software import op_gap_of, software
from pipeplan.extensions.planning.estimates.stages import StageCosts
from pipeplan.model import Floats, Kind, Placement, Schedule, Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, strategy

_DEPTH = 2
"""Number of last microbatches per rank whose ops must all repeat: more than are ever in flight at once."""

_SAME = 1e-9
"""Relative difference below which two durations are equal up to rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class StepRun:
    """Simulated pipeline of one step.

    ``schedule`` was simulated; it has fewer microbatches than the step if the pipeline repeats itself. ``starts`` and
    ``ends`` are those of each rank's first and last op, ``busy`` the time of its ops with their overhead, in seconds; shape
    (ranks,) each.
    """

    schedule: Schedule
    starts: Floats
    ends: Floats
    busy: Floats


def costs_of(stages: StageCosts, configuration: Configuration) -> Costs:
    """Return the costs of the stages for the simulation, in seconds and bytes."""
    trainer = software(configuration.software)
    forward, inputs, weights = stages.forward, stages.backward_input, stages.backward_weight
    # The simulation needs positive durations; a stage without layers would take none.
    least = 1e-12 * max(1e-12, float(forward.max(initial=0.0)))
    forward, inputs, weights = (np.maximum(times, least) for times in (forward, inputs, weights))
    segments = None
    if hides_exchanges(configuration):
        segments = Segments(
            stages.segments(forward, inputs, weights),
            slowdown=pair_slowdown(stages.machine),
            delayed_weights=trainer.delayed_weights,
        )
    return Costs(
        forward=forward,
        backward=inputs + weights if segments is None else segments.alone().time,
        backward_input=inputs,
        backward_weight=weights,
        recompute=np.maximum(stages.recompute, least),
        memory=Memory(
            stages.activation_bytes, stages.weight_activation_bytes, np.zeros(len(stages.layout)), in_bytes=True
        ),
        transfer=Transfer(latency=0.0 if trainer.blocks else stages.transfer),
        overhead=Overhead(op_gap=op_gap_of(configuration), message_time=stages.transfer if trainer.blocks else 0.0),
        segments=segments,
        time_unit="s",
    )


OVERLAPPED: Mapping[str, str] = MappingProxyType(
    {"1f1b": "1f1b-overlap", "interleaved-1f1b": "interleaved-1f1b-overlap"}
)
"""Strategies with pairs by those that they differ from only in these."""

PAIRED = frozenset({*OVERLAPPED.values(), "dualpipe", "dualpipev"})
"""Strategies that run forwards and backwards as pairs."""


def may_hide(configuration: Configuration) -> bool:
    """Return True if a schedule with pairs would hide a configuration's exchanges with experts."""
    return configuration.expert > 1 and "expert" in software(configuration.software).hides


def hides_exchanges(configuration: Configuration) -> bool:
    """Return True if the pairs of a configuration's schedule hide its exchanges with experts."""
    return may_hide(configuration) and strategy(configuration.schedule).name in PAIRED


def schedule_of(
    configuration: Configuration, costs: Costs | None = None, *, microbatches: int | None = None
) -> Schedule:
    """Return the schedule of a configuration, optionally with another number of microbatches.

    Raises PipeplanError if the strategy cannot take the shape, or its name is unknown.
    """
    shape = shape_of(configuration, microbatches)
    if not strategy(configuration.schedule).looks_at_costs:
        return _shape_only(configuration.schedule, shape)
    limits = None
    if configuration.in_flight is not None:
        limits = Limits(np.full(configuration.pipeline, float(configuration.in_flight)), in_activations=True)
    return strategy(configuration.schedule)(shape, costs, limits)


@lru_cache(maxsize=512)
def _shape_only(name: str, shape: Shape) -> Schedule:
    return strategy(name)(shape)


def run(stages: StageCosts, configuration: Configuration, schedule: Schedule | None = None) -> StepRun:
    """Return the run of one step's pipeline; ``schedule`` replaces the configuration's own."""
    costs = costs_of(stages, configuration)
    if schedule is not None:
        return _simulated(schedule, costs)
    return _repeated(configuration, costs) or _simulated(schedule_of(configuration, costs), costs)


def _simulated(schedule: Schedule, costs: Costs) -> StepRun:
    return _run_of(simulate(schedule, costs).timeline, costs)


def _run_of(timeline: Timeline, costs: Costs) -> StepRun:
    schedule = timeline.schedule
    before, after = costs.lost(schedule)
    starts, ends = timeline.start - before, timeline.end + after
    taken = np.where(schedule.joined, 0.0, ends - starts)
    first, last = schedule.offsets[:-1], schedule.offsets[1:] - 1
    return StepRun(schedule, starts[first], ends[last], np.add.reduceat(taken, first))


def _repeated(configuration: Configuration, costs: Costs) -> StepRun | None:
    """Extrapolate many microbatches from two runs of few; None for few microbatches or a pipeline that does not repeat."""
    rule = strategy(configuration.schedule)
    if rule.looks_at_costs:
        return None
    # ``base`` microbatches leave a whole number of groups, of which the second run has one more.
    group, depth = _group(configuration), _DEPTH * configuration.pipeline
    base = 2 * depth + (configuration.microbatches - 2 * depth) % group
    further = (configuration.microbatches - base - group) // group
    if further < 1:
        return None
    schedules = (schedule_of(configuration, microbatches=count) for count in (base, base + group))
    few, more = (simulate(schedule, costs).timeline for schedule in schedules)
    # Starts of the last ``depth`` microbatches with one more group, minus their starts without it.
    moved = _by_op(more)[:, group + base - depth :] - _by_op(few)[:, base - depth :]
    before, after = _run_of(few, costs), _run_of(more, costs)
    # Time that the busiest rank needs for a group: the period of the pipeline.
    needed = float((after.busy - before.busy).max())
    if np.abs(moved - needed).max() > _SAME * after.ends.max():
        return None
    return replace(after, ends=after.ends + further * needed, busy=after.busy + further * (after.busy - before.busy))


def _by_op(timeline: Timeline) -> Floats:
    """Return the start times of all ops; shape (kinds and stages, microbatches)."""
    columns, schedule = timeline.schedule.columns, timeline.schedule
    starts = np.zeros((len(Kind) * schedule.stages, schedule.microbatches))
    starts[columns.kind.astype(np.int64) * schedule.stages + columns.stage, columns.microbatch] = timeline.start
    rows = np.unique(columns.kind.astype(np.int64) * schedule.stages + columns.stage)
    return starts[rows]


def _group(configuration: Configuration) -> int:
    """Return the number of microbatches after which the order of a schedule repeats."""
    if configuration.group_size is not None:
        return configuration.group_size
    return configuration.pipeline if configuration.chunks > 1 else 2


def placed(configuration: Configuration) -> Placement:
    """Return the placement of a configuration's stages."""
    return strategy(configuration.schedule).placed(shape_of(configuration))


def shape_of(configuration: Configuration, microbatches: int | None = None) -> Shape:
    """Return the shape of a configuration's schedule, optionally with another number of microbatches."""
    return strategy(configuration.schedule).shape(
        configuration.pipeline,
        configuration.microbatches if microbatches is None else microbatches,
        configuration.chunks,
        group_size=configuration.group_size,
    )
