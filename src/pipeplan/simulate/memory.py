"""Memory over time, from the order of ops alone: on one rank ops never pass each other."""

from __future__ import annotations

import numpy as np

from pipeplan.costs import Costs
from pipeplan.costs.table import Floats
from pipeplan.model import Kind, Schedule
from pipeplan.model.memory import MemoryUse


def memory_use(schedule: Schedule, costs: Costs) -> MemoryUse:
    """What each rank holds after each op.

    F takes a stage's activation; I frees what W does not need, W the rest; B all of it. Where a microbatch is recomputed
    on a stage, F keeps nothing and R takes the activation.
    """
    memory = costs.memory
    placement = schedule.placement
    share = 1.0 / placement.chunks_on[placement.table[0]]
    part = np.divide(memory.freed_by_weight, memory.activation, out=np.ones(costs.stages), where=memory.activation > 0)
    static = np.zeros(schedule.ranks)
    for copy in placement.table:
        np.add.at(static, copy, memory.static)
    return MemoryUse(
        schedule,
        _levels(schedule, share, share * part),
        _levels(schedule, memory.activation, memory.freed_by_weight) if memory.in_bytes else None,
        static,
    )


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
