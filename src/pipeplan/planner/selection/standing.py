"""What a schedule's ranks hold when they hold the most: where it is nearly certain that memory peaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import BACKWARD_KINDS, Floats, Kind, Placement, Schedule
from pipeplan.strategies import strategy


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What is held, and where.

    Attributes
    ----------
    table
        Which rank holds each stage, shape (copies, stages).
    whole, until_weight
        Microbatches that each rank holds of each stage, between F and I, and between I and W; shape (ranks, stages).
    next
        The stage whose backward comes next on each rank; -1: another op does. Shape (ranks,).
    split
        Whether backwards are split into I and W.
    slices
        Of a microbatch's sequence: each takes its share of the times, and is held for itself.
    """

    table: NDArray[np.int64]
    whole: Floats
    until_weight: Floats
    next: NDArray[np.int64]
    split: bool
    slices: int = 1


@lru_cache(maxsize=1024)
def standing(name: str, ranks: int, microbatches: int, chunks: int, group_size: int | None) -> Standing:
    """Of a strategy's schedule; twice as many microbatches as ranks fill any pipeline.

    One that is made for costs and limits holds at least one microbatch of all of a rank's stages, as any does.
    """
    found = strategy(name)
    if found.looks_at_costs:
        return _standing_of_any(found.placed(found.shape(ranks, microbatches, chunks, group_size=group_size)))
    few = microbatches if group_size is not None or microbatches < 2 * ranks else 2 * ranks
    return standing_of(found(found.shape(ranks, few, chunks, group_size=group_size)))


def standing_of(schedule: Schedule) -> Standing:
    """Of any schedule."""
    columns, offsets = schedule.columns, schedule.offsets
    kind, stage = columns.kind, columns.stage
    backward = np.isin(kind, BACKWARD_KINDS)
    change = np.where(kind == Kind.F, 1, np.where(backward, -1, 0))
    waiting = np.where(kind == Kind.I, 1, np.where(kind == Kind.W, -1, 0))
    whole, until_weight = np.zeros((schedule.ranks, schedule.stages)), np.zeros((schedule.ranks, schedule.stages))
    following = np.full(schedule.ranks, -1, np.int64)
    for rank in range(schedule.ranks):
        first, end = int(offsets[rank]), int(offsets[rank + 1])
        fullest = first + int(np.argmax(np.cumsum(change[first:end]))) + 1
        np.add.at(whole[rank], stage[first:fullest], change[first:fullest])
        np.add.at(until_weight[rank], stage[first:fullest], waiting[first:fullest])
        if fullest < end and backward[fullest]:
            following[rank] = stage[fullest]
    table = np.asarray(schedule.placement.table, np.int64)
    slices = schedule.slices
    return Standing(table, whole / slices, until_weight / slices, following, schedule.has(Kind.I), slices)


def _standing_of_any(placement: Placement) -> Standing:
    """When a microbatch has passed through the last stage of its rank, before its first backward there."""
    table = np.asarray(placement.table, np.int64)
    whole = np.zeros((placement.ranks, table.shape[1]))
    following = np.zeros(placement.ranks, np.int64)
    for stage, rank in enumerate(table[0]):
        whole[rank, stage] = 1
        following[rank] = stage
    return Standing(table, whole, np.zeros_like(whole), following, split=True)
