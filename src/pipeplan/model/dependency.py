"""Dependencies between ops, the single definition that checker, simulator, passes and search share.

==========  =============================================================  ==========================  ==============
op          waits for an arrival                                           and, on its own stage, for  slices
==========  =============================================================  ==========================  ==============
F(s)        RECV_F(s), else F(s-1)                                                                     after q-1
B(s), I(s)  RECV_B(s), else B(s+1) or I(s+1); nothing on the last stage    R(s) or RELOAD(s), or F(s)  after q+1
W(s)                                                                       I(s)
R(s)                                                                       F(s)
OFFLOAD(s)                                                                 F(s)
RELOAD(s)                                                                  OFFLOAD(s)
SEND_F(s)                                                                  F(s)
RECV_F(s)   SEND_F(s-1)
SEND_B(s)                                                                  B(s) or I(s)
RECV_B(s)   SEND_B(s+1)
WAIT_..(s)                                                                 SEND_F(s), SEND_B(s)
==========  =============================================================  ==========================  ==============

Stage-wide ops (UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD) wait for their turn on the rank. If collectives take
time, ops that compute also wait for the UNSHARD of their stage, and WAIT_REDUCE_GRAD for the REDUCE_GRAD
(:func:`collectives_awaited`). WAIT_SEND_F and WAIT_SEND_B also need the receive to be posted on the other rank; that takes
no time, so only the checker verifies it. A transfer is paid only if the arrival comes from another rank.
:func:`dependencies` applies the table to the ops of a schedule, :func:`source_of` to a stage before there is a schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import InvalidScheduleError
from pipeplan.model.op import BACKWARD_KINDS, COMPUTE_KINDS, PASS_KINDS, RECEIVE_KINDS, Kind, among
from pipeplan.model.schedule import Schedule
from pipeplan.model.values import Bools, Floats, Ints

NONE = -1
"""Sentinel: the op waits for nothing."""

MISSING = -2
"""Sentinel: the op needs one that is not in the schedule."""

Source = tuple[tuple[Kind, ...], int]
"""Kinds that can provide the result, and the offset of their stage."""

ARRIVAL: dict[Kind, tuple[Source, ...]] = {
    Kind.F: (((Kind.RECV_F,), 0), ((Kind.F,), -1)),
    # A message, where there is one, already implies the neighbor's computation: it comes first in the alternatives.
    # Either kind of backward yields the gradient of a stage's input, so a stage with B may follow one with I and W.
    Kind.B: (((Kind.RECV_B,), 0), (BACKWARD_KINDS, +1)),
    Kind.I: (((Kind.RECV_B,), 0), (BACKWARD_KINDS, +1)),
    Kind.RECV_F: (((Kind.SEND_F,), -1),),
    Kind.RECV_B: (((Kind.SEND_B,), +1),),
}
"""Result of another stage that a kind needs: the first alternative in the schedule. Offsets never leave the model."""

OWN_STAGE: dict[Kind, tuple[Source, ...]] = {
    # A backward needs the activations on its rank: from the recomputation or reload, or else from the forward itself.
    Kind.B: (((Kind.R,), 0), ((Kind.RELOAD,), 0), ((Kind.F,), 0)),
    Kind.I: (((Kind.R,), 0), ((Kind.RELOAD,), 0), ((Kind.F,), 0)),
    # W needs both the activations and the output's gradient. I has waited for both already.
    Kind.W: (((Kind.I,), 0),),
    Kind.R: (((Kind.F,), 0),),
    Kind.OFFLOAD: (((Kind.F,), 0),),
    Kind.RELOAD: (((Kind.OFFLOAD,), 0),),
    Kind.SEND_F: (((Kind.F,), 0),),
    Kind.SEND_B: ((BACKWARD_KINDS, 0),),
    Kind.WAIT_SEND_F: (((Kind.SEND_F,), 0),),
    Kind.WAIT_SEND_B: (((Kind.SEND_B,), 0),),
}
"""Work that the same stage must have finished for the same microbatch and slice."""

SLICE_STEP: dict[Kind, int] = {Kind.F: -1, Kind.B: +1, Kind.I: +1}
"""Offset of the slice that must come first on the same stage: forwards run in order, backwards in reverse."""


@dataclass(frozen=True, slots=True, eq=False)
class Dependencies:
    """Sources of each op of a schedule: positions in its columns, ``NONE`` or ``MISSING``; arrays of shape (ops,).

    Attributes
    ----------
    arrival
        The op of another stage whose result it needs, or the receive of that result.
    own_stage
        The op of the same stage that must be done.
    previous_slice
        The neighboring slice that must be done; None for schedules without slices.
    crossing
        Equal to ``arrival`` if that comes from another rank, else ``NONE``.
    """

    arrival: NDArray[np.int32]
    own_stage: NDArray[np.int32]
    previous_slice: NDArray[np.int32] | None
    crossing: NDArray[np.int32]

    @property
    def all(self) -> tuple[NDArray[np.int32], ...]:
        """All columns of sources."""
        if self.previous_slice is None:
            return self.arrival, self.own_stage
        return self.arrival, self.own_stage, self.previous_slice


def dependencies(schedule: Schedule) -> Dependencies:
    """Return the dependencies of all ops of a schedule.

    If a kind occurs twice for one (stage, microbatch, slice), the last one counts; ``check`` reports the duplicate.

    Raises
    ------
    InvalidScheduleError
        If the schedule lacks so many ops that a table of them would be far larger than the schedule.
    """
    if (kept := vars(schedule).get(_KEPT)) is not None:
        needs: Dependencies = kept
        return needs
    positions = positions_of(schedule)
    arrival = positions.sources(ARRIVAL)
    own_stage = positions.sources(OWN_STAGE)
    previous = positions.neighbors(SLICE_STEP) if schedule.slices > 1 else None
    crossing = np.where(crosses_ranks(schedule, arrival), arrival, NONE).astype(np.int32, copy=False)
    for array in (arrival, own_stage, crossing):
        array.flags.writeable = False
    # Schedules are immutable, so the result is cached on them: checker, simulator and passes all use it.
    needs = vars(schedule)[_KEPT] = Dependencies(arrival, own_stage, previous, crossing)
    vars(schedule).pop(_POSITIONS, None)
    return needs


_KEPT = "_dependencies"


def source_of(kind: Kind, stage: int, stages: int, *, backward: Kind = Kind.I) -> tuple[Kind, int] | None:
    """Return the kind and stage of the op that an op of the same microbatch waits for last; None for the first forward.

    This is the arrival from the neighboring stage or, if there is none, the work of its own stage. Everything else
    that the op waits for is implied by that one. Messages and recomputation are not considered.

    Parameters
    ----------
    backward
        Kind that produces gradients for the previous stage, I or B.
    """
    for rules in (ARRIVAL, OWN_STAGE):
        if kind in rules:
            kinds, step = rules[kind][-1]
            if 0 <= stage + step < stages:
                return (backward if kinds == BACKWARD_KINDS else kinds[0]), stage + step
    return None


def crosses_ranks(schedule: Schedule, arrival: NDArray[np.int32]) -> Bools:
    """Return a mask of the ops whose arrival comes from another rank, so that a transfer is paid. Shape (ops,)."""
    crosses: Bools = schedule.rank[np.maximum(arrival, 0)] != schedule.rank if len(arrival) else np.zeros(0, np.bool_)
    crosses &= arrival >= 0
    return crosses


def collectives_awaited(schedule: Schedule) -> NDArray[np.int32]:
    """Return the collective of its stage and rank that each op waits for, ``NONE`` for none; shape (ops,).

    An op that computes waits for the last UNSHARD before it, unless a RESHARD follows that; WAIT_REDUCE_GRAD waits for the
    last REDUCE_GRAD.
    """
    kind = schedule.columns.kind
    awaited = np.full(len(schedule), NONE, np.int32)
    if schedule.has(Kind.UNSHARD):
        gathered, freed = _last_of_stage(schedule, Kind.UNSHARD), _last_of_stage(schedule, Kind.RESHARD)
        computes = among(kind, COMPUTE_KINDS) & (gathered > freed)
        awaited[computes] = gathered[computes]
    waits = kind == Kind.WAIT_REDUCE_GRAD
    if waits.any():
        awaited[waits] = _last_of_stage(schedule, Kind.REDUCE_GRAD)[waits]
    return awaited


def _last_of_stage(schedule: Schedule, kind: Kind) -> NDArray[np.int32]:
    """Return the last op of a kind up to each op, on its rank and of its stage; ``NONE`` for none."""
    order, row = rows_of_stages(schedule)
    latest = np.maximum.accumulate(np.where(schedule.columns.kind[order] == kind, np.arange(len(order)), NONE))
    same_row = (latest >= 0) & (row[latest] == row)
    last = np.full(len(schedule), NONE, np.int32)
    last[order] = np.where(same_row, order[latest], NONE)
    return last


def rows_of_stages(schedule: Schedule) -> tuple[NDArray[np.intp], Ints]:
    """Return the positions of all ops by rank and stage, each stage's in the order of its row, and a number for these."""
    row = schedule.rank.astype(np.int64) * schedule.stages + schedule.columns.stage
    order = np.argsort(row, kind="stable")
    return order, row[order]


