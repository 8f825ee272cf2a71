"""Activation checkpointing as ops: forget what a forward made, and make it again before its backward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.model import Kind, Schedule, concatenate, ops
from pipeplan.passes.chosen import Saved, chosen_backwards


def insert_recompute(schedule: Schedule, stages: Saved = None) -> Schedule:
    """The schedule with an R right before the backward (B or I) of every microbatch on some stages, or of single ones.

    The R of an overlapped pair stands before the pair. A microbatch that is recomputed or offloaded already stays as it is.

    Parameters
    ----------
    stages
        Stages, or (stage, microbatch) pairs, or both; None: all of them.

    Raises
    ------
    ShapeError
        For a stage or a microbatch that the schedule does not have.
    """
    backwards, _ = chosen_backwards(schedule, stages, verb="recompute", field="recompute")
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
