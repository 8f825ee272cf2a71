"""Memory over time, from the order of ops alone: on one rank ops never pass each other."""

from __future__ import annotations

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import Floats, Kind, Placement, Schedule
from pipeplan.model.memory import MemoryUse


def memory_use(schedule: Schedule, costs: Costs) -> MemoryUse:
    """What each rank holds after each op.

    F takes a stage's activation; I frees what W does not need, W the rest; B all of it. Where a microbatch is recomputed
    on a stage, F keeps nothing and R takes the activation.
    """
    return MemoryUse(
        schedule,
        _levels(schedule, *held_by_stage(schedule.placement, costs, in_activations=True)),
        _levels(schedule, costs.memory.activation, costs.memory.freed_by_weight) if costs.memory.in_bytes else None,
        static_bytes(schedule.placement, costs),
    )


def held_by_stage(placement: Placement, costs: Costs, *, in_activations: bool) -> tuple[Floats, Floats]:
    """What each stage holds for one microbatch and the part that only W frees, in activations or as the costs give it."""
    memory = costs.memory
    if not in_activations:
        return memory.activation, memory.freed_by_weight
    share = 1.0 / placement.chunks_on[placement.table[0]]
    part = np.divide(memory.freed_by_weight, memory.activation, out=np.ones(costs.stages), where=memory.activation > 0)
    return share, share * part


def static_bytes(placement: Placement, costs: Costs) -> Floats:
    """Bytes that each rank holds throughout for the stages of all its copies, shape (ranks,)."""
    static = np.zeros(placement.ranks)
    for copy in placement.table:
        np.add.at(static, copy, costs.memory.static)
    return static


def _levels(schedule: Schedule, activation: Floats, freed_by_weight: Floats) -> Floats:
    """Level after each op, given what a stage holds for a whole microbatch and what of it only W frees."""
    change = np.zeros((len(Kind), schedule.stages))
    change[Kind.F] = change[Kind.R] = activation
    change[Kind.B] = -activation
    change[Kind.I] = freed_by_weight - activation
    change[Kind.W] = -freed_by_weight
    columns = schedule.columns
    changes = change[columns.kind, columns.stage]
    if schedule.has(Kind.R):
        recomputed = np.zeros(schedule.keys, np.bool_)
        recomputed[schedule.key[schedule.where(Kind.R)]] = True
        forwards = schedule.where(Kind.F)
        changes[forwards[recomputed[schedule.key[forwards]]]] = 0.0
    levels: Floats = np.cumsum(changes)
    before = np.concatenate(([0.0], levels))[schedule.offsets[:-1]]
    levels -= np.repeat(before, np.diff(schedule.offsets))
    return levels / schedule.slices if schedule.slices > 1 else levels
