"""Checks of each rank's memory limit, and of the number of received messages that wait for their ops.

A receive allocates a buffer when it is posted, and frees it when the op that needs it runs. A schedule that receives
early keeps ranks from waiting at the cost of buffers. One that receives far too early runs out of memory that no count
of activations shows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.findings import Finding, finding
from pipeplan.foundation.readable import size_text
from pipeplan.model import (
    COMPUTE_KINDS,
    RECEIVE_KINDS,
    Bools,
    Columns,
    Dependencies,
    Floats,
    Ints,
    Kind,
    MemoryRule,
    Schedule,
    among,
    tolerances,
)


def check_memory(schedule: Schedule, rule: MemoryRule) -> Iterator[Finding]:
    """Yield the first op on each rank at which the memory held exceeds the rank's limit."""
    static = rule.static if rule.static.size else np.zeros(schedule.ranks)
    slack = tolerances.MEMORY * np.maximum(rule.limit, 1.0)
    for rank in range(schedule.ranks):
        row = schedule.row(rank)
        held = _peaks(_held(row, rule) / schedule.slices, *_sharded(row, rule))
        over = np.flatnonzero(held > rule.limit[rank] + slack[rank])
        if over.size:
            position = int(schedule.offsets[rank] + over[0])
            levels = held[over[0]], held.max(), rule.limit[rank]
            amounts = [float(level + static[rank]) for level in levels]
            here, peak, limit = (size_text(amount) if rule.unit == "bytes" else f"{amount:.6g}" for amount in amounts)
            unit = "" if rule.unit == "bytes" else f" {rule.unit}"
            message = f"the rank holds {here}{unit} here and {peak} at its peak; its limit is {limit}"
            yield finding("memory", schedule.place(position), message, position)


def _held(row: Columns, rule: MemoryRule) -> Floats:
    # Deliberately not model.memory_levels: the oracle must not share an error with what it checks.
    kind = row.kind
    activation, until_weight = rule.activation[row.stage], rule.freed_by_weight[row.stage]
    kept, moved = rule.recompute_keeps[row.stage], rule.offloaded[row.stage]
    recomputes = kind == Kind.R
    changes = {
        Kind.F: np.where(_recomputed(row, recomputes), kept, activation),
        Kind.R: activation - kept,
        Kind.OFFLOAD: -moved,
        Kind.RELOAD: moved,
        Kind.B: -activation,
        Kind.I: until_weight - activation,
        Kind.W: -until_weight,
    }
    change = np.select([kind == op_kind for op_kind in changes], list(changes.values()), 0.0)
    if rule.factors.size:
        change = change * rule.factors[row.stage, np.maximum(row.microbatch, 0)]
    return np.cumsum(change)


def _peaks(activations: Floats, sharded: Floats, begins: Bools) -> Floats:
    """Return the most that a rank holds from the start of each op on: gradients come before activations are freed."""
    before = np.concatenate(([0.0], activations[:-1]))
    return np.where(begins, np.maximum(before, activations), activations) + sharded


def _sharded(row: Columns, rule: MemoryRule) -> tuple[Floats, Bools]:
    """Return the memory of parameters and unreduced gradients after each op of a row, and which ops begin gradients."""
    held, begins = np.zeros(len(row)), np.zeros(len(row), np.bool_)
    if not rule.parameters.any() and not rule.gradients.any():
        return held, begins
    gathered: dict[int, float] = {}
    unreduced: dict[int, float] = {}
    for place, (kind, stage) in enumerate(zip(row.kind.tolist(), row.stage.tolist(), strict=True)):
        if kind == Kind.UNSHARD and rule.parameters.size:
            gathered[stage] = float(rule.parameters[stage])
        elif kind == Kind.RESHARD:
            gathered.pop(stage, None)
        elif kind in (Kind.B, Kind.W) and rule.gradients.size:
            begins[place] = stage not in unreduced
            unreduced[stage] = float(rule.gradients[stage])
        elif kind == Kind.WAIT_REDUCE_GRAD:
            unreduced.pop(stage, None)
        held[place] = sum(gathered.values()) + sum(unreduced.values())
    return held, begins


