"""Memory of each rank over time: the single definition of which op allocates memory and which op frees it.

A stage holds its activation of a microbatch from the start of the forward. I frees what W does not need (or adds, if W
needs more than the forward kept), W frees the rest, and B frees all of it. If a microbatch is recomputed on a stage, F
keeps only the input of the recomputation, and R allocates the rest. OFFLOAD frees what is copied to the host and RELOAD
allocates it again. Their places in the row determine when, so the memory held depends on the order of a row alone.

A stage whose parameters are sharded over a data-parallel group also holds its whole parameters from UNSHARD to RESHARD. It
holds its whole gradients from the start of its first weight gradient (B or W) until the rank has waited for their
REDUCE_GRAD; without WAIT_REDUCE_GRAD, to the end of the row. So while its first B or W runs, a stage holds its gradients and
all that this op frees at its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import tolerances
from pipeplan.model.dependency import rows_of_stages
from pipeplan.model.op import (
    BESIDE_KINDS,
    COLLECTIVE_KINDS,
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    STAGE_WIDE_KINDS,
    WEIGHT_KINDS,
    Kind,
    among,
)
from pipeplan.model.placement import Placement
from pipeplan.model.schedule import Schedule
from pipeplan.model.timeline import Timeline
from pipeplan.model.values import Bools, Floats


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRule:
    """Memory that stages hold per microbatch, and the limit of each rank, all in one unit.

    Attributes
    ----------
    activation, freed_by_weight
        Per stage for one whole microbatch, shape (stages,): held from the start of F; the part that only W frees.
    limit
        Memory limit of each rank without its static memory, shape (ranks,); infinite if there is none.
    unit
        Unit of all fields, for messages.
    recompute_keeps
        Memory that F keeps if it is recomputed, shape (stages,); default 0.
    offloaded
        Memory that OFFLOAD frees and RELOAD allocates, shape (stages,); default the whole activation.
    factors
        Factor of each microbatch on the memory of each stage, shape (stages, microbatches); empty if microbatches are alike.
    parameters, gradients
        Memory of a stage's gathered parameters, and of its whole gradients, shape (stages,); empty for none.
    static
        Static memory of each rank, which ``limit`` is without, for messages; shape (ranks,), empty for none.
    """

    activation: Floats
    freed_by_weight: Floats
    limit: Floats
    unit: str = "activations"
    recompute_keeps: Floats = field(default_factory=lambda: NOT_GIVEN)
    offloaded: Floats = field(default_factory=lambda: NOT_GIVEN)
    factors: Floats = field(default_factory=lambda: NOT_GIVEN)
    parameters: Floats = field(default_factory=lambda: NOT_GIVEN)
    gradients: Floats = field(default_factory=lambda: NOT_GIVEN)
    static: Floats = field(default_factory=lambda: NOT_GIVEN)

    def __post_init__(self) -> None:
        sizes = self.activation, self.recompute_keeps, self.offloaded
        for name, values in zip(("recompute_keeps", "offloaded"), kept_and_moved(*sizes), strict=True):
            object.__setattr__(self, name, values)

    def with_gradients_reserved(self, placement: Placement) -> MemoryRule:
        """Return the rule for schedules without REDUCE_GRAD, whose ranks hold all gradients of their stages to the end."""
        if not self.gradients.any():
            return self
        return replace(self, limit=self.limit - held_throughout(placement, self.gradients), gradients=NOT_GIVEN)


NOT_GIVEN: Floats = np.empty(0)
"""Placeholder for ``recompute_keeps`` and ``offloaded``: use their defaults."""


def kept_and_moved(activation: Floats, recompute_keeps: Floats, offloaded: Floats) -> tuple[Floats, Floats]:
    """Return the memory that a recomputed F keeps and that OFFLOAD frees, shape (stages,), with defaults filled in."""
    kept = recompute_keeps if recompute_keeps.size else np.zeros(len(activation))
    return kept, offloaded if offloaded.size else activation


def in_activations(
    placement: Placement,
    activation: Floats,
    freed_by_weight: Floats,
    recompute_keeps: Floats = NOT_GIVEN,
    offloaded: Floats = NOT_GIVEN,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Convert ``activation``, ``freed_by_weight``, ``recompute_keeps`` and ``offloaded`` to activations.

    One activation is what all chunks of a rank hold for one microbatch, with an equal share per chunk. The fractions
    that are freed, kept and moved are those of the given sizes. Returns four arrays of shape (stages,).
    """
    share = 1.0 / placement.chunks_on[placement.table[0]]
    kept, moved = kept_and_moved(activation, recompute_keeps, offloaded)
    held = activation > 0
    freed, kept, moved = (
        np.divide(part, activation, out=np.full(placement.stages, of_nothing), where=held)
        for part, of_nothing in ((freed_by_weight, 1.0), (kept, 0.0), (moved, 1.0))
    )
    return share, share * freed, share * kept, share * moved


