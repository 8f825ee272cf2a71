"""Ops that PyTorch's pipeline runtime needs besides compute and transfers.

UNSHARD, RESHARD and REDUCE_GRAD follow the rules of ``torch.distributed.pipelining`` 2.13 to 2.15
(``_add_unshard_reshard``, ``_add_reduce_grad``) for stages that are sharded over a data-parallel group (FSDP); on other
stages these ops do nothing. From 2.15 on, every SEND and every REDUCE_GRAD also needs an op that waits for it
(``_add_wait_send``), which older releases reject. All releases number losses in the order in which they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError
from pipeplan.model import (
    BACKWARD_KINDS,
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    NO_MICROBATCH,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    WAIT_KINDS,
    WEIGHT_KINDS,
    Columns,
    Kind,
    Schedule,
    among,
    concatenate,
    ops,
    order_of_losses,
)
from pipeplan.passes.communication import Receives, insert_communication

ACTIVE_STAGES = 3
"""Number of stages with gathered parameters on a rank at once: one forward, one backward, one prefetched."""


def lower_for_torch(schedule: Schedule, *, receives: Receives = "early", waits: bool | None = None) -> Schedule:
    """Return the schedule as PyTorch's runtime executes it.

    Existing communication, UNSHARD, RESHARD and REDUCE_GRAD ops do not change.

    Parameters
    ----------
    receives
        Placement of inserted receives.
    waits
        True to add ops that wait for sends and reduced gradients, as PyTorch 2.15 requires; False to remove them,
        because older releases reject them; None to keep those in the schedule.

    Raises
    ------
    ShapeError
        If the runtime cannot express the schedule; see :func:`require_expressible`.
    DeadlockError
        If ranks wait for each other.
    """
    require_expressible(schedule)
    if not schedule.has(Kind.UNSHARD):
        schedule = add_unshard_reshard(schedule)
    if not schedule.has(Kind.REDUCE_GRAD):
        schedule = add_reduce_grad(schedule)
    if schedule.kinds.isdisjoint(COMMUNICATION_KINDS):
        schedule = insert_communication(schedule, receives=receives)
    if waits is None:
        return schedule
    return add_waits(schedule) if waits else without_waits(schedule)


def require_expressible(schedule: Schedule) -> None:
    """Raise an error for schedules that PyTorch's runtime does not support.

    Raises ShapeError if there are two copies of the model (bidirectional) or sequence slices.
    """
    reasons = {
        "it supports one rank per stage; a bidirectional placement has two": schedule.placement.copies > 1,
        f"it supports whole microbatches only; this schedule has {schedule.slices} slices per microbatch": (
            schedule.slices > 1
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ShapeError(f"PyTorch's pipeline runtime cannot run {schedule.name or 'this schedule'}: {reason}")


def add_reduce_grad(schedule: Schedule) -> Schedule:
    """Return the schedule with a REDUCE_GRAD after the last weight gradient (B or W) of every stage."""
    last = np.full(schedule.stages, -1, np.int64)
    weights = schedule.where(*WEIGHT_KINDS)
    np.maximum.at(last, schedule.columns.stage[weights], weights)
    stages = np.flatnonzero(last >= 0)
    stages = stages[np.argsort(last[stages])]
    pair_goes_on = np.append(schedule.joined[1:], False)
    return _insert(
        schedule, last[stages] + 1 + pair_goes_on[last[stages]], ops(Kind.REDUCE_GRAD, stages, NO_MICROBATCH)
    )


def add_waits(schedule: Schedule) -> Schedule:
    """Return the schedule with a wait for every REDUCE_GRAD and every SEND, as PyTorch 2.15 places them.

    The wait for a REDUCE_GRAD follows it directly. The wait for a SEND_F follows the backward of its microbatch on its
    stage, which proves that the next stage has received the output; that of any other SEND is at the end of its rank's
    row. If the schedule already has waits for reductions, or for sends, these stay and no more of that kind are added.
    """
    if not schedule.has(Kind.WAIT_REDUCE_GRAD):
        reductions = schedule.where(Kind.REDUCE_GRAD)
        stages = schedule.columns.stage[reductions]
        schedule = _insert(schedule, reductions + 1, ops(Kind.WAIT_REDUCE_GRAD, stages, NO_MICROBATCH))
    sends = schedule.where(*SEND_KINDS)
    if not sends.size or not schedule.kinds.isdisjoint(SEND_WAIT_KINDS):
        return schedule
    before = schedule.offsets[schedule.rank[sends] + 1]
    backwards = schedule.where(*BACKWARD_KINDS)
    backward_of = np.full(schedule.keys, -1, np.int64)
    backward_of[schedule.key[backwards]] = backwards
    backward = np.where(schedule.columns.kind[sends] == Kind.SEND_F, backward_of[schedule.key[sends]], -1)
    before = np.where(backward > sends, backward + 1, before)
    order = np.argsort(before, kind="stable")
    sent = schedule.columns[sends[order]]
    waits = np.where(sent.kind == Kind.SEND_F, Kind.WAIT_SEND_F, Kind.WAIT_SEND_B)
    return _insert(schedule, before[order], ops(waits, sent.stage, sent.microbatch))


def without_waits(schedule: Schedule) -> Schedule:
    """Return the schedule without the ops that wait for sends and reduced gradients."""
    return schedule.keep(~among(schedule.columns.kind, WAIT_KINDS))


def in_order_of_losses(schedule: Schedule) -> Schedule:
    """Return the schedule with microbatches renumbered in the order of the last stage's forwards.

    PyTorch takes the k-th loss of a step for microbatch k; if it belongs to another one, gradients are silently wrong.
    A schedule does not depend on the samples of a microbatch, so only the numbers change. A schedule that PyTorch
    cannot run, with two copies of the model or missing forwards, does not change.
    """
    order = order_of_losses(schedule)
    numbers = np.arange(schedule.microbatches)
    if np.array_equal(order, numbers) or not np.array_equal(np.sort(order), numbers) or schedule.placement.copies > 1:
        return schedule
    number = np.empty(schedule.microbatches, np.int32)
    number[order] = numbers
    microbatch = schedule.columns.microbatch
    numbered = np.where(microbatch == NO_MICROBATCH, microbatch, number[microbatch])
    return replace(schedule, columns=replace(schedule.columns, microbatch=numbered))


def add_unshard_reshard(schedule: Schedule, *, active: int = ACTIVE_STAGES) -> Schedule:
    """Return the schedule with an UNSHARD before use and a RESHARD after it, so that a rank gathers few stages at once.

    Before every op, a rank gathers the next ``active`` different stages that it will compute, after it has freed all
    others.
    """
    before: list[int] = []
    inserted: list[Columns] = []
    for first, stop in pairwise(schedule.offsets.tolist()):
        for position, kind, stages in _changes(schedule, first, stop, active):
            before += [position] * len(stages)
            inserted.append(ops(kind, stages, NO_MICROBATCH))
    return _insert(schedule, np.array(before, np.int64), concatenate(*inserted))


def _changes(schedule: Schedule, first: int, stop: int, active: int) -> Iterator[tuple[int, Kind, list[int]]]:
    """Yield where a rank gathers or frees stages: the position before which to insert, the kind, and the stages."""
    gathered: list[int] = []
    for position, wanted in _windows(schedule, first, stop, active):
        if evicted := sorted(set(gathered) - set(wanted)):
            yield position, Kind.RESHARD, evicted
        if fetched := [stage for stage in wanted if stage not in gathered]:
            yield position, Kind.UNSHARD, fetched
        gathered = wanted
    if gathered:
        yield stop, Kind.RESHARD, sorted(gathered)


def _windows(schedule: Schedule, first: int, stop: int, active: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the next different stages from each op on, where they change.

    If the limit falls between the two stages of an overlapped pair, both count.
    """
    compute = np.flatnonzero(among(schedule.columns.kind[first:stop], COMPUTE_KINDS)) + first
    stages = schedule.columns.stage[compute].tolist()
    step = (compute - schedule.joined[compute]).tolist()
    upcoming: list[tuple[int, int]] = []
    windows: list[tuple[int, list[int]]] = []
    for where, stage in zip(reversed(step), reversed(stages), strict=True):
        upcoming = [(where, stage), *(later for later in upcoming if later[1] != stage)]
        count = active + (len(upcoming) > active and upcoming[active][0] == upcoming[active - 1][0])
        window = [wanted for _, wanted in upcoming[:count]]
        if windows and windows[-1][0] == where:
            windows.pop()
        windows.append((where, window))
    return reversed(windows)


def _insert(schedule: Schedule, before: NDArray[np.int64], inserted: Columns) -> Schedule:
    """Return the schedule with ops inserted before the given positions, which are in ascending order.

    Each op goes to the rank of its stage, which decides between the end of one row and the start of the next.
    """
    rank_of = schedule.placement.table[0]
    position = np.concatenate((np.arange(len(schedule)), before))
    late = np.concatenate((np.ones(len(schedule), np.int64), np.zeros(len(before), np.int64)))
    rank = np.concatenate((schedule.rank, rank_of[inserted.stage]))
    order = np.lexsort((np.arange(len(position)), late, position, rank))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rank, minlength=schedule.ranks)))).astype(np.int64)
    columns = concatenate(schedule.columns, inserted)[order]
    return replace(schedule, columns=columns, offsets=offsets)
