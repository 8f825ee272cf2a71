"""Does every rank stay within its cap?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.problem import Problem
from pipeplan.model import Kind, Schedule
from pipeplan.model.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCap:
    """What stages hold, and what ranks may.

    Attributes
    ----------
    activation, freed_by_weight
        Per stage for one whole microbatch, shape (stages,): held from F's start; the part that only W frees.
    limit
        Per rank, shape (ranks,), in the same unit, without what is held throughout.
    unit
        Of both, for messages.
    """

    activation: Floats
    freed_by_weight: Floats
    limit: Floats
    unit: str = "activations"


def check_memory(schedule: Schedule, cap: MemoryCap) -> Iterator[Problem]:
    """The first op on each rank at which more is held than its cap allows, walked op by op along the row."""
    slack = 1e-9 * np.maximum(cap.limit, 1.0)
    for rank in range(schedule.ranks):
        row = schedule.row(rank)
        recomputed = set(zip(row.stage[row.kind == Kind.R], row.microbatch[row.kind == Kind.R], strict=True))
        held = _held(row.kind, row.stage, row.microbatch, cap, recomputed) / schedule.slices
        over = np.flatnonzero(held > cap.limit[rank] + slack[rank])
        if over.size:
            position = int(schedule.offsets[rank] + over[0])
            message = (
                f"holds {held[over[0]]:.6g} {cap.unit} here and {held.max():.6g} at its peak; "
                f"its limit is {cap.limit[rank]:.6g}"
            )
            yield Problem("memory", schedule.place(position), message, position)


def _held(
    kind: NDArray[np.int8],
    stage: NDArray[np.int32],
    microbatch: NDArray[np.int32],
    cap: MemoryCap,
    recomputed: set[tuple[int, int]],
) -> Floats:
    """What a row holds after each of its ops."""
    activation, kept = cap.activation[stage], cap.freed_by_weight[stage]
    change = np.select(
        [kind == Kind.F, kind == Kind.R, kind == Kind.B, kind == Kind.I, kind == Kind.W],
        [activation, activation, -activation, kept - activation, -kept],
        0.0,
    )
    if recomputed:
        forgotten = [(s, m) in recomputed for s, m in zip(stage, microbatch, strict=True)]
        change[np.array(forgotten) & (kind == Kind.F)] = 0.0
    return np.cumsum(change)
