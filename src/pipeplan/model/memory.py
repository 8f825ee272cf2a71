"""What ranks hold, and what they may: the one place that knows which op takes memory and which frees it.

For each microbatch a stage holds its activation from the forward's start. I frees what W does not need (or adds, where W
needs more than the forward kept), W frees the rest, and B all of it. Where a microbatch is recomputed on a stage, F keeps
nothing and R takes the activation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeplan.model.arrays import Floats
from pipeplan.model.op import Kind
from pipeplan.model.placement import Placement
from pipeplan.model.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRule:
    """What stages hold for a microbatch, and what ranks may hold of it, all in one unit.

    Attributes
    ----------
    activation, freed_by_weight
        Per stage for one whole microbatch, shape (stages,): held from F's start; the part that only W frees.
    limit
        The most that each rank may hold, shape (ranks,), without what it holds throughout; infinite where there is none.
    unit
        Of all three, for messages.
    """

    activation: Floats
    freed_by_weight: Floats
    limit: Floats
    unit: str = "activations"


def in_activations(placement: Placement, activation: Floats, freed_by_weight: Floats) -> tuple[Floats, Floats]:
    """What each stage holds, and the part that only W frees, in activations; shape (stages,) each.

    One activation is what all the chunks of a rank hold for one microbatch, an equal share each; of that the same part is
    freed by W as of the sizes given.
    """
    share = 1.0 / placement.chunks_on[placement.table[0]]
    part = np.divide(freed_by_weight, activation, out=np.ones(placement.stages), where=activation > 0)
    return share, share * part


def held_throughout(placement: Placement, static: Floats) -> Floats:
    """What each rank holds throughout, shape (ranks,): the static sizes of its stages, of every copy of the model."""
    held = np.zeros(placement.ranks)
    for copy in placement.table:
        np.add.at(held, copy, static)
    return held


def memory_changes(activation: Floats, freed_by_weight: Floats) -> Floats:
    """What an op adds to what its rank holds, by kind and stage, shape (kinds, stages); for a whole microbatch."""
    change = np.zeros((len(Kind), len(activation)))
    change[Kind.F] = change[Kind.R] = activation
    change[Kind.B] = -activation
    change[Kind.I] = freed_by_weight - activation
    change[Kind.W] = -freed_by_weight
    return change


def memory_levels(schedule: Schedule, activation: Floats, freed_by_weight: Floats) -> Floats:
    """What each op's rank holds after it, shape (ops,), given what each stage holds for a whole microbatch."""
    columns = schedule.columns
    changes = memory_changes(activation, freed_by_weight)[columns.kind, columns.stage]
    if schedule.has(Kind.R):
        recomputed = np.zeros(schedule.keys, np.bool_)
        recomputed[schedule.key[schedule.where(Kind.R)]] = True
        forwards = schedule.where(Kind.F)
        changes[forwards[recomputed[schedule.key[forwards]]]] = 0.0
    levels: Floats = np.cumsum(changes)
    before = np.concatenate(([0.0], levels))[schedule.offsets[:-1]]
    levels -= np.repeat(before, np.diff(schedule.offsets))
    return levels / schedule.slices if schedule.slices > 1 else levels


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """How much each rank holds after each op, in activations and in bytes.

    A forward's (and a recompute's) change takes effect at its start, every other op's at its end.

    Attributes
    ----------
    schedule
        Whose ops these are.
    activations
        Level after each op, shape (ops,); 1 is what all the chunks of a rank hold for one microbatch.
    bytes
        The same in bytes without the static ones, shape (ops,); None where nobody gave bytes.
    static
        Bytes each rank holds throughout: parameters, gradients, optimizer state of all its copies, shape (ranks,).
    """

    schedule: Schedule
    activations: Floats
    bytes: Floats | None
    static: Floats

    @cached_property
    def peak_activation(self) -> Floats:
        """The most activations each rank holds at once, shape (ranks,)."""
        return self._peaks(self.activations)

    @cached_property
    def peak_bytes(self) -> Floats | None:
        """The most bytes each rank holds at once, static ones included, shape (ranks,)."""
        return None if self.bytes is None else self._peaks(self.bytes) + self.static

    def _peaks(self, levels: Floats) -> Floats:
        offsets = self.schedule.offsets
        filled = np.flatnonzero(np.diff(offsets))
        peaks = np.zeros(self.schedule.ranks)
        if len(filled):
            peaks[filled] = np.maximum(np.maximum.reduceat(levels, offsets[filled]), 0.0)
        return peaks
