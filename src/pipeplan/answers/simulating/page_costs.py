"""Costs of a result's ops for a page that simulates other orders of them by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import COMPUTE_KINDS, MemoryUse, Timeline, levels_before
from pipeplan.simulation import simulate

if TYPE_CHECKING:
    from pipeplan.drawing import OpCosts

MOST_OPS = 200_000
"""Maximum number of ops of an order that a page simulates; larger ones would make it slow."""

_DIGITS = 12
"""Digits of memory, so that equal ops have equal costs whatever was held before them."""


def page_costs_of(timeline: Timeline, costs: Costs, memory: MemoryUse, limits: Limits | None) -> OpCosts | None:
    """Return the costs of each op, with memory in the unit of the limits; None for a timeline that a page cannot compute.

    A page knows compute ops, and transfers that only delay. Schedules with other ops, other models of communication and
    measured timelines have times of other rules.
    """
    schedule = timeline.schedule
    if not schedule.kinds.issubset(COMPUTE_KINDS) or timeline.source != "simulated" or len(schedule) > MOST_OPS:
        return None
    if memory.parameters is not None or memory.gradients is not None:
        return None
    try:
        plain = simulate(schedule, costs).timeline
    except PipeplanError:
        return None
    if not (np.array_equal(plain.start, timeline.start) and np.array_equal(plain.end, timeline.end)):
        return None
    from pipeplan.drawing import OpCosts

    in_bytes = memory.bytes is not None if limits is None else not limits.in_activations
    levels = memory.bytes if in_bytes else memory.activations
    assert levels is not None
    change = levels - levels_before(schedule, levels)
    unit = 10.0 ** (np.floor(np.log10(np.abs(levels).max(initial=1.0) or 1.0)) + 1 - _DIGITS)
    before, behind = costs.lost(schedule)
    columns = (costs.durations(schedule), before, behind, costs.delays(schedule), np.round(change / unit) * unit)
    rows, index = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    duration, before, behind, delay, held = (np.ascontiguousarray(column) for column in rows.T)
    base = memory.static if in_bytes else np.zeros(schedule.ranks)
    return OpCosts(
        index=np.asarray(index, np.int32).ravel(),
        duration=duration,
        before=before,
        behind=behind,
        delay=delay,
        held=held,
        base=base,
    )
