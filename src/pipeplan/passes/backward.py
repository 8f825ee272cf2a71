"""Backwards as one op (B) or two: I for the inputs, and W for the weights, which may move into bubbles.

Splitting changes no result and, with W right behind I, no time; it is what lets later passes move W away. Merging is its
inverse where I and W stand side by side: one B saves a second walk through the autograd graph.

A W waits for nothing but its own I, and nothing waits for it: it may run whenever its rank would idle. :func:`retime` knows
no durations: it lets every op (and every overlapped pair) take one step, and moves each W that it can into an idle step
*before* its place. So no rank holds more at any op than it did, and in steps nothing ends later. Where durations are known,
:mod:`pipeplan.solver` does better. Filling bubbles with weight gradients: Qi, Wan, Huang, Lin, Zero Bubble Pipeline
Parallelism, ICLR 2024, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import DeadlockError, InputError, ShapeError
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
    """The schedule with an I and a W right behind it in place of every B.

    Of an overlapped pair with a B, the I stays in the pair and the W stands behind it.
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
    """The schedule with one B in place of every I that has its own W right behind it; the two are one in a pair too."""
    columns, key = schedule.columns, schedule.key
    follows = np.zeros(len(schedule), np.bool_)
    follows[1:] = (columns.kind[:-1] == Kind.I) & (columns.kind[1:] == Kind.W) & (key[:-1] == key[1:])
    follows[1:] &= schedule.rank[:-1] == schedule.rank[1:]
    kind = columns.kind.copy()
    kind[np.flatnonzero(follows) - 1] = Kind.B
    kept = ~follows
    return replace(schedule, columns=replace(columns, kind=kind)[kept], offsets=_offsets(schedule, kept))


def _offsets(schedule: Schedule, copies: NDArray[np.bool_] | NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """The rows' offsets once each op stands as often as ``copies`` says."""
    total: NDArray[np.int64] = np.concatenate(([0], np.cumsum(copies, dtype=np.int64)))
    return total[schedule.offsets]


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


def _moves(schedule: Schedule, needs: Dependencies, run: RowProgress) -> Iterator[tuple[int, int]]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rearrangement:
    """The passes that are wanted, applied in this order.

    Attributes
    ----------
    split_backward
        Every full backward becomes one for the inputs and, right behind it, one for the weights.
    retime
        Weight gradients move into idle steps before them; see :func:`~pipeplan.passes.backward.retime`.
    merge_backward
        A backward for the inputs and the one for the weights right behind it become one full backward.

    Raises
    ------
    InputError
        For what is neither True nor False; for splitting and merging at once, without anything between them that would
        tell the two apart.
    """

    split_backward: bool = False
    retime: bool = False
    merge_backward: bool = False

    def __post_init__(self) -> None:
        require_flags(split_backward=self.split_backward, retime=self.retime, merge_backward=self.merge_backward)
        if self.split_backward and self.merge_backward and not self.retime:
            raise InputError("split_backward and merge_backward undo each other: ask for one of them")

    def __bool__(self) -> bool:
        return bool(self.split_backward or self.retime or self.merge_backward)

    def __call__(self, schedule: Schedule) -> Schedule:
        """The schedule rearranged.

        Raises
        ------
        ShapeError
            For retiming a schedule whose backwards are all full: it has no weight gradients to move.
        DeadlockError
            For retiming one whose ranks wait for each other.
        """
        if self.split_backward:
            schedule = split_backward(schedule)
        if self.retime:
            if not schedule.has(Kind.W):
                raise ShapeError(
                    f"{schedule.name or 'this schedule'} has no weight gradients apart to move: split its backwards too"
                )
            schedule = retime(schedule)
        return merge_backward(schedule) if self.merge_backward else schedule