def held_throughout(placement: Placement, static: Floats) -> Floats:
    """Return the static memory of each rank, shape (ranks,): the sum over its stages of every copy of the model."""
    held = np.zeros(placement.ranks)
    for copy in placement.table:
        np.add.at(held, copy, static)
    return held


def memory_changes(
    activation: Floats,
    freed_by_weight: Floats,
    recompute_keeps: Floats = NOT_GIVEN,
    offloaded: Floats = NOT_GIVEN,
) -> Floats:
    """Return the memory that each op allocates (or frees, if negative) for a whole microbatch, shape (kinds, stages).

    The forward of a recomputed microbatch allocates ``recompute_keeps`` instead.
    """
    kept, moved = kept_and_moved(activation, recompute_keeps, offloaded)
    change = np.zeros((len(Kind), len(activation)))
    change[Kind.F] = activation
    change[Kind.R] = activation - kept
    change[Kind.B] = -activation
    change[Kind.I] = freed_by_weight - activation
    change[Kind.W] = -freed_by_weight
    change[Kind.OFFLOAD] = -moved
    change[Kind.RELOAD] = moved
    return change


def memory_levels(
    schedule: Schedule,
    activation: Floats,
    freed_by_weight: Floats,
    recompute_keeps: Floats = NOT_GIVEN,
    offloaded: Floats = NOT_GIVEN,
    *,
    factors: Floats = NOT_GIVEN,
) -> Floats:
    """Return the memory that each op's rank holds after it, shape (ops,).

    The arguments are per stage for a whole microbatch; a slice counts for its share. ``factors`` are those of each
    microbatch on them, shape (stages, microbatches); empty if microbatches are alike.
    """
    columns = schedule.columns
    changes = memory_changes(activation, freed_by_weight, recompute_keeps, offloaded).ravel()[schedule.cost_index]
    if schedule.has(Kind.R):
        recomputed = np.zeros(schedule.keys, np.bool_)
        recomputed[schedule.key[schedule.where(Kind.R)]] = True
        forwards = schedule.where(Kind.F)
        recomputed_forwards = forwards[recomputed[schedule.key[forwards]]]
        kept, _ = kept_and_moved(activation, recompute_keeps, offloaded)
        changes[recomputed_forwards] = kept[columns.stage[recomputed_forwards]]
    if factors.size:
        # Ops of whole stages have no microbatch, and change no activations.
        changes *= factors[columns.stage, np.maximum(columns.microbatch, 0)]
    levels = _summed(schedule, changes)
    return levels / schedule.slices if schedule.slices > 1 else levels


def _summed(schedule: Schedule, changes: Floats) -> Floats:
    """Return the sums of the changes up to each op of its rank, shape (ops,)."""
    # One cumulative sum over all ranks, minus the level at the start of each rank's row.
    levels: Floats = np.cumsum(changes)
    before = np.concatenate(([0.0], levels))[schedule.offsets[:-1]]
    levels -= np.repeat(before, np.diff(schedule.offsets))
    return levels


def gathered_levels(schedule: Schedule, parameters: Floats) -> Floats:
    """Return the memory of gathered parameters that each op's rank holds after it, shape (ops,).

    ``parameters`` is that of one stage between UNSHARD and RESHARD, shape (stages,).
    """
    return _summed(schedule, _changes_between(schedule, (Kind.UNSHARD,), Kind.RESHARD, parameters))


