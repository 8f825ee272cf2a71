"""Does every rank stay within its memory limit?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.problem import Problem
from pipeplan.model import Bools, Columns, Floats, Kind, MemoryRule, Schedule, tolerances
from pipeplan.readable import size_text


def check_memory(schedule: Schedule, rule: MemoryRule) -> Iterator[Problem]:
    """The first op on each rank at which more is held than its limit allows, walked op by op along the row."""
    slack = tolerances.MEMORY * np.maximum(rule.limit, 1.0)
    for rank in range(schedule.ranks):
        row = schedule.row(rank)
        held = _held(row, rule) / schedule.slices
        over = np.flatnonzero(held > rule.limit[rank] + slack[rank])
        if over.size:
            position = int(schedule.offsets[rank] + over[0])
            amounts = (float(held[over[0]]), float(held.max()), float(rule.limit[rank]))
            here, peak, limit = (size_text(each) if rule.unit == "bytes" else f"{each:.6g}" for each in amounts)
            unit = "" if rule.unit == "bytes" else f" {rule.unit}"
            message = f"holds {here}{unit} here and {peak} at its peak; its limit is {limit}"
            yield Problem("memory", schedule.place(position), message, position)


def _held(row: Columns, rule: MemoryRule) -> Floats:
    """What a row holds after each of its ops."""
    kind = row.kind
    activation, until_weight = rule.activation[row.stage], rule.freed_by_weight[row.stage]
    kept, moved = rule.recompute_keeps[row.stage], rule.offloaded[row.stage]
    again = kind == Kind.R
    changes = {
        Kind.F: np.where(_recomputed(row, again), kept, activation),
        Kind.R: activation - kept,
        Kind.OFFLOAD: -moved,
        Kind.RELOAD: moved,
        Kind.B: -activation,
        Kind.I: until_weight - activation,
        Kind.W: -until_weight,
    }
    change = np.select([kind == each for each in changes], list(changes.values()), 0.0)
    return np.cumsum(change)


def _recomputed(row: Columns, again: Bools) -> Bools:
    """Whether the microbatch of each op of a row is recomputed on its stage."""
    if not again.any():
        return again
    what = list(zip(row.stage.tolist(), row.microbatch.tolist(), row.slice.tolist(), strict=True))
    found = {each for each, recomputes in zip(what, again.tolist(), strict=True) if recomputes}
    return np.array([each in found for each in what])
