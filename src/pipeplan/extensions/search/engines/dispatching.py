"""Dispatching: starts for microbatches that differ, which follow the true times instead of turns of equal length."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest
from pipeplan.extensions.search.kernels.arrays import Decisions
from pipeplan.extensions.search.kernels.dispatch_kernel import DispatchRules, DispatchState, dispatch
from pipeplan.extensions.search.run import Run
from pipeplan.foundation.kernels import Argument, Kernel, Output
from pipeplan.model import Floats, Ints

_DISPATCH = Kernel(dispatch)

NAME = "dispatching"


class Dispatcher:
    """Dispatches the ops of a problem whose microbatches differ and whose sequences are not cut.

    Parameters
    ----------
    encoder
        The problem.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        flat = encoder.flat
        starts = earliest(encoder)
        # Microbatches that a rank begins until the first is back, if no rank ever idles; and all that it has.
        trips = starts[1::2] - starts[::2]
        work = np.bincount(encoder.rank_of, weights=encoder.total_times)[encoder.rank_of[::2]]
        ranks = len(flat.work)
        self.flights = np.bincount(encoder.rank_of[::2], weights=1 + trips / work, minlength=ranks)
        self.tails = _tails(encoder)

    def __call__(self, microbatches: Ints, scale: float, deadline: float = np.inf) -> Candidate:
        """Return the candidate of an order of forwards, shape (copies, turns); of infinite value at a dead end.

        ``scale`` is the number of microbatches that ranks begin before they prefer backwards, relative to those that a
        round trip takes. Ops that would otherwise miss the ``deadline`` come first.
        """
        decisions = self.encoder.decisions(np.zeros(self.encoder.positions, np.int64))
        complete = _DISPATCH(*self.arguments(microbatches, scale, deadline, decisions))
        return self.encoder.evaluate(decisions) if complete else Candidate(decisions, np.inf)

    def arguments(
        self, microbatches: Ints, scale: float, deadline: float, decisions: Decisions
    ) -> tuple[tuple[Argument, ...], tuple[Output, ...]]:
        """Return the inputs and outputs of the kernel."""
        encoder = self.encoder
        most = np.minimum(np.maximum(scale * self.flights, 1), encoder.positions).astype(np.int64)
        priority = np.repeat(np.argsort(microbatches, axis=1), 2 * encoder.stages, axis=0).ravel()
        rules = DispatchRules(self.tails, priority, most, deadline)
        return (encoder.flat, rules), (decisions.order, decisions.turn, self._state())

    def _state(self) -> DispatchState:
        ranks, classes, positions = len(self.encoder.flat.work), self.encoder.classes, self.encoder.positions
        clock, free, held = np.zeros((3, ranks))
        flying, cursor, owed, first_owed = np.zeros((4, ranks), np.int64)
        done = np.zeros(classes, np.int64)
        started, owing = np.zeros((2, positions), np.int64)
        by_rank = (clock, free, held, flying, cursor, owed, first_owed)
        return DispatchState(np.zeros(positions), *by_rank, done, started, owing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatching:
    """Offers dispatched schedules of simple orders of microbatches, for few and for many microbatches in flight.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops.
    scales
        Numbers of microbatches in flight, relative to those that a round trip takes.
    deadlines
        Times by which all should be done, relative to the lower bound.
    """

    until: float = 0.3
    scales: tuple[float, ...] = (1.0, np.inf, 1.5, 0.7)
    deadlines: tuple[float, ...] = (1.0, np.inf, 0.9)

    def __call__(self, run: Run) -> None:
        """Offer the schedules; nothing if microbatches are alike, or sequences cut."""
        encoder = run.encoder
        if not encoder.varies or run.problem.slices > 1 or run.is_over:
            return
        dispatcher = Dispatcher(encoder)
        in_order = np.tile(np.arange(encoder.turns), (encoder.copies, 1))
        orders = {"in order": in_order, **encoder.orders}
        for scale, late, (name, microbatches) in product(self.scales, self.deadlines, orders.items()):
            if run.budget.share > self.until or run.is_optimal:
                return
            run.budget.evaluations += 1
            run.offer(dispatcher(microbatches, scale, late * run.bound.value), f"{NAME} {name}", NAME)
            run.report_meanwhile()


def _tails(encoder: Encoder) -> Floats:
    """Return the time from the start of each op to the end of the longest chain after it, shape (ops,)."""
    flat, share = encoder.flat, encoder.share
    of_op, of_weight, _, _, _, of_message = flat.more.varied.reshape(6, encoder.classes, share)
    tails = np.zeros((encoder.classes, share))
    for op_class in reversed(encoder.topological):
        after, weight = flat.follower[op_class], max(flat.weight_time[op_class], 0.0)
        tail = weight * of_weight[op_class]
        if after >= 0:
            tail = np.maximum(tail, flat.more.sending[op_class] * of_message[op_class] + tails[after])
        tails[op_class] = flat.time[op_class] * of_op[op_class] + tail
    return tails.ravel()