def gradient_levels(schedule: Schedule, gradients: Floats) -> tuple[Floats, Floats]:
    """Return the memory of gradients that each op's rank holds after it, and the part allocated at its start.

    ``gradients`` is that of one stage from its first weight gradient to WAIT_REDUCE_GRAD, shape (stages,); the results have
    shape (ops,).
    """
    changes = _changes_between(schedule, WEIGHT_KINDS, Kind.WAIT_REDUCE_GRAD, gradients)
    return _summed(schedule, changes), np.maximum(changes, 0.0)


def _changes_between(schedule: Schedule, first: tuple[Kind, ...], last: Kind, sizes: Floats) -> Floats:
    """Return the changes of memory that a stage holds once from the first of some ops to an op of kind ``last``."""
    order, row = rows_of_stages(schedule)
    chosen = among(schedule.columns.kind[order], (*first, last))
    order, row = order[chosen], row[chosen]
    holds = schedule.columns.kind[order] != last
    held = np.append(False, holds[:-1] & (row[:-1] == row[1:])) if len(order) else holds
    changes = np.zeros(len(schedule))
    changes[order] = (holds.astype(np.float64) - held) * sizes[schedule.columns.stage[order]]
    return changes


def levels_before(schedule: Schedule, levels: Floats) -> Floats:
    """Return the levels before each op: those after the one before it in its row, 0 for the first; shape (ops,)."""
    before = np.concatenate(([0.0], levels[:-1])) if len(levels) else levels
    before[schedule.offsets[:-1][np.diff(schedule.offsets) > 0]] = 0.0
    return before


def _changes_memory(schedule: Schedule, levels: Floats) -> Bools:
    """Return a mask of the ops with a point on the curve of their rank's memory, shape (ops,).

    These are the ops that compute, the copies to the host and back, and the stage-wide ops that change the ``levels``.
    """
    kind = schedule.columns.kind
    shown = among(kind, (*COMPUTE_KINDS, *HOST_KINDS))
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        return shown
    shown |= among(kind, STAGE_WIDE_KINDS) & (levels != levels_before(schedule, levels))
    return shown


def memory_moments(timeline: Timeline) -> Floats:
    """Return when each op's change of memory takes effect, shape (ops,), in order within each rank.

    A forward or recomputation allocates at its start; every other op takes effect at its end, except for the gradients that
    a backward allocates at its start. OFFLOAD frees at the end
    of its copy, but not before the rank reaches it. RELOAD allocates when the rank reaches it, even if its copy starts
    later; the same holds for UNSHARD. RESHARD and WAIT_REDUCE_GRAD free when the rank reaches them.
    """
    schedule = timeline.schedule
    kind = schedule.columns.kind
    moments = np.where(among(kind, (Kind.F, Kind.R)), timeline.start, timeline.end)
    if schedule.kinds.isdisjoint(BESIDE_KINDS):
        return moments
    waits = Kind.OFFLOAD, Kind.WAIT_REDUCE_GRAD
    passing = (*COMPUTE_KINDS, *waits, *(COMMUNICATION_KINDS if _messages_occupy(timeline) else ()))
    passed = np.where(among(kind, passing), timeline.end, 0.0)
    for first, stop in pairwise(schedule.offsets.tolist()):
        passed[first:stop] = np.maximum.accumulate(passed[first:stop])
    # A copy or collective overlaps the computation, so its start says nothing about when the rank reached it in its row.
    # The latest end of the ops before it does: passed[op] is the time at which the rank has passed the op.
    passes = np.flatnonzero(among(kind, (*HOST_KINDS, *STAGE_WIDE_KINDS)))
    moments[passes] = passed[passes]
    return moments


