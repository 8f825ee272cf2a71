"""Ops that PyTorch's pipeline runtime needs besides compute and transfers.

UNSHARD, RESHARD and REDUCE_GRAD are for stages that are sharded over a data-parallel group (FSDP); on other stages these
ops do nothing. A schedule without them gets those of PyTorch's rule in ``sharding``. From 2.15 on, every
SEND and every REDUCE_GRAD also needs an op that waits for it (``_add_wait_send``), which older releases reject. All releases
number losses in the order in which they are computed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.foundation.errors import ShapeError
from pipeplan.model import (
    BACKWARD_KINDS,
    COMMUNICATION_KINDS,
    NO_MICROBATCH,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    WAIT_KINDS,
    Kind,
    Schedule,
    among,
    ops,
    order_of_losses,
)
from pipeplan.passes.communication import Receives, insert_communication
from pipeplan.passes.sharding import ShardingRule, add_reduce_grad, add_unshard_reshard, insert_collectives


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
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        schedule = ShardingRule("pytorch")(schedule)
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


def add_waits(schedule: Schedule) -> Schedule:
    """Return the schedule with a wait for every REDUCE_GRAD and every SEND, as PyTorch 2.15 places them.

    The wait for a REDUCE_GRAD follows it directly. The wait for a SEND_F follows the backward of its microbatch on its
    stage, which proves that the next stage has received the output; that of any other SEND is at the end of its rank's
    row. If the schedule already has waits for reductions, or for sends, these stay and no more of that kind are added.
    """
    if not schedule.has(Kind.WAIT_REDUCE_GRAD):
        reductions = schedule.where(Kind.REDUCE_GRAD)
        awaited = ops(Kind.WAIT_REDUCE_GRAD, schedule.columns.stage[reductions], NO_MICROBATCH)
        schedule = insert_collectives(schedule, schedule.rank[reductions], reductions + 1, awaited)
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
    sends = sends[order]
    sent = schedule.columns[sends]
    waits = np.where(sent.kind == Kind.SEND_F, Kind.WAIT_SEND_F, Kind.WAIT_SEND_B)
    return insert_collectives(schedule, schedule.rank[sends], before[order], ops(waits, sent.stage, sent.microbatch))


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
