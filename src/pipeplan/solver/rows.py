"""Conversion of a rank's decisions and timing into a row of a schedule, and back."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeplan.model import BACKWARD_KINDS, NO_GROUP, Bools, Columns, Ints, Kind, ops
from pipeplan.solver.kernels.arrays import KEPT, OFFLOADED, RECOMPUTED, CandidateTiming, Decisions
from pipeplan.solver.layout import Layout

_WEIGHT, _OFFLOAD, _RELOAD, _RECOMPUTE, _OP = range(5)
"""Order of the kinds of ops in front of an op."""


def write_row(layout: Layout, decisions: Decisions, timing: CandidateTiming, start: int, stop: int) -> Columns:
    """Return the ops of a rank, at positions ``start`` to ``stop``, of a feasible candidate just timed."""
    order, group = _pairs(layout, decisions.order[start:stop], decisions.joined[start:stop])
    op_class, index = order, layout.indices(order)
    backward = ~layout.is_forward[op_class]
    halved = backward & (layout.weight_time[op_class] >= 0)
    if layout.may_run_full:
        halved &= decisions.full[op_class * layout.share + index] == 0
    places = np.arange(len(order))
    parts = [(_OP, places, places, np.select([halved, backward], [Kind.I, Kind.B], Kind.F))]
    owed = _weights(layout, timing, order, halved, start)
    before = np.repeat(places, timing.weights[start:stop])
    before = np.concatenate((before, np.full(len(owed) - len(before), len(order))))
    parts.append((_WEIGHT, before, owed, np.full(len(owed), Kind.W)))
    if layout.decides_mode:
        mode = decisions.mode[layout.forward_of(op_class, index)]
        away, back = (np.flatnonzero((mode == OFFLOADED) & which) for which in (~backward, backward))
        again = np.flatnonzero((mode == RECOMPUTED) & backward)
        first = again - ((group[again] != NO_GROUP) & (again > 0) & (group[again] == group[again - 1]))
        parts += [
            (_OFFLOAD, np.repeat(places, timing.more.offloads[start:stop]), away, np.full(len(away), Kind.OFFLOAD)),
            (_RELOAD, np.repeat(places, timing.more.reloads[start:stop]), back, np.full(len(back), Kind.RELOAD)),
            (_RECOMPUTE, first, again, np.full(len(again), Kind.R)),
        ]
    turn = np.argsort(np.concatenate([len(_Order) * place + rank for rank, place, _, _ in parts]), kind="stable")
    which = np.concatenate([which for _, _, which, _ in parts])[turn]
    kind = np.concatenate([kind for _, _, _, kind in parts])[turn]
    of_op, index = op_class[which], index[which]
    part = layout.slice_of(of_op, index) if layout.problem.slices > 1 else 0
    row = ops(kind, layout.stage_of[of_op], layout.microbatch_of(of_op, index), part)
    groups = np.concatenate((group, np.full(len(turn) - len(order), NO_GROUP)))[turn]
    return replace(row, group=groups.astype(np.int32))


_Order = (_WEIGHT, _OFFLOAD, _RELOAD, _RECOMPUTE, _OP)


def _weights(layout: Layout, timing: CandidateTiming, order: Ints, halved: Bools, start: int) -> Ints:
    """Return the places of the backwards whose Ws the rank runs, in the order of the Ws."""
    if not layout.is_wide:
        return np.flatnonzero(halved)
    count = int(np.count_nonzero(halved))
    place_of = np.empty(layout.positions, np.int64)
    place_of[order * layout.share + layout.indices(order)] = np.arange(len(order))
    return place_of[timing.more.ran[start : start + count]]


def _pairs(layout: Layout, order: Ints, joined: Ints) -> tuple[Ints, Ints]:
    """Return the order with the forward first in overlapped pairs, and the group of each position."""
    order, group = order.copy(), np.full(len(order), NO_GROUP)
    free = 0
    for place in np.flatnonzero(joined[:-1]).tolist():
        if place >= free and layout.is_forward[order[place]] != layout.is_forward[order[place + 1]]:
            pair = sorted(order[place : place + 2].tolist(), key=lambda item: item % 2)
            order[place : place + 2], group[place : place + 2] = pair, place
            free = place + 2
    return order, group


class ReadRow(NamedTuple):
    """Decisions of a row, by position; ``prefer`` by W; ``mode`` and ``lead`` are those of the position's microbatch."""

    order: Ints
    forced: Ints
    joined: Ints
    full: Ints
    prefer: Ints
    mode: Ints
    lead: Ints


