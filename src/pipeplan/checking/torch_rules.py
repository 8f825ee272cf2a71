"""Rules of PyTorch's runtime: the order of losses, ops that wait, and ops of whole stages.

*Losses*: the runtime keeps a step's losses in the order in which the last stage computes them, and starts the backward of
microbatch k from the k-th of them. Where the last stage takes microbatches in another order than that of their numbers,
gradients are wrong without a word. pipeplan's own runtime keeps losses by the number of their microbatch.

*Waits*: from release 2.15 on the runtime starts a send or a reduction, and ends it where the schedule says so. It refuses a
schedule that waits for something it has not started, waits twice or never, or has two reductions of a rank under way.
Earlier releases know no such ops.

*Whole stages*: UNSHARD, RESHARD and REDUCE_GRAD belong to stages that are sharded or replicated over a data-parallel group.
A schedule that says when some stage does them must say so for every stage: the runtime does nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.finding import Finding
from pipeplan.checking.order import spelled_deadlock
from pipeplan.checking.structure import SHOWN, present
from pipeplan.model import (
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
    order_of_losses,
    progress,
)


def check_losses(schedule: Schedule) -> Iterator[Finding]:
    """Yield the first forward of the last stage that is out of order. Needs a right structure."""
    if schedule.placement.copies > 1 or schedule.slices > 1:
        return
    taken = order_of_losses(schedule)
    wrong = np.flatnonzero(taken != np.arange(len(taken)))
    if not wrong.size:
        return
    number = int(wrong[0])
    forwards = schedule.where(Kind.F)
    position = int(forwards[schedule.columns.stage[forwards] == schedule.stages - 1][number])
    message = (
        f"is forward {number} of the last stage: PyTorch keeps losses in the order in which they are computed and would "
        f"take this one for microbatch {number}, so that gradients are wrong; export --to torch-csv renumbers microbatches"
    )
    yield Finding("losses", schedule.place(position), message, position)


def check_waits(schedule: Schedule, *, wanted: bool | None = None) -> Iterator[Finding]:
    """Yield the sends and reductions without their wait, and the waits without what they wait for.

    Parameters
    ----------
    wanted
        Whether the runtime requires waits or, False, refuses them; None: of sends and of reductions, each where the schedule
        holds any wait.
    """
    if wanted is False:
        for position in schedule.where(*WAIT_KINDS)[:SHOWN].tolist():
            message = "waits, and this runtime has no ops that wait: PyTorch has them from release 2.15 on"
            yield Finding("wait", schedule.place(position), message, position)
        return
    if wanted or not schedule.kinds.isdisjoint(SEND_WAIT_KINDS):
        yield from _check_sends(schedule)
    if wanted or schedule.has(Kind.WAIT_REDUCE_GRAD):
        yield from _check_reductions(schedule)


def _check_sends(schedule: Schedule) -> Iterator[Finding]:
    for kind in SEND_KINDS:
        sent, awaited = present(schedule, kind), present(schedule, WAIT_OF[kind])
        sends, waits = schedule.where(kind), schedule.where(WAIT_OF[kind])
        for position in sends[~awaited[schedule.key[sends]]][:SHOWN].tolist():
            message = f"is never waited for: {WAIT_OF[kind].name} is missing, and PyTorch 2.15 refuses the schedule"
            yield Finding("wait", schedule.place(position), message, position)
        for position in waits[~sent[schedule.key[waits]]][:SHOWN].tolist():
            yield Finding("wait", schedule.place(position), f"there is no {kind.name} that it could wait for", position)


def _check_reductions(schedule: Schedule) -> Iterator[Finding]:
    """Walk each rank's reductions and waits: they alternate, and each wait is for the stage that is being reduced."""
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
                message = (
                    f"starts while {schedule.op(before[0])} is not waited for: a rank does one reduction at a time"
                )
        elif before is None:
            message = "there is no REDUCE_GRAD before it that it could wait for"
        elif before[1] != stage:
            message = f"waits for another stage than {schedule.op(before[0])}, which is the one that is being reduced"
        if message:
            yield Finding("wait", schedule.place(position), message, position)
    for position, _ in pending.values():
        message = "is never waited for: WAIT_REDUCE_GRAD is missing, and PyTorch 2.15 refuses the schedule"
        yield Finding("wait", schedule.place(position), message, position)


