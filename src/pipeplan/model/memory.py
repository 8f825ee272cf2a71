"""What ranks hold, and what they may: the one place that knows which op takes memory and which frees it.

For each microbatch a stage holds its activation from the forward's start. I frees what W does not need (or adds, where W
needs more than the forward kept), W frees the rest, and B all of it. Where a microbatch is recomputed on a stage, F keeps
only what the recomputation starts from, and R takes the rest. OFFLOAD frees what is copied to the host, RELOAD takes it
back; their places in the row say when, so that what is held follows from the order of a row alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from pipeplan.model import tolerances
from pipeplan.model.op import COMMUNICATION_KINDS, COMPUTE_KINDS, HOST_KINDS, Kind, among
from pipeplan.model.placement import Placement
from pipeplan.model.quantities import Floats
from pipeplan.model.schedule import Schedule
from pipeplan.model.timeline import Timeline


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
        Of all of them, for messages.
    recompute_keeps
        What F keeps where it is recomputed, shape (stages,); nothing where it is not given.
    offloaded
        What OFFLOAD frees and RELOAD takes back, shape (stages,); all of the activation where it is not given.
    """

    activation: Floats
    freed_by_weight: Floats
    limit: Floats
    unit: str = "activations"
    recompute_keeps: Floats = field(default_factory=lambda: NOT_GIVEN)
    offloaded: Floats = field(default_factory=lambda: NOT_GIVEN)

    def __post_init__(self) -> None:
        sizes = self.activation, self.recompute_keeps, self.offloaded
        for name, values in zip(("recompute_keeps", "offloaded"), kept_and_moved(*sizes), strict=True):
            object.__setattr__(self, name, values)


NOT_GIVEN: Floats = np.empty(0)
"""In place of what each stage keeps when recomputed, or moves to the host: what holds where nobody says."""


def kept_and_moved(activation: Floats, recompute_keeps: Floats, offloaded: Floats) -> tuple[Floats, Floats]:
    """Return what a recomputed F keeps and what OFFLOAD frees, shape (stages,); nothing and everything if ``NOT_GIVEN``."""
    kept = recompute_keeps if recompute_keeps.size else np.zeros(len(activation))
    return kept, offloaded if offloaded.size else activation


def in_activations(
    placement: Placement,
    activation: Floats,
    freed_by_weight: Floats,
    recompute_keeps: Floats = NOT_GIVEN,
    offloaded: Floats = NOT_GIVEN,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Convert what each stage holds, what W frees of it, what a recomputed F keeps and what OFFLOAD frees to activations.

    Four arrays of shape (stages,). One activation is what all the chunks of a rank hold for one microbatch, an equal share
    each; of that the same parts are freed, kept and moved as of the sizes given.
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
    """Return what each rank holds throughout, shape (ranks,): the static sizes of its stages, of every copy of the model."""
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
    """Return what an op adds to what its rank holds, shape (kinds, stages); for a whole microbatch.

    The forward of a microbatch that is recomputed adds ``recompute_keeps`` instead.
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
) -> Floats:
    """Return what each op's rank holds after it, shape (ops,), from what each stage holds for a whole microbatch."""
    columns = schedule.columns
    changes = memory_changes(activation, freed_by_weight, recompute_keeps, offloaded).ravel()[schedule.sort]
    if schedule.has(Kind.R):
        recomputed = np.zeros(schedule.keys, np.bool_)
        recomputed[schedule.key[schedule.where(Kind.R)]] = True
        forwards = schedule.where(Kind.F)
        again = forwards[recomputed[schedule.key[forwards]]]
        kept, _ = kept_and_moved(activation, recompute_keeps, offloaded)
        changes[again] = kept[columns.stage[again]]
    levels: Floats = np.cumsum(changes)
    before = np.concatenate(([0.0], levels))[schedule.offsets[:-1]]
    levels -= np.repeat(before, np.diff(schedule.offsets))
    return levels / schedule.slices if schedule.slices > 1 else levels


def memory_moments(timeline: Timeline) -> Floats:
    """Return when each op's change of memory takes effect, shape (ops,), never earlier than that of the op before.

    A forward's and a recompute's at its start, every other op's at its end. An OFFLOAD's at the end of its copy, but not
    before its rank has come to it; a RELOAD's when its rank comes to it, however long its copy then waits and lasts.
    """
    schedule = timeline.schedule
    kind = schedule.columns.kind
    moments = np.where(among(kind, (Kind.F, Kind.R)), timeline.start, timeline.end)
    if schedule.kinds.isdisjoint(HOST_KINDS):
        return moments
    passing = (*COMPUTE_KINDS, Kind.OFFLOAD, *(COMMUNICATION_KINDS if _messages_occupy(timeline) else ()))
    passed = np.where(among(kind, passing), timeline.end, 0.0)
    for first, stop in pairwise(schedule.offsets.tolist()):
        passed[first:stop] = np.maximum.accumulate(passed[first:stop])
    copies = np.flatnonzero(among(kind, HOST_KINDS))
    moments[copies] = passed[copies]
    return moments


def _messages_occupy(timeline: Timeline) -> bool:
    """Whether ranks come to what stands behind a message once it is done: where nothing begins before."""
    schedule, kind = timeline.schedule, timeline.schedule.columns.kind
    if schedule.kinds.isdisjoint(COMMUNICATION_KINDS):
        return False
    passed = np.where(among(kind, HOST_KINDS), 0.0, timeline.end)
    begins = ~schedule.joined & (kind != Kind.OFFLOAD)
    rounding = tolerances.ROUNDING * timeline.makespan
    for first, stop in pairwise(schedule.offsets.tolist()):
        before = np.maximum.accumulate(np.append(0.0, passed[first:stop]))[:-1]
        if (begins[first:stop] & (timeline.start[first:stop] < before - rounding)).any():
            return False
    return True


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """How much each rank holds after each op, in activations and in bytes.

    :func:`memory_moments` says when that takes effect.

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
