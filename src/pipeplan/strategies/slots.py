"""Schedules whose rule is a clock: every microbatch moves on by one stage a slot."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Ints, Kind, Placement, Schedule, concatenate, ops


def round_trips(placement: Placement, entry: Ints) -> Schedule:
    """The schedule in which a microbatch passes all S stages in S slots, and comes back in the next S.

    Stage s runs the forward of microbatch i in slot ``entry[i] + s`` and its full backward in slot
    ``entry[i] + 2S - 1 - s``; every rank runs its ops in the order of their slots. The entries must be such that no rank
    gets two ops in one slot: then the slots are the times of the schedule with F = B = 1, and it cannot deadlock.

    Parameters
    ----------
    placement
        Which rank holds each stage, for each copy of the model.
    entry
        The slot in which each microbatch enters, shape (microbatches,).
    """
    stages, microbatches = placement.stages, len(entry)
    stage = np.repeat(np.arange(stages), microbatches)
    microbatch = np.tile(np.arange(microbatches), stages)
    columns = concatenate(ops(Kind.F, stage, microbatch), ops(Kind.B, stage, microbatch))
    entered = np.tile(entry, stages)
    slot = np.concatenate([entered + stage, entered + 2 * stages - 1 - stage])
    rank = placement.ranks_of(columns.stage, columns.microbatch, microbatches)
    offsets = np.cumsum([0, *np.bincount(rank, minlength=placement.ranks)], dtype=np.int64)
    return Schedule(placement, microbatches, columns[np.lexsort((slot, rank))], offsets)