class Positions:
    """Lookup table from (kind, stage, microbatch, slice) to positions of ops.

    Attributes
    ----------
    where
        Positions of the ops of each kind that occurs, in order.

    Raises
    ------
    InvalidScheduleError
        If the schedule lacks so many ops that a table of them would be far larger than the schedule.
    """

    def __init__(self, schedule: Schedule) -> None:
        # A corrupt file can name microbatch 999,999,999 in one op. The table must not take memory for all of them.
        if schedule.keys > 100 * len(schedule) + 1_000_000:
            raise InvalidScheduleError(
                f"incomplete: {schedule.stages} stages x {schedule.microbatches} microbatches x {schedule.slices} "
                f"slices need {schedule.keys} forwards, but the schedule has only {len(schedule)} ops"
            )
        self.schedule = schedule
        self.where = dict(zip(schedule.kinds, map(schedule.where, schedule.kinds), strict=True))
        self._keys: dict[Kind, Ints] = {}
        self._tables: dict[tuple[Kind, ...], NDArray[np.int32]] = {}

    def table(self, *kinds: Kind) -> NDArray[np.int32]:
        """Return the position by key of the ops of these kinds, ``MISSING`` if there is none; shape (keys,)."""
        stage = self._one_stage
        return self._padded(kinds)[stage : stage + self.schedule.keys]

    @property
    def _one_stage(self) -> int:
        """Distance between the keys of neighboring stages."""
        return self.schedule.microbatches * self.schedule.slices

    def _padded(self, kinds: tuple[Kind, ...]) -> NDArray[np.int32]:
        """Return the table with a virtual stage at either end of the model, for which there is nothing to wait."""
        present = tuple(kind for kind in kinds if kind in self.where)
        if present not in self._tables:
            stage = self._one_stage
            table = np.full(self.schedule.keys + 2 * stage, MISSING, np.int32)
            table[:stage] = table[-stage:] = NONE
            for kind in present:
                keys = self.keys(kind)
                # An op that lacks its microbatch has no key.
                table[stage:-stage][keys[keys >= 0]] = self.where[kind][keys >= 0]
            self._tables[present] = table
        return self._tables[present]

    def keys(self, kind: Kind) -> Ints:
        """Return the key of every op of a kind that occurs, in order."""
        if kind not in self._keys:
            self._keys[kind] = self.schedule.key[self.where[kind]]
        return self._keys[kind]

    def sources(self, rules: dict[Kind, tuple[Source, ...]]) -> NDArray[np.int32]:
        """Return the source of each op under these rules, shape (ops,)."""
        sources = np.full(len(self.schedule), NONE, np.int32)
        for kind, alternatives in rules.items():
            if kind in self.where:
                sources[self.where[kind]] = self._first(kind, alternatives)
        return sources

    def _first(self, kind: Kind, alternatives: tuple[Source, ...]) -> NDArray[np.int32]:
        """Return the sources of all ops of a kind: the first alternative that the schedule contains."""
        *others, last = alternatives
        held = [source for source in others if not self.where.keys().isdisjoint(source[0])]
        first, *rest = (*held, last)
        positions = self._step(kind, *first)
        for kinds, step in rest:
            positions = np.where(positions == MISSING, self._step(kind, kinds, step), positions)
        return positions

    def _step(self, kind: Kind, kinds: tuple[Kind, ...], step: int) -> NDArray[np.int32]:
        positions: NDArray[np.int32] = self._padded(kinds)[self.keys(kind) + (1 + step) * self._one_stage]
        return positions

    def neighbors(self, steps: dict[Kind, int]) -> NDArray[np.int32]:
        """Return the neighboring slice that each op waits for, shape (ops,)."""
        sources = np.full(len(self.schedule), NONE, np.int32)
        for kind, step in steps.items():
            if kind not in self.where:
                continue
            where = self.where[kind]
            neighbor = self.schedule.columns.slice[where] + step
            inside = (neighbor >= 0) & (neighbor < self.schedule.slices)
            kinds = BACKWARD_KINDS if kind in BACKWARD_KINDS else (kind,)
            sources[where[inside]] = self.table(*kinds)[self.schedule.key[where[inside]] + step]
        return sources


