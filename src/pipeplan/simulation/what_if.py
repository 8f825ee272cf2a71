"""Makespans under changed costs, each from a new simulation: free transfers, balanced stages, no overhead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeplan.costs import Communication, Costs, Overhead, Transfer
from pipeplan.model import HOST_KINDS, Floats, Kind, tolerances
from pipeplan.simulation.simulator import Simulation, simulate

HYPOTHETICAL = frozenset(
    {
        "transfers free",
        "collectives free",
        "copies to the host and back free",
        "communication in ops free",
        "nothing lost between ops",
    }
)
"""Changes that show what something costs, and that no machine has."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change of the costs in words, and the makespan under it."""

    change: str
    makespan: float


def what_ifs(simulation: Simulation, *, communication: Communication = "edge") -> list[WhatIf]:
    """Simulate the same schedule with free transfers, copies or collectives, no overhead, or balanced stages.

    The communication in ops is made free, and twice as fast. A pair of balanced stages saves the same share as before.

    If microbatches differ, each of the longest is made as long as the median, and all of them as long as the mean. The
    stages to balance are each of the three slowest, and all of them together. A stage is balanced if its ops take the
    mean of their kind over all stages. Copies are those to the host and back; collectives gather parameters and reduce
    gradients. Changes that would not matter are left out.
    """
    costs = simulation.costs
    slower = _slower_stages(costs)
    changes = [(f"stage {stage} balanced", _balanced(costs, [stage])) for stage in slower[:SLOW_STAGES]]
    if slower:
        changes.append(("all stages balanced", _balanced(costs, list(range(costs.stages)))))
    changes += _microbatches_alike(costs)
    if costs.overhead.between_ops:
        without = Overhead(step_time=costs.overhead.step_time)
        changes.insert(0, ("nothing lost between ops", replace(costs, overhead=without)))
    if costs.offload is not None and not simulation.schedule.kinds.isdisjoint(HOST_KINDS) and costs.offload.any():
        changes.insert(0, ("copies to the host and back free", replace(costs, offload=np.zeros(costs.stages))))
    for speed, factor in (("twice as fast", 0.5), ("free", 0.0)):
        if (faster := _communicating(costs, factor)) is not None:
            changes.insert(0, (f"communication in ops {speed}", faster))
    if costs.times_collectives(simulation.schedule):
        changes.insert(0, ("collectives free", replace(costs, unshard=None, reduce=None)))
    if costs.transfer.time() > 0:
        changes.insert(0, ("transfers free", replace(costs, transfer=Transfer())))
    return [
        WhatIf(change, simulate(simulation.schedule, new, communication=communication).timeline.makespan)
        for change, new in changes
    ]


def work_of_microbatches(costs: Costs) -> Floats:
    """Return the time of the ops of each microbatch on all stages, shape (microbatches,); one number if they are alike."""
    work: Floats = _work(costs).sum(axis=0)
    return work


def work_of_stages(costs: Costs) -> Floats:
    """Return the mean time of the ops of one microbatch on each stage, shape (stages,)."""
    work: Floats = _work(costs).mean(axis=1)
    return work


def _work(costs: Costs) -> Floats:
    """Return the time of the ops of each stage and microbatch, shape (stages, microbatches or 1)."""
    halves = costs.times(Kind.I) + costs.times(Kind.W)
    work: Floats = costs.times(Kind.F) + np.minimum(costs.times(Kind.B), halves)
    return work


SLOW_STAGES = 3
"""Maximum number of stages that are balanced one by one."""

LONG_MICROBATCHES = 3
"""Maximum number of microbatches that are shortened one by one."""


def shortened(microbatch: int) -> str:
    """Return the change of a microbatch that is made as long as the median in words."""
    return f"microbatch {microbatch} as long as the median"


def _microbatches_alike(costs: Costs) -> Iterator[tuple[str, Costs]]:
    """Yield the costs with a long microbatch as long as the median, and with all of them alike."""
    if costs.factors is None:
        return
    work, factors = work_of_microbatches(costs), costs.factors
    median = float(np.median(work)) * (1 + tolerances.ROUNDING)
    for microbatch in np.argsort(-work, kind="stable")[:LONG_MICROBATCHES].tolist():
        if work[microbatch] > median:
            yield shortened(microbatch), replace(costs, factors=factors.with_median(microbatch))
    if work.max() > median:
        yield "all microbatches as long as the mean", costs.uniform()


def _slower_stages(costs: Costs) -> list[int]:
    """Return the stages that work longer than the mean, the slowest first."""
    work = costs.forward + np.minimum(costs.backward, costs.backward_input + costs.backward_weight)
    order = np.argsort(-work, kind="stable")
    return [int(stage) for stage in order if work[stage] > work.mean() * (1 + tolerances.ROUNDING)]


def _communicating(costs: Costs, factor: float) -> Costs | None:
    """Return costs with the communications in ops multiplied by a factor; None if that changes nothing, or all of an op."""
    segments = costs.segments
    if segments is None or not segments.communication:
        return None
    faster = segments.scaled(np.ones((costs.stages, 3)), communication=factor)
    before, after = segments.times(), faster.times()
    times = {op: getattr(costs, op) - before[op] + after[op] for op in before}
    return replace(costs, segments=faster, **times) if min(map(np.min, times.values())) > 0 else None


def _balanced(costs: Costs, stages: list[int]) -> Costs:
    def even(times: Floats) -> Floats:
        balanced = times.copy()
        balanced[stages] = times.mean()
        return balanced

    names = "forward", "backward", "backward_input", "backward_weight", "recompute"
    balanced = costs.retimed(**{name: even(getattr(costs, name)) for name in names})
    if costs.overlap is not None and costs.overlap.ndim == 1:
        return replace(balanced, overlap=even(costs.overlap))
    return balanced
