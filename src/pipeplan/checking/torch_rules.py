"""Rules of PyTorch's runtime: the order of losses, ops that wait, and stage-wide ops.

*Losses*: the runtime stores a step's losses in the order in which the last stage computes them, and starts the backward
of microbatch k from the k-th loss (``_maybe_get_loss``). If the last stage runs microbatches in another order than that of
their numbers, the runtime raises an error if there are no k losses yet, and otherwise gradients are silently wrong.
pipeplan's own runtime stores losses by the number of their microbatch.

*Waits*: from release 2.15 on, the runtime starts a send or a reduction asynchronously and completes it at a separate
op. It rejects a schedule that waits for something not started, waits twice or never, or has two reductions pending on a
rank. Earlier releases do not have these ops.

*Form*: the runtime adds all messages and stage-wide ops to a schedule that has only ops that compute, and none to others.

*Stage-wide ops*: UNSHARD, RESHARD and REDUCE_GRAD belong to stages that are sharded or replicated over a data-parallel
group. A schedule that has them for some stages needs them for every stage, because the runtime adds none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN, present, spelled_deadlock
from pipeplan.model import (
    BACKWARD_KINDS,
    COMPUTE_KINDS,
    RECEIVE_KINDS,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    WAIT_KINDS,
    WAIT_OF,
    WEIGHT_KINDS,
    Dependencies,
    Ints,
    Kind,
    Schedule,
    among,
    counted,
    order_of_losses,
    progress,
)


def check_losses(schedule: Schedule) -> Iterator[Finding]:
    """Yield the first backward of the last stage whose loss PyTorch does not have, else its first forward out of order.

    The structure must be valid.
    """
    if schedule.placement.copies > 1 or schedule.slices > 1:
        return
    order = order_of_losses(schedule)
    wrong = np.flatnonzero(order != np.arange(len(order)))
    if not wrong.size:
        return
    last = np.flatnonzero(schedule.columns.stage == schedule.stages - 1)
    kind, microbatch = schedule.columns.kind[last], schedule.columns.microbatch[last]
    losses = np.cumsum(kind == Kind.F)
    failing = np.flatnonzero(among(kind, BACKWARD_KINDS) & (microbatch >= losses))
    renumber = "export --to torch-csv renumbers microbatches"
    if failing.size:
        first = int(failing[0])
        message = (
            f"needs the loss of microbatch {microbatch[first]} when PyTorch has {counted(int(losses[first]), 'loss')}: it "
            f"stores them in the order in which they are computed, and stops with 'Loss for microbatch {microbatch[first]} "
            f"is not available'; {renumber}"
        )
        yield finding("losses", schedule.place(int(last[first])), message, int(last[first]))
        return
    number = int(wrong[0])
    position = int(last[kind == Kind.F][number])
    message = (
        f"is forward {number} of the last stage: PyTorch stores losses in the order in which they are computed and would "
        f"use this one for microbatch {number}, which makes gradients wrong; {renumber}"
    )
    yield finding("losses", schedule.place(position), message, position)


def check_torch_form(schedule: Schedule) -> Iterator[Finding]:
    """Yield what PyTorch's runtime refuses: two copies, stage-wide ops without messages, stages gathered in vain or left so.

    The structure must be valid.
    """
    if schedule.placement.copies > 1:
        yield finding("form", "", "PyTorch's runtime cannot run it: it has one rank per stage, and here are two")
        return
    table = schedule.placement.table
    messages = not schedule.kinds.isdisjoint((*SEND_KINDS, *RECEIVE_KINDS))
    if not messages and not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS) and (table[:, 1:] != table[:, :-1]).any():
        kind = min(schedule.kinds.intersection(STAGE_WIDE_KINDS))
        position = int(schedule.where(kind)[0])
        message = (
            "stands in a schedule without SEND and RECV: PyTorch adds these only if all ops compute; export "
            "--to torch-csv-comms adds what is missing"
        )
        yield finding("form", schedule.place(position), message, position)
    yield from _check_gathered(schedule)


def _check_gathered(schedule: Schedule) -> Iterator[Finding]:
    """Yield each UNSHARD of a stage that runs no op before it is freed, or that is never freed."""
    kind, cells = schedule.columns.kind.tolist(), _cell(schedule, np.arange(len(schedule))).tolist()
    pending: dict[int, tuple[int, bool]] = {}
    faults: list[tuple[int, str]] = []
    for position, (of, cell) in enumerate(zip(kind, cells, strict=True)):
        if of == Kind.UNSHARD:
            pending[cell] = position, False
        elif of == Kind.RESHARD:
            before, used = pending.pop(cell, (position, True))
            if not used:
                faults.append(
                    (before, "gathers a stage that is freed before any op runs: PyTorch fails at the RESHARD")
                )
        elif of in COMPUTE_KINDS and cell in pending:
            pending[cell] = pending[cell][0], True
    for position, _ in pending.values():
        faults.append(
            (position, "gathers a stage that is never freed: PyTorch fails when the next step gathers it again")
        )
    for position, message in sorted(faults)[:SHOWN]:
        yield finding("sharding", schedule.place(position), message, position)


def check_waits(schedule: Schedule, *, required: bool | None = None) -> Iterator[Finding]:
    """Yield the sends and reductions without a wait, and the waits without a send or reduction.

    Parameters
    ----------
    required
        True if the runtime requires waits, False if it rejects them. None: sends need them if the schedule has any wait
        for a send, and reductions if it has any wait for a reduction.
    """
    if required is False:
        for position in schedule.where(*WAIT_KINDS)[:SHOWN].tolist():
            message = "is not supported by this runtime: PyTorch has ops that wait since release 2.15"
            yield finding("wait", schedule.place(position), message, position)
        return
    if required or not schedule.kinds.isdisjoint(SEND_WAIT_KINDS):
        yield from _check_sends(schedule)
    if required or schedule.has(Kind.WAIT_REDUCE_GRAD):
        yield from _check_reductions(schedule)


def _check_sends(schedule: Schedule) -> Iterator[Finding]:
    for kind in SEND_KINDS:
        sent, awaited = present(schedule, kind), present(schedule, WAIT_OF[kind])
        sends, waits = schedule.where(kind), schedule.where(WAIT_OF[kind])
        for position in sends[~awaited[schedule.key[sends]]][:SHOWN].tolist():
            message = f"is never waited for: {WAIT_OF[kind].name} is missing, and PyTorch 2.15 rejects the schedule"
            yield finding("wait", schedule.place(position), message, position)
        for position in waits[~sent[schedule.key[waits]]][:SHOWN].tolist():
            yield finding("wait", schedule.place(position), f"waits for a {kind.name} that is missing", position)


def _check_reductions(schedule: Schedule) -> Iterator[Finding]:
    """Check that reductions and waits alternate on each rank, and that each wait is for the stage being reduced."""
    where = schedule.where(Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)
    ranks, stages = schedule.rank[where].tolist(), schedule.columns.stage[where].tolist()
    reduces = (schedule.columns.kind[where] == Kind.REDUCE_GRAD).tolist()
    pending: dict[int, tuple[int, int]] = {}
    for position, rank, stage, starts in zip(where.tolist(), ranks, stages, reduces, strict=True):
        message = ""
        before = pending.pop(rank, None)
        if starts:
            pending[rank] = position, stage
            if before is not None:
                message = f"starts before {schedule.op(before[0])} is waited for: a rank does one reduction at a time"
        elif before is None:
            message = "waits for a REDUCE_GRAD, but there is none before it"
        elif before[1] != stage:
            message = f"waits for another stage than that of {schedule.op(before[0])}, which is being reduced"
        if message:
            yield finding("wait", schedule.place(position), message, position)
    for position, _ in pending.values():
        message = "is never waited for: WAIT_REDUCE_GRAD is missing, and PyTorch 2.15 rejects the schedule"
        yield finding("wait", schedule.place(position), message, position)


def check_progress_of_waits(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the cycle of ranks that wait for each other because a wait for a send precedes the posting of its receive.

    Every SEND must have its RECV and its wait, and the schedule without its waits must run.
    """
    waits = schedule.where(*SEND_WAIT_KINDS)
    if not waits.size:
        return
    receives = schedule.where(*RECEIVE_KINDS)
    received = np.full(len(schedule), -1, np.int32)
    received[needs.arrival[receives]] = receives
    crossing = needs.crossing.copy()
    crossing[waits] = received[needs.own_stage[waits]]
    run = progress(schedule, replace(needs, crossing=crossing))
    if not run.complete:
        yield spelled_deadlock(schedule, run)


