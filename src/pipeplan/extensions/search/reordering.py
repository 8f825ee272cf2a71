"""Orders of microbatches that differ for a schedule that stays as it is: fast enough for a data loader."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeplan.costs import Communication, Costs, Limits, MicrobatchFactors
from pipeplan.extensions.search.candidate import orders_of
from pipeplan.extensions.search.engines.annealing import WAITS
from pipeplan.extensions.search.kernels.reorder_kernel import Clocks, Cooling, FixedOps, Taken, TurnOrders, reordered
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import (
    COMPUTE_KINDS,
    NONE,
    Floats,
    Ints,
    Kind,
    Schedule,
    among,
    crosses_ranks,
    dependencies,
    gradient_levels,
    levels_before,
    memory_levels,
    progress,
)
from pipeplan.simulation import Simulation, post_messages, simulate

_REORDERED = Kernel(reordered)

WORK = 2_000_000
"""Op evaluations of an annealing: about 15 ms."""

HEAT, COOLING = 0.3, 100.0
"""Temperature at which it starts, in units of a microbatch's mean time on a rank, and its ratio to the last one."""


@dataclass(frozen=True, slots=True, eq=False)
class Reordering:
    """An order of microbatches for a schedule.

    Attributes
    ----------
    order
        The microbatch of the batch that each one of the schedule stands for, shape (microbatches,).
    reordered, given
        The schedule simulated with these microbatches, and with those of the batch in their own order.
    fits
        True if every rank is within its limit in this order.
    """

    order: Ints
    reordered: Simulation
    given: Simulation
    fits: bool


class Reorderer:
    """Finds an order of microbatches for a schedule; no order is worse than the given one.

    Orders are annealed on transfers that only delay; the best one is simulated as the schedule runs. It replaces the given
    order if it alone is within the limits, or if it is shorter and the given order is not within them alone.

    Parameters
    ----------
    schedule, costs, limits, communication
        As for ``simulate``; the costs are those of microbatches of factor 1. On streams, a schedule
        without messages gets those of each order (:func:`pipeplan.simulation.post_messages`).
    """

    def __init__(
        self, schedule: Schedule, costs: Costs, limits: Limits | None = None, communication: Communication = "edge"
    ) -> None:
        self.schedule, self.costs, self.limits, self.communication = schedule, costs, limits, communication
        computing = schedule.keep(among(schedule.columns.kind, COMPUTE_KINDS))
        self._computing = computing
        needs = dependencies(computing)
        source = np.where(crosses_ranks(computing, needs.arrival), needs.arrival, NONE)
        rows, row = np.unique(computing.cost_index, return_inverse=True)
        self._kind, self._stage = np.divmod(rows, schedule.stages)
        rule = costs.memory.rule(schedule.placement, limits)
        sizes = rule.activation, rule.freed_by_weight, rule.recompute_keeps, rule.offloaded
        levels = memory_levels(computing, *sizes)
        gradients = rule.gradients if rule.gradients.size else np.zeros(schedule.stages)
        self._fixed = FixedOps(
            ops=np.argsort(progress(computing, needs).step, kind="stable"),
            rank=computing.rank.astype(np.int64),
            source=source.astype(np.int64),
            joined=computing.joined.astype(np.int64),
            row=row.astype(np.int64),
            microbatch=computing.columns.microbatch.astype(np.int64),
            growth=levels - levels_before(computing, levels),
            beside=gradient_levels(computing, gradients)[0],
            # No order fits where static memory alone is above the limit: their lengths alone count.
            limit=np.where(rule.limit > 0, np.minimum(rule.limit, 1e300), 1e300),
        )

    def __call__(self, factors: MicrobatchFactors) -> Reordering:
        """Return an order of microbatches with these factors; their number is that of the schedule's."""
        as_is = self._simulated(factors)
        work = as_is.costs.times(Kind.F).sum(axis=0) + as_is.costs.times(Kind.B).sum(axis=0)
        taken = self._taken(factors)
        starts = [np.arange(len(work)), *(orders[0] for orders in orders_of(work[None, :]).values())]
        start = min(starts, key=lambda order: self._annealed(taken, order, steps=0)[1])
        order, _ = self._annealed(taken, start, steps=max(WORK // max(len(self._computing), 1), 100))
        annealed = self._simulated(factors.taken(order.tolist()))
        worth, least = self._worth(as_is), self._worth(annealed)
        if least >= worth:
            return Reordering(np.arange(len(order)), as_is, as_is, fits=not worth[0])
        return Reordering(order, annealed, as_is, fits=not least[0])

    def _simulated(self, factors: MicrobatchFactors) -> Simulation:
        memory = replace(self.costs.memory, factors=factors.size)
        costs = replace(self.costs, factors=factors, memory=memory)
        schedule = post_messages(self.schedule, costs) if self.communication == "streams" else self.schedule
        return simulate(schedule, costs, communication=self.communication, limits=self.limits)

    def _worth(self, simulation: Simulation) -> tuple[bool, float]:
        """Return whether a simulation is above the limits, and its makespan."""
        over = self.limits is not None and bool(self.limits.exceeded(simulation.memory).any())
        return over, simulation.timeline.makespan

    def _annealed(self, taken: Taken, start: Ints, *, steps: int) -> tuple[Ints, float]:
        """Return the best order from a start, and its value."""
        inputs, outputs = self._arguments(taken, start, steps)
        _REORDERED(inputs, outputs, work=max(steps, 1) * len(self._computing))
        orders, _ = outputs
        return orders.best, float(orders.value[0])

    def _arguments(
        self, taken: Taken, start: Ints, steps: int
    ) -> tuple[tuple[FixedOps, Taken, Cooling], tuple[TurnOrders, Clocks]]:
        """Return the inputs and outputs of the kernel."""
        heat = HEAT * 2 * float(taken.times.mean())
        cooling = Cooling(WAITS, steps, heat, COOLING ** (-1 / max(steps, 1)))
        orders = TurnOrders(turn=start.copy(), best=start.copy(), value=np.zeros(1), random=np.array([1]))
        clocks = Clocks(np.zeros(len(self._computing)), np.zeros(2 * self.schedule.ranks))
        return (self._fixed, taken, cooling), (orders, clocks)

    def _taken(self, factors: MicrobatchFactors) -> Taken:
        costs = replace(self.costs, factors=factors, memory=replace(self.costs.memory, factors=factors.size))
        costs = costs.occupied(self.schedule.placement, self.schedule.slices)
        slices = self.schedule.slices
        by_kind = {kind: costs.times(kind) for kind in COMPUTE_KINDS}
        times = np.stack(
            [by_kind[Kind(kind)][stage] for kind, stage in zip(self._kind.tolist(), self._stage.tolist(), strict=True)]
        )
        before = np.maximum(self._stage - among(self._kind, (Kind.B, Kind.I)), 0)
        return Taken(
            times=_flat(times / slices),
            delays=_flat(costs.transfer_times(slices)[before]),
            sizes=_flat(factors.size[self._stage]),
        )


def _flat(table: Floats) -> Floats:
    return np.ascontiguousarray(table).ravel()