def check_progress_of_waits(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the ranks that wait for each other because a wait for a send stands before its receive can be posted.

    Needs every SEND to have its RECV and its wait, and the schedule without its waits to run.
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
    """Yield a note on a schedule for PyTorch's runtime, with ops of whole stages, that waits for no send."""
    if schedule.kinds.isdisjoint(SEND_WAIT_KINDS) and not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "no op waits for a send: PyTorch 2.15 and later refuse a schedule with communication without WAIT_SEND_F and "
            "WAIT_SEND_B, which older releases do not know; export --to torch-csv-comms adds them"
        )
        yield Finding("wait", "", message)


def check_reduce_grad(schedule: Schedule, *, wanted: bool | None = None) -> Iterator[Finding]:
    """One REDUCE_GRAD for every stage on every rank that holds it, behind all its weight gradients.

    Parameters
    ----------
    wanted
        Whether the schedule needs them; None: where it holds any op of a whole stage.
    """
    if wanted is False or (wanted is None and schedule.kinds.isdisjoint(STAGE_WIDE_KINDS)):
        return
    weights, reductions = schedule.where(*WEIGHT_KINDS), schedule.where(Kind.REDUCE_GRAD)
    last = _last(schedule, weights)
    counts = np.bincount(_cell(schedule, reductions), minlength=len(last))
    for cell in np.flatnonzero((last >= 0) & (counts == 0))[:SHOWN].tolist():
        rank, stage = divmod(cell, schedule.stages)
        message = f"{stage}REDUCE_GRAD is missing: every replica would go on with gradients of its own and drift apart"
        yield Finding("reduce-grad", f"rank {rank}", message)
    seen: set[int] = set()
    for position, cell in zip(reductions.tolist(), _cell(schedule, reductions).tolist(), strict=True):
        if cell in seen:
            message = "occurs a second time: reduced gradients would be reduced again"
            yield Finding("reduce-grad", schedule.place(position), message, position)
        elif position < last[cell]:
            late = schedule.op(int(last[cell]))
            message = f"comes before {late}: what that adds to the gradients would not be reduced"
            yield Finding("reduce-grad", schedule.place(position), message, position)
        seen.add(cell)


def note_no_reduce_grad(schedule: Schedule) -> Iterator[Finding]:
    """A schedule for a runtime (with communication) that leaves it to others to reduce gradients."""
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "there is no REDUCE_GRAD: PyTorch's runtime, which takes a schedule with communication as it stands, would not "
            "reduce gradients over replicas; nothing is missing where there are none, or another tool does it"
        )
        yield Finding("reduce-grad", "", message)


def check_sharding(schedule: Schedule) -> Iterator[Finding]:
    """Every compute op of a stage between an UNSHARD of it and the RESHARD after; no rule where a schedule has neither."""
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
    yield from _sharded(schedule, np.flatnonzero(among(kind, COMPUTE_KINDS) & (gathered != 1)))
    for position in np.flatnonzero((gathered < 0) | (gathered > 1))[:SHOWN].tolist():
        if Kind(kind[position]).is_stage_wide:
            again = "gathered" if gathered[position] > 1 else "given back"
            yield Finding("sharding", schedule.place(position), f"its stage's parameters are {again} already", position)


def _sharded(schedule: Schedule, positions: NDArray[np.intp]) -> Iterator[Finding]:
    for position in positions[:SHOWN].tolist():
        message = (
            "computes while its stage's parameters are not gathered: PyTorch stops here, others compute on a shard"
        )
        yield Finding("sharding", schedule.place(position), message, position)


def _cell(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """A number for the (rank, stage) of each op."""
    return schedule.rank[positions].astype(np.int64) * schedule.stages + schedule.columns.stage[positions]


def _last(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """The last of these ops for each (rank, stage), -1 where there is none; shape (ranks * stages,)."""
    last = np.full(schedule.ranks * schedule.stages, -1, np.int64)
    np.maximum.at(last, _cell(schedule, positions), positions)
    return last