def note_no_waits(schedule: Schedule) -> Iterator[Finding]:
    """Yield a note for a schedule with stage-wide ops, so for PyTorch's runtime, that has no waits for sends."""
    if schedule.kinds.isdisjoint(SEND_WAIT_KINDS) and not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "no op waits for a send: PyTorch 2.15 and later reject a schedule with communication but without WAIT_SEND_F "
            "and WAIT_SEND_B, which older releases do not have; export --to torch-csv-comms adds them"
        )
        yield finding("wait", "", message)


def check_reduce_grad(schedule: Schedule, *, required: bool | None = None) -> Iterator[Finding]:
    """Yield every stage on a rank without exactly one REDUCE_GRAD after all its weight gradients.

    Parameters
    ----------
    required
        True if the schedule needs them; None: only if it has any stage-wide op.
    """
    if required is False or (required is None and schedule.kinds.isdisjoint(STAGE_WIDE_KINDS)):
        return
    weights, reductions = schedule.where(*WEIGHT_KINDS), schedule.where(Kind.REDUCE_GRAD)
    last = _last(schedule, weights)
    counts = np.bincount(_cell(schedule, reductions), minlength=len(last))
    for cell in np.flatnonzero((last >= 0) & (counts == 0))[:SHOWN].tolist():
        rank, stage = divmod(cell, schedule.stages)
        message = (
            f"{stage}REDUCE_GRAD is missing: PyTorch would not divide the gradients by the number of microbatches, and "
            "replicas would train with different ones and diverge"
        )
        yield finding("reduce-grad", f"rank {rank}", message)
    seen: set[int] = set()
    for position, cell in zip(reductions.tolist(), _cell(schedule, reductions).tolist(), strict=True):
        if cell in seen:
            message = "occurs twice: reduced gradients would be reduced again"
            yield finding("reduce-grad", schedule.place(position), message, position)
        elif position < last[cell]:
            late = schedule.op(int(last[cell]))
            message = f"comes before {late}, whose gradients would not be reduced"
            yield finding("reduce-grad", schedule.place(position), message, position)
        seen.add(cell)


