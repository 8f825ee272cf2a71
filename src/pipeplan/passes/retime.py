"""Weight gradients into bubbles, by the order of ops alone.

A W waits for nothing but its own I, and nothing waits for it: it may run whenever its rank would idle. This pass knows
no durations: it lets every op (and every overlapped pair) take one step, and moves each W that it can into an idle step
*before* its place. So no rank holds more at any op than it did, and in steps nothing ends later. Where durations are known,
:mod:`pipeplan.solver` does better.

Filling bubbles with weight gradients: Qi, Wan, Huang, Lin, Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import DeadlockError
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    Dependencies,
    Kind,
    Progress,
    Schedule,
    among,
    concatenate,
    dependencies,
    progress,
)


def retime(schedule: Schedule) -> Schedule:
    """The schedule with its Ws as early as idle steps allow; the order of everything else stays.

    On each rank the Ws keep their order among themselves. Only compute and copies to the host are kept: messages and ops of
    whole stages belong where the new order wants them, which the passes that insert them know.

    Raises
    ------
    DeadlockError
        If ranks wait for each other: then ops have no steps.
    """
    retimed = schedule.keep(among(schedule.columns.kind, COMPUTE_KINDS))
    while (moved := _filled(retimed)) != retimed:
        retimed = moved
    return retimed if schedule.kinds.isdisjoint(HOST_KINDS) else _with_copies(retimed, schedule)


def _with_copies(retimed: Schedule, schedule: Schedule) -> Schedule:
    """The retimed ops with the schedule's copies to the host and back, each before the op that it stood before.

    Ws do not count there: a copy takes no step, and the Ws that stood before it are no later now.
    """
    stays = among(schedule.columns.kind, COMPUTE_KINDS) & (schedule.columns.kind != Kind.W)
    copies = schedule.where(*HOST_KINDS)
    following = np.cumsum(stays)[copies]
    stand = np.append(np.flatnonzero(retimed.columns.kind != Kind.W), len(retimed))[following]
    stand = np.minimum(stand, retimed.offsets[schedule.rank[copies] + 1])
    rank = np.concatenate((schedule.rank[copies], retimed.rank))
    order = np.lexsort((np.concatenate((stand - 0.5, np.arange(len(retimed)))), rank))
    columns = concatenate(schedule.columns[copies], retimed.columns)[order]
    counts = np.bincount(rank, minlength=schedule.ranks)
    return replace(retimed, columns=columns, offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64))


def _filled(schedule: Schedule) -> Schedule:
    """One round: a W that moves lets what stood behind it run earlier, so steps are counted anew."""
    needs = dependencies(schedule)
    run = progress(schedule, needs)
    if not run.complete:
        stuck = int(np.flatnonzero(run.step == 0)[0])
        raise DeadlockError(f"{schedule.place(stuck)} never runs, so there is no idle step to fill")
    when = run.step.astype(np.int64)
    for position, step in _moves(schedule, needs, run):
        when[position] = step
    order = np.lexsort((np.arange(len(schedule)), when, schedule.rank))
    return replace(schedule, columns=schedule.columns[order])


def _moves(schedule: Schedule, needs: Dependencies, run: Progress) -> Iterator[tuple[int, int]]:
    """Each W that can move, and the idle step that it moves to."""
    steps = run.step.tolist()
    inputs = needs.own_stage.tolist()
    weights = schedule.columns.kind == Kind.W
    for first, stop in zip(schedule.offsets[:-1].tolist(), schedule.offsets[1:].tolist(), strict=True):
        idle = iter(_idle_steps(run.step[first:stop]).tolist())
        step = next(idle, None)
        for position in (first + np.flatnonzero(weights[first:stop])).tolist():
            while step is not None and step <= steps[inputs[position]]:
                step = next(idle, None)
            if step is None:
                break
            if step < steps[position]:
                yield position, step
                step = next(idle, None)


def _idle_steps(steps: NDArray[np.int32]) -> NDArray[np.int64]:
    """The steps of a row, up to its last op, in which its rank does nothing."""
    return np.setdiff1d(np.arange(1, steps.max(initial=0)), steps)
