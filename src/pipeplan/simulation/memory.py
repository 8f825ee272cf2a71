"""Memory over time, from the order of ops alone: on one rank ops never pass each other."""

from __future__ import annotations

from pipeplan.costs import Costs
from pipeplan.model import MemoryUse, Schedule, held_throughout, in_activations, memory_levels


def memory_use(schedule: Schedule, costs: Costs) -> MemoryUse:
    """What each rank holds after each op, in activations, and in bytes where the costs give them."""
    memory, placement = costs.memory, schedule.placement
    sizes = memory.activation, memory.freed_by_weight, memory.recompute_keeps, memory.offloaded
    return MemoryUse(
        schedule,
        memory_levels(schedule, *in_activations(placement, *sizes)),
        memory_levels(schedule, *sizes) if memory.in_bytes else None,
        held_throughout(placement, memory.static),
    )
