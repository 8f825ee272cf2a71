"""Is every send and every reduction of gradients waited for, once, and can the wait end?

PyTorch's runtime from release 2.15 on starts a send or a reduction, and ends it where the schedule says so: it refuses a
schedule that waits for something it has not started, waits twice or never, or has two reductions of a rank under way.
Earlier releases know no such ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeplan.checking.order import spelled_deadlock
from pipeplan.checking.problem import Problem
from pipeplan.checking.structure import SHOWN, present
from pipeplan.model import (
    RECEIVE_KINDS,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    WAIT_KINDS,
    WAIT_OF,
    Dependencies,
    Kind,
    Schedule,
    progress,
)


def check_waits(schedule: Schedule, *, wanted: bool | None = None) -> Iterator[Problem]:
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
            yield Problem("wait", schedule.place(position), message, position)
        return
    if wanted or not schedule.kinds.isdisjoint(SEND_WAIT_KINDS):
        yield from _check_sends(schedule)
    if wanted or schedule.has(Kind.WAIT_REDUCE_GRAD):
        yield from _check_reductions(schedule)


def _check_sends(schedule: Schedule) -> Iterator[Problem]:
    for kind in SEND_KINDS:
        sent, awaited = present(schedule, kind), present(schedule, WAIT_OF[kind])
        sends, waits = schedule.where(kind), schedule.where(WAIT_OF[kind])
        for position in sends[~awaited[schedule.key[sends]]][:SHOWN].tolist():
            message = f"is never waited for: {WAIT_OF[kind].name} is missing, and PyTorch 2.15 refuses the schedule"
            yield Problem("wait", schedule.place(position), message, position)
        for position in waits[~sent[schedule.key[waits]]][:SHOWN].tolist():
            yield Problem("wait", schedule.place(position), f"there is no {kind.name} that it could wait for", position)


def _check_reductions(schedule: Schedule) -> Iterator[Problem]:
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
            yield Problem("wait", schedule.place(position), message, position)
    for position, _ in pending.values():
        message = "is never waited for: WAIT_REDUCE_GRAD is missing, and PyTorch 2.15 refuses the schedule"
        yield Problem("wait", schedule.place(position), message, position)


def check_progress_of_waits(schedule: Schedule, needs: Dependencies) -> Iterator[Problem]:
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


def note_no_waits(schedule: Schedule) -> Iterator[Problem]:
    """Yield a note on a schedule for PyTorch's runtime, with ops of whole stages, that waits for no send."""
    if schedule.kinds.isdisjoint(SEND_WAIT_KINDS) and not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "no op waits for a send: PyTorch 2.15 and later refuse a schedule with communication without WAIT_SEND_F and "
            "WAIT_SEND_B, which older releases do not know; export --to torch-csv-comms adds them"
        )
        yield Problem("wait", "", message)
