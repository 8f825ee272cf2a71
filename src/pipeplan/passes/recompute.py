"""Activation checkpointing as ops: forget what a forward made, and make it again before its backward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pipeplan.errors import ShapeError
from pipeplan.model import BACKWARD_KINDS, Kind, Schedule, concatenate, ops


def insert_recompute(schedule: Schedule, stages: Iterable[int] | None = None) -> Schedule:
    """The schedule with an R right before the backward (B or I) of every microbatch on some stages.

    The R of an overlapped pair stands before the pair. A microbatch that is recomputed already stays as it is.

    Parameters
    ----------
    stages
        Which ones are recomputed; None: all of them.

    Raises
    ------
    ShapeError
        For a stage that the schedule does not have.
    """
    backwards = schedule.where(*BACKWARD_KINDS)
    recomputed = schedule.key[schedule.where(Kind.R)]
    backwards = backwards[~np.isin(schedule.key[backwards], recomputed)]
    if stages is not None:
        chosen = sorted(set(stages))
        if chosen and not 0 <= chosen[0] <= chosen[-1] < schedule.stages:
            raise ShapeError(
                f"cannot recompute stages {chosen}: this schedule has stages 0 to {schedule.stages - 1}",
                field="recompute",
            )
        backwards = backwards[np.isin(schedule.columns.stage[backwards], chosen)]
    columns = schedule.columns
    inserted = ops(Kind.R, columns.stage[backwards], columns.microbatch[backwards], columns.slice[backwards])
    before = backwards - schedule.joined[backwards]
    order = np.argsort(np.concatenate((2 * np.arange(len(schedule)), 2 * before - 1)), kind="stable")
    counts = np.bincount(schedule.rank[backwards], minlength=schedule.ranks)
    offsets = schedule.offsets + np.concatenate(([0], np.cumsum(counts)))
    return replace(schedule, columns=concatenate(columns, inserted)[order], offsets=offsets)


def without_recompute(schedule: Schedule) -> Schedule:
    """The schedule without its Rs."""
    return schedule.keep(schedule.columns.kind != Kind.R)