def note_no_reduce_grad(schedule: Schedule) -> Iterator[Finding]:
    """Yield a note for a schedule with communication, so for a runtime, that has no stage-wide ops."""
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "there is no REDUCE_GRAD: PyTorch's runtime, which adds no ops to a schedule with communication, would neither "
            "divide gradients by the number of microbatches nor reduce them over replicas; ignore this if another tool does"
        )
        yield finding("reduce-grad", "", message)


def check_sharding(schedule: Schedule) -> Iterator[Finding]:
    """Yield compute ops outside UNSHARD and RESHARD of their stage; nothing if the schedule has neither."""
    if schedule.kinds.isdisjoint((Kind.UNSHARD, Kind.RESHARD)):
        return
    kind, cell = schedule.columns.kind, _cell(schedule, np.arange(len(schedule)))
    order = np.argsort(cell, kind="stable")
    change = (kind == Kind.UNSHARD).astype(np.int64) - (kind == Kind.RESHARD)
    gathered = np.empty(len(schedule), np.int64)
    gathered[order] = np.cumsum(change[order])
    first = np.concatenate(([True], np.diff(cell[order]) != 0))
    before = np.concatenate(([0], gathered[order][:-1]))[first]
    gathered[order] -= np.repeat(before, np.diff(np.append(np.flatnonzero(first), len(schedule))))
    for position in np.flatnonzero(among(kind, COMPUTE_KINDS) & (gathered != 1))[:SHOWN].tolist():
        message = (
            "computes while its stage's parameters are not gathered: PyTorch fails here, others compute on a shard"
        )
        yield finding("sharding", schedule.place(position), message, position)
    for position in np.flatnonzero((gathered < 0) | (gathered > 1))[:SHOWN].tolist():
        if Kind(kind[position]).is_stage_wide:
            state = "gathered" if gathered[position] > 1 else "freed"
            yield finding("sharding", schedule.place(position), f"its stage's parameters are already {state}", position)


def _cell(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """Return an index of the (rank, stage) of each op."""
    return schedule.rank[positions].astype(np.int64) * schedule.stages + schedule.columns.stage[positions]


def _last(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """Return the last of these ops for each (rank, stage), -1 if there is none; shape (ranks * stages,)."""
    last = np.full(schedule.ranks * schedule.stages, -1, np.int64)
    np.maximum.at(last, _cell(schedule, positions), positions)
    return last