def _messages_occupy(timeline: Timeline) -> bool:
    """Return True if no op starts before the messages ahead of it in its row are done (blocking communication)."""
    schedule, kind = timeline.schedule, timeline.schedule.columns.kind
    if schedule.kinds.isdisjoint(COMMUNICATION_KINDS):
        return False
    passed = np.where(among(kind, BESIDE_KINDS), 0.0, timeline.end)
    begins = ~schedule.joined & ~among(kind, (Kind.OFFLOAD, *COLLECTIVE_KINDS))
    rounding = tolerances.ROUNDING * timeline.makespan
    for first, stop in pairwise(schedule.offsets.tolist()):
        before = np.maximum.accumulate(np.append(0.0, passed[first:stop]))[:-1]
        if (begins[first:stop] & (timeline.start[first:stop] < before - rounding)).any():
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve:
    """Points of the ranks' memory over time, in the order of their ops: arrays of shape (points,).

    Attributes
    ----------
    rank, time
        Rank of each point, and the time from which its level holds.
    level
        Memory without the static one.
    parameters
        Part of ``level`` that gathered parameters take; None if there are none.
    """

    rank: NDArray[np.integer]
    time: Floats
    level: Floats
    parameters: Floats | None


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """Memory that each rank holds after each op, in activations and in bytes.

    :meth:`curve` puts them on the time of a timeline.

    Attributes
    ----------
    schedule
        Schedule of the ops.
    activations
        Level after each op, shape (ops,); 1 is what all chunks of a rank hold for one microbatch.
    bytes
        Level in bytes without static memory, shape (ops,); None if sizes are unknown.
    parameters
        Bytes of gathered parameters after each op, shape (ops,), which are part of ``bytes``; None if there are none.
    static
        Static bytes of each rank: parameters, gradients, optimizer state of all its copies, shape (ranks,).
    gradients
        Bytes of a stage's gradients that an op allocates at its start, shape (ops,), which are part of ``bytes``; None if
        there are none.
    """

    schedule: Schedule
    activations: Floats
    bytes: Floats | None
    static: Floats
    parameters: Floats | None = None
    gradients: Floats | None = None

    @cached_property
    def peak_activation(self) -> Floats:
        """Peak number of activations on each rank, shape (ranks,)."""
        return self._peaks(self.activations)

    @cached_property
    def peak_bytes(self) -> Floats | None:
        """Peak bytes on each rank including static memory, shape (ranks,); None if sizes are unknown."""
        if self.bytes is None:
            return None
        levels = self.bytes
        if self.gradients is not None:
            levels = np.maximum(levels, levels_before(self.schedule, levels) + self.gradients)
        return self._peaks(levels) + self.static

    @cached_property
    def peak_parameters(self) -> Floats | None:
        """Peak bytes of gathered parameters on each rank, shape (ranks,); None if there are none."""
        return None if self.parameters is None else self._peaks(self.parameters)

    def curve(self, timeline: Timeline, *, in_bytes: bool) -> MemoryCurve:
        """Return the level of each rank's memory over the time of a timeline of the schedule, in bytes or in activations."""
        levels = self.bytes if in_bytes else self.activations
        assert levels is not None
        schedule, moments = self.schedule, memory_moments(timeline)
        counted = np.flatnonzero(_changes_memory(schedule, levels))
        ops, times, held = counted, moments[counted], levels[counted]
        if in_bytes and self.gradients is not None:
            # What an op allocates at its start comes before what it frees.
            begins = np.flatnonzero(self.gradients)
            ops = np.concatenate((begins, counted))
            order = np.argsort(ops, kind="stable")
            at_start = levels_before(schedule, levels)[begins] + self.gradients[begins]
            ops, times = ops[order], np.concatenate((timeline.start[begins], times))[order]
            held = np.concatenate((at_start, held))[order]
        parameters = self.parameters[ops] if in_bytes and self.parameters is not None else None
        return MemoryCurve(schedule.rank[ops], times, held, parameters)

    def _peaks(self, levels: Floats) -> Floats:
        offsets = self.schedule.offsets
        filled = np.flatnonzero(np.diff(offsets))
        peaks = np.zeros(self.schedule.ranks)
        if len(filled):
            peaks[filled] = np.maximum(np.maximum.reduceat(levels, offsets[filled]), 0.0)
        return peaks