def _recomputed(row: Columns, recomputes: Bools) -> Bools:
    if not recomputes.any():
        return recomputes
    keys = list(zip(row.stage.tolist(), row.microbatch.tolist(), row.slice.tolist(), strict=True))
    recomputed = {key for key, is_recompute in zip(keys, recomputes.tolist(), strict=True) if is_recompute}
    return np.array([key in recomputed for key in keys])


SPARE = 2
"""Buffers per rank allowed for early receives beyond twice the number needed: one per direction."""


def check_buffers(schedule: Schedule, needs: Dependencies, *, limit: int | None = None) -> Iterator[Finding]:
    """Yield the first op on each rank at which more messages wait than its limit allows.

    Parameters
    ----------
    limit
        Maximum number of messages per rank; None: ``SPARE`` more than twice the number that late receives need.
    """
    waiting = waiting_messages(schedule, needs)
    needed = _fewest(schedule, needs)
    peaks = np.zeros(schedule.ranks, np.int64)
    np.maximum.at(peaks, schedule.rank, waiting)
    allowed = 2 * needed + SPARE if limit is None else np.full(schedule.ranks, limit)
    for rank in np.flatnonzero(peaks > allowed).tolist():
        first, stop = schedule.offsets[rank : rank + 2]
        position = int(first + np.flatnonzero(waiting[first:stop] > allowed[rank])[0])
        message = (
            f"{peaks[rank]} received messages wait for their ops at the peak of this rank, each in its own buffer; "
            f"late receives need {needed[rank]}, and {allowed[rank]} are allowed"
        )
        yield finding("buffers", schedule.place(position), message, position)


def waiting_messages(schedule: Schedule, needs: Dependencies) -> Ints:
    """Return the number of messages that each rank has received but not used after each op, shape (ops,)."""
    change = np.zeros(len(schedule), np.int64)
    change[schedule.where(*RECEIVE_KINDS)] = 1
    change[_consumers(schedule, needs)] = -1
    waiting: Ints = np.cumsum(change)
    waiting -= np.repeat(np.concatenate(([0], waiting))[schedule.offsets[:-1]], np.diff(schedule.offsets))
    return waiting


def _consumers(schedule: Schedule, needs: Dependencies) -> NDArray[np.intp]:
    """Return the positions of the compute ops that use a received message, in order."""
    compute = schedule.where(*COMPUTE_KINDS)
    arrival = needs.arrival[compute]
    return compute[(arrival >= 0) & among(schedule.columns.kind[arrival], RECEIVE_KINDS)]


def _fewest(schedule: Schedule, needs: Dependencies) -> Ints:
    """Return the maximum number of waiting messages on each rank if every receive is as late as possible, shape (ranks,).

    The latest place is right before the op that needs the message, or that needs a later message of the channel, because
    messages are received in the order in which they are sent.
    """
    consumer = _consumers(schedule, needs)
    receive = needs.arrival[consumer]
    channel = schedule.rank[needs.arrival[receive]].astype(np.int64) * schedule.ranks + schedule.rank[consumer]
    order = np.lexsort((receive, channel))[::-1]
    # The order goes from the last channel to the first. The numbers of each channel are below all previous ones, so that the
    # running minimum restarts at every channel.
    first_of_channel = channel[order] * len(schedule)
    due = np.minimum.accumulate(first_of_channel + consumer[order]) - first_of_channel
    taken, free = 2 * (due - schedule.joined[due]), 2 * consumer + 1
    when = np.argsort(np.concatenate((taken, free)), kind="stable")
    waiting = np.cumsum(np.repeat([1, -1], len(consumer))[when])
    rank = np.concatenate((schedule.rank[consumer[order]], schedule.rank[consumer]))[when]
    peaks = np.zeros(schedule.ranks, np.int64)
    np.maximum.at(peaks, rank, waiting)
    return peaks
