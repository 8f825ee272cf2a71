"""Full backwards (B), or split ones: I for the inputs, and W for the weights, which may move into bubbles.

Splitting changes neither results nor, with W right after I, the time; it allows later passes to move W. Merging is its
inverse where I and W are adjacent: one B saves a second traversal of the autograd graph.

A W waits only for its own I, and no op waits for a W, so it may run whenever its rank would idle. :func:`retime` does
not know durations. It counts one step for every op (and every overlapped pair), and moves each W that it can into an
idle step *before* its place. So no rank holds more at any op than before, and no op ends in a later step. If durations
are known, ``search`` finds better orders. Filling bubbles with weight gradients: Qi, Wan, Huang, Lin, Zero
Bubble Pipeline Parallelism, ICLR 2024, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import DeadlockError, InputError, ShapeError
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    NO_GROUP,
    Dependencies,
    Kind,
    RowProgress,
    Schedule,
    among,
    concatenate,
    dependencies,
    progress,
    require_flags,
)


def split_backward(schedule: Schedule) -> Schedule:
    """Return the schedule with an I directly followed by a W in place of every B.

    In an overlapped pair, the I replaces the B and the W follows the pair.
    """
    full = schedule.columns.kind == Kind.B
    repeated = np.repeat(np.arange(len(schedule)), 1 + full)
    second = np.concatenate(([False], repeated[1:] == repeated[:-1]))
    columns = schedule.columns[repeated]
    kind = columns.kind.copy()
    kind[full[repeated]] = Kind.I
    kind[second] = Kind.W
    group = np.where(second, NO_GROUP, columns.group).astype(np.int32)
    return replace(schedule, columns=replace(columns, kind=kind, group=group), offsets=_offsets(schedule, 1 + full))


def merge_backward(schedule: Schedule) -> Schedule:
    """Return the schedule with every I and the W directly after it merged into one B, also within overlapped pairs."""
    columns, key = schedule.columns, schedule.key
    follows = np.zeros(len(schedule), np.bool_)
    follows[1:] = (columns.kind[:-1] == Kind.I) & (columns.kind[1:] == Kind.W) & (key[:-1] == key[1:])
    follows[1:] &= schedule.rank[:-1] == schedule.rank[1:]
    kind = columns.kind.copy()
    kind[np.flatnonzero(follows) - 1] = Kind.B
    kept = ~follows
    return replace(schedule, columns=replace(columns, kind=kind)[kept], offsets=_offsets(schedule, kept))


def _offsets(schedule: Schedule, copies: NDArray[np.bool_] | NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """Return the offsets of the rows if each op occurs ``copies`` times."""
    total: NDArray[np.int64] = np.concatenate(([0], np.cumsum(copies, dtype=np.int64)))
    return total[schedule.offsets]


def retime(schedule: Schedule) -> Schedule:
    """Return the schedule with its Ws as early as idle steps allow; all other ops keep their order.

    The Ws of a rank keep their order among themselves. Only compute ops and host copies are kept. Messages and
    stage-wide ops must be inserted again, because their places depend on the new order.

    Raises DeadlockError if ranks wait for each other, so that ops have no steps.
    """
    retimed = schedule.keep(among(schedule.columns.kind, COMPUTE_KINDS))
    while (moved := _filled(retimed)) != retimed:
        retimed = moved
    return retimed if schedule.kinds.isdisjoint(HOST_KINDS) else _with_copies(retimed, schedule)


def _with_copies(retimed: Schedule, schedule: Schedule) -> Schedule:
    """Return the retimed ops with the schedule's host copies, each before the op that it preceded.

    Ws are ignored for this: a copy takes no step, and the Ws that preceded it do not run later than before.
    """
    stays = among(schedule.columns.kind, COMPUTE_KINDS) & (schedule.columns.kind != Kind.W)
    copies = schedule.where(*HOST_KINDS)
    following = np.cumsum(stays)[copies]
    stand = np.append(np.flatnonzero(retimed.columns.kind != Kind.W), len(retimed))[following]
    stand = np.minimum(stand, retimed.offsets[schedule.rank[copies] + 1])
    rank = np.concatenate((schedule.rank[copies], retimed.rank))
    order = np.lexsort((np.concatenate((stand - 0.5, np.arange(len(retimed)))), rank))
    return retimed.arranged(concatenate(schedule.columns[copies], retimed.columns)[order], rank)


def _filled(schedule: Schedule) -> Schedule:
    """Run one round of moves. Ops after a moved W may run earlier, so the next round counts the steps again."""
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


def _moves(schedule: Schedule, needs: Dependencies, run: RowProgress) -> Iterator[tuple[int, int]]:
    steps = run.step.tolist()
    inputs = needs.own_stage.tolist()
    weights = schedule.columns.kind == Kind.W
    for first, stop in zip(schedule.offsets[:-1].tolist(), schedule.offsets[1:].tolist(), strict=True):
        busy = run.step[first:stop]
        idle = iter(np.setdiff1d(np.arange(1, busy.max(initial=0)), busy).tolist())
        step = next(idle, None)
        for position in (first + np.flatnonzero(weights[first:stop])).tolist():
            while step is not None and step <= steps[inputs[position]]:
                step = next(idle, None)
            if step is None:
                break
            if step < steps[position]:
                yield position, step
                step = next(idle, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rearrangement:
    """Selected passes over backwards, applied in this order.

    Attributes
    ----------
    split_backward
        Split every full backward into one for the inputs, directly followed by one for the weights.
    retime
        Move weight backwards into earlier idle steps; see :func:`~pipeplan.passes.backward.retime`.
    merge_backward
        Merge a backward for the inputs with a directly following one for the weights.

    Raises
    ------
    InputError
        If a value is not a bool, or if splitting and merging are both selected without retiming.
    """

    split_backward: bool = False
    retime: bool = False
    merge_backward: bool = False

    def __post_init__(self) -> None:
        require_flags(split_backward=self.split_backward, retime=self.retime, merge_backward=self.merge_backward)
        if self.split_backward and self.merge_backward and not self.retime:
            raise InputError("split_backward and merge_backward undo each other: choose one of them")

    def __bool__(self) -> bool:
        return bool(self.split_backward or self.retime or self.merge_backward)

    def __call__(self, schedule: Schedule) -> Schedule:
        """Return the rearranged schedule.

        Raises
        ------
        ShapeError
            If there are no weight backwards to retime, because all backwards are full.
        DeadlockError
            If the ranks of a schedule to retime wait for each other.
        """
        if self.split_backward:
            schedule = split_backward(schedule)
        if self.retime:
            if not schedule.has(Kind.W):
                raise ShapeError(
                    f"{schedule.name or 'this schedule'} has no weight backwards (W) to retime: add split_backward"
                )
            schedule = retime(schedule)
        return merge_backward(schedule) if self.merge_backward else schedule