def positions_of(schedule: Schedule) -> Positions:
    """Return the positions of a schedule's ops, cached until :func:`dependencies` is called."""
    positions: Positions = vars(schedule).get(_POSITIONS) or Positions(schedule)
    vars(schedule)[_POSITIONS] = positions
    return positions


_POSITIONS = "_positions"


def received_when_needed(schedule: Schedule, start: Floats, end: Floats) -> Floats:
    """Return the ends of measured ops with each receive extended to the start of the op that needs it, shape (ops,).

    A runtime posts a receive and continues, so its real end is only visible where the message is used.
    """
    arrival = dependencies(schedule).arrival
    needy = np.flatnonzero((arrival >= 0) & among(schedule.columns.kind, PASS_KINDS))
    needy = needy[among(schedule.columns.kind[arrival[needy]], RECEIVE_KINDS)]
    until = end.copy()
    until[arrival[needy]] = np.maximum(end[arrival[needy]], start[needy])
    return until


def disordered(
    schedule: Schedule, needs: Dependencies
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]]]:
    """Yield each column of sources, the ops whose source is missing, and those whose source comes later on their rank."""
    first_of_group = np.arange(len(schedule), dtype=np.int32)
    if schedule.joined.any():
        first_of_group -= schedule.joined
    for sources in needs.all:
        absent = np.flatnonzero(sources == MISSING) if sources.min(initial=NONE) == MISSING else _NOWHERE
        if sources is needs.arrival:
            late = np.flatnonzero((sources >= first_of_group) & (needs.crossing == NONE))
        else:
            late = np.flatnonzero(sources >= first_of_group)
            late = late[schedule.rank[sources[late]] == schedule.rank[late]]
        yield sources, absent, late


_NOWHERE = np.empty(0, np.intp)


def require_order(schedule: Schedule, needs: Dependencies) -> None:
    """Check that every source exists and precedes the ops that need it on the same rank.

    Raises
    ------
    InvalidScheduleError
        If a source is missing or comes later on its own rank; the message names the op.
    """
    for sources, absent, late in disordered(schedule, needs):
        if absent.size:
            raise InvalidScheduleError(f"incomplete: {schedule.place(int(absent[0]))} waits for an op that is missing")
        if late.size:
            op = int(late[0])
            raise InvalidScheduleError(
                f"out of order: {schedule.place(op)} waits for {schedule.op(int(sources[op]))}, "
                "which comes later on this rank"
            )
