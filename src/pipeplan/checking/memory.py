"""Does every rank stay within its memory limit?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.problem import Problem
from pipeplan.model import Floats, Kind, MemoryRule, Schedule, tolerances
from pipeplan.readable import size_text


def check_memory(schedule: Schedule, rule: MemoryRule) -> Iterator[Problem]:
    """The first op on each rank at which more is held than its limit allows, walked op by op along the row."""
    slack = tolerances.MEMORY * np.maximum(rule.limit, 1.0)
    for rank in range(schedule.ranks):
        row = schedule.row(rank)
        recomputed = set(zip(row.stage[row.kind == Kind.R], row.microbatch[row.kind == Kind.R], strict=True))
        held = _held(row.kind, row.stage, row.microbatch, rule, recomputed) / schedule.slices
        over = np.flatnonzero(held > rule.limit[rank] + slack[rank])
        if over.size:
            position = int(schedule.offsets[rank] + over[0])
            amounts = (float(held[over[0]]), float(held.max()), float(rule.limit[rank]))
            here, peak, limit = (size_text(each) if rule.unit == "bytes" else f"{each:.6g}" for each in amounts)
            unit = "" if rule.unit == "bytes" else f" {rule.unit}"
            message = f"holds {here}{unit} here and {peak} at its peak; its limit is {limit}"
            yield Problem("memory", schedule.place(position), message, position)


def _held(
    kind: NDArray[np.int8],
    stage: NDArray[np.int32],
    microbatch: NDArray[np.int32],
    rule: MemoryRule,
    recomputed: set[tuple[int, int]],
) -> Floats:
    """What a row holds after each of its ops."""
    activation, kept = rule.activation[stage], rule.freed_by_weight[stage]
    change = np.select(
        [kind == Kind.F, kind == Kind.R, kind == Kind.B, kind == Kind.I, kind == Kind.W],
        [activation, activation, -activation, kept - activation, -kept],
        0.0,
    )
    if recomputed:
        forgotten = [(s, m) in recomputed for s, m in zip(stage, microbatch, strict=True)]
        change[np.array(forgotten) & (kind == Kind.F)] = 0.0
    return np.cumsum(change)
