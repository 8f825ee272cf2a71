"""A configuration's schedule run on its stages' costs: when each rank is done, for as many microbatches as there are.

A pipeline soon repeats itself: from some microbatch on, each further group of microbatches takes what the busiest rank
needs for it. So a step of many microbatches is simulated with few, twice, the second time with a group more. Where all ops
of the last microbatches, as many as are ever under way, are later by exactly what the busiest rank needs for a group, every
further group moves them by as much again: what decides an op's start is among them. Then the rest is a multiplication; else
the whole step is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pipeplan.costs import Costs, Limits, Memory, Overhead, Transfer
from pipeplan.model import Floats, Kind, Placement, Schedule, Timeline
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.software import op_gap_of, software
from pipeplan.planner.estimates.stages import StageCosts
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, strategy

_DEPTH = 2
"""Last microbatches per rank whose ops must all repeat themselves: more than are under way at once."""

_SAME = 1e-9
"""Relative difference of two durations that are the same but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class StepRun:
    """A step's pipeline.

    Attributes
    ----------
    schedule
        That was simulated: of as many microbatches, or of fewer where the pipeline repeats itself.
    ends, starts
        When each rank is done with its last op, and when it begins; seconds, shape (ranks,).
    busy
        What the ops of each rank take together, with what they lose; seconds, shape (ranks,).
    """

    schedule: Schedule
    starts: Floats
    ends: Floats
    busy: Floats


def costs_of(stages: StageCosts, configuration: Configuration) -> Costs:
    """The stages' costs as the simulation takes them; seconds and bytes."""
    trainer = software(configuration.software)
    forward, inputs, weights = stages.forward, stages.backward_input, stages.backward_weight
    least = 1e-12 * max(1e-12, float(forward.max(initial=0.0)))
    forward, inputs, weights = (np.maximum(times, least) for times in (forward, inputs, weights))
    return Costs(
        forward=forward,
        backward=inputs + weights,
        backward_input=inputs,
        backward_weight=weights,
        recompute=np.maximum(stages.recompute, least),
        memory=Memory(
            stages.activation_bytes, stages.weight_activation_bytes, np.zeros(len(stages.layout)), in_bytes=True
        ),
        transfer=Transfer(latency=0.0 if trainer.blocks else stages.transfer),
        overhead=Overhead(op_gap=op_gap_of(configuration), message_time=stages.transfer if trainer.blocks else 0.0),
        time_unit="s",
    )


def schedule_of(configuration: Configuration, costs: Costs | None = None) -> Schedule:
    """The configuration's schedule.

    Raises
    ------
    PipeplanError
        For a shape that the strategy cannot take, or a name that nobody knows.
    """
    return _scheduled(configuration, configuration.microbatches, costs)


def _scheduled(configuration: Configuration, microbatches: int, costs: Costs | None) -> Schedule:
    found = strategy(configuration.schedule)
    if not found.looks_at_costs:
        return _shape_only(
            configuration.schedule, configuration.pipeline, microbatches, configuration.chunks, configuration.group_size
        )
    shape = shape_of(configuration, microbatches)
    held = configuration.in_flight
    limits = None if held is None else Limits(np.full(configuration.pipeline, float(held)), in_activations=True)
    return found(shape, costs, limits)


@lru_cache(maxsize=512)
def _shape_only(name: str, ranks: int, microbatches: int, chunks: int, group_size: int | None) -> Schedule:
    found = strategy(name)
    return found(found.shape(ranks, microbatches, chunks, group_size=group_size))


def run(stages: StageCosts, configuration: Configuration, schedule: Schedule | None = None) -> StepRun:
    """The pipeline of one step.

    Parameters
    ----------
    schedule
        To run instead of the configuration's own.

    Raises
    ------
    PipeplanError
        For a shape that the strategy cannot take.
    """
    costs = costs_of(stages, configuration)
    if schedule is not None:
        return _simulated(schedule, costs)
    return _repeated(configuration, costs) or _simulated(schedule_of(configuration, costs), costs)


def _simulated(schedule: Schedule, costs: Costs) -> StepRun:
    return _run_of(simulate(schedule, costs).timeline, costs)


def _run_of(timeline: Timeline, costs: Costs) -> StepRun:
    schedule = timeline.schedule
    before, behind = costs.lost(schedule)
    starts, ends = timeline.start - before, timeline.end + behind
    taken = np.where(schedule.joined, 0.0, ends - starts)
    first, last = schedule.offsets[:-1], schedule.offsets[1:] - 1
    return StepRun(schedule, starts[first], ends[last], np.add.reduceat(taken, first))


def _repeated(configuration: Configuration, costs: Costs) -> StepRun | None:
    """Return the run of many microbatches from runs of few; None for few ones or a pipeline that does not repeat."""
    found = strategy(configuration.schedule)
    if found.looks_at_costs:
        return None
    group, depth = _group(configuration), _DEPTH * configuration.pipeline
    base = 2 * depth + (configuration.microbatches - 2 * depth) % group
    further = (configuration.microbatches - base - group) // group
    if further < 1:
        return None
    few, more = (simulate(_scheduled(configuration, count, costs), costs).timeline for count in (base, base + group))
    moved = _by_op(more)[:, group + base - depth :] - _by_op(few)[:, base - depth :]
    before, after = _run_of(few, costs), _run_of(more, costs)
    needed = float((after.busy - before.busy).max())
    if np.abs(moved - needed).max() > _SAME * after.ends.max():
        return None
    return replace(after, ends=after.ends + further * needed, busy=after.busy + further * (after.busy - before.busy))


def _by_op(timeline: Timeline) -> Floats:
    """Return the starts of all ops, shape (kinds and stages, microbatches)."""
    columns, schedule = timeline.schedule.columns, timeline.schedule
    starts = np.zeros((len(Kind) * schedule.stages, schedule.microbatches))
    starts[columns.kind.astype(np.int64) * schedule.stages + columns.stage, columns.microbatch] = timeline.start
    found = np.unique(columns.kind.astype(np.int64) * schedule.stages + columns.stage)
    return starts[found]


def _group(configuration: Configuration) -> int:
    """Return the number of microbatches after which a schedule's order repeats."""
    if configuration.group_size is not None:
        return configuration.group_size
    return configuration.pipeline if configuration.chunks > 1 else 2


def placed(configuration: Configuration) -> Placement:
    """Return the placement of the configuration's stages."""
    return strategy(configuration.schedule).placed(shape_of(configuration))


def shape_of(configuration: Configuration, microbatches: int | None = None) -> Shape:
    """Return the shape of the configuration's schedule, with another number of microbatches if given."""
    return strategy(configuration.schedule).shape(
        configuration.pipeline,
        configuration.microbatches if microbatches is None else microbatches,
        configuration.chunks,
        group_size=configuration.group_size,
    )