def read_row(layout: Layout, row: Columns, *, keeps_full: bool) -> ReadRow:
    """Return the decisions of a row.

    ``keeps_full``: full backwards are full also on stages where their halves can do the same.
    """
    problem = layout.problem
    copy = problem.placement.copy_of(row.microbatch, problem.microbatches).astype(np.int64)
    backward = np.isin(row.kind, BACKWARD_KINDS)
    chosen = backward | (row.kind == Kind.F)
    op_class = 2 * (copy * layout.stages + row.stage) + 1 - (row.kind == Kind.F)
    order = op_class[chosen]
    stays_full = (row.kind == Kind.B) & (problem.full_gains[row.stage] | keeps_full)
    halved = (row.kind == Kind.B) & ~stays_full
    weight = row.kind == Kind.W
    done = np.cumsum(weight | halved) - halved
    forced = np.diff(done[chosen], prepend=0) if problem.split_backward else np.zeros_like(order)
    joined = np.zeros_like(order)
    if layout.overlaps:
        # With its W behind it, a pair would take longer than its two ops apart.
        group = np.where(halved & problem.split_backward, NO_GROUP, row.group)[chosen]
        joined[:-1] = (group[1:] == group[:-1]) & (group[1:] != NO_GROUP)
    prefer = np.zeros_like(order)
    if layout.decides_weight:
        owes = ((row.kind == Kind.I) | halved, weight | halved)
        preferences = _preferences(op_class, *owes)
        prefer[: len(preferences)] = preferences
    mode, lead = _modes(row, chosen) if layout.decides_mode else (np.zeros_like(order), np.zeros_like(order))
    return ReadRow(order, forced, joined, stays_full[chosen].astype(np.int64), prefer, mode, lead)


def _preferences(op_class: Ints, owes: Bools, runs: Bools) -> Ints:
    """Return 1 + the class of each W in turn, below 0 for the one owed the longest."""
    queue: deque[int] = deque()
    preferences = []
    for number, owing, running in zip(op_class.tolist(), owes.tolist(), runs.tolist(), strict=True):
        if owing:
            queue.append(number)
        if running and number in queue:
            preferences.append(-1 - number if queue[0] == number else 1 + number)
            queue.remove(number)
    return np.array(preferences, np.int64)


def _modes(row: Columns, chosen: Bools) -> tuple[Ints, Ints]:
    """Return the mode of the microbatch of each forward and backward, and the lead of its RELOAD."""
    key = (row.stage.astype(np.int64) << 40) | (row.microbatch.astype(np.int64) << 16) | row.slice
    mode = np.full(len(row), KEPT)
    mode[np.isin(key, key[row.kind == Kind.R])] = RECOMPUTED
    mode[np.isin(key, key[row.kind == Kind.OFFLOAD])] = OFFLOADED
    place: Ints = np.cumsum(chosen) - chosen
    lead = np.zeros(len(row), np.int64)
    fetched = np.flatnonzero(row.kind == Kind.RELOAD)
    at = dict(zip(key[fetched].tolist(), place[fetched].tolist(), strict=True))
    for op in np.flatnonzero(chosen & (row.kind != Kind.F) & (mode == OFFLOADED)).tolist():
        lead[op] = place[op] - at.get(int(key[op]), int(place[op]))
    return mode[chosen], lead[chosen]
