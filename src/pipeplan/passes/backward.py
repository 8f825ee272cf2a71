"""Between one full backward and its two halves: B, or I for the inputs and W for the weights.

Splitting changes no result and, with W right behind I, no time; it is what lets later passes move W away. Merging is its
inverse where I and W stand side by side: one B saves a second walk through the autograd graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import NO_GROUP, Kind, Schedule


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
