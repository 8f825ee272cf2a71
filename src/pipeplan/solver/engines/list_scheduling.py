"""List scheduling: next comes always the op that is due first.

When an op is due follows from a table: classes (F and backward of each stage) have an offset, and microbatches follow each
other by a period. The banker's algorithm keeps it out of dead ends: a forward is placed only if afterwards all microbatches
could still be finished one by one. So it finds a schedule within every memory limit that allows one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import Floats
from pipeplan.solver.candidate import Candidate, Encoder
from pipeplan.solver.kernels.arrays import SEARCH_COMPILES_AFTER, ListState
from pipeplan.solver.kernels.list_kernel import run_list
from pipeplan.solver.run import Run

_RUN_LIST = Kernel(run_list, SEARCH_COMPILES_AFTER)

STEPS = 4
"""Placing an op takes as long as evaluating this many ops a class: every class is looked at, for each microbatch."""

NAME = "list scheduling"


def list_schedule(encoder: Encoder, due: Floats, period: float) -> Candidate:
    """The candidate in which the op of class c for microbatch k is due at ``due[c] + k * period``.

    Where the memory of weight backwards is more than the kernel reckons with, it may be infeasible: its value says so.
    """
    order = np.zeros(encoder.positions, np.int64)
    ranks = encoder.problem.placement.ranks
    state = ListState(
        room=np.zeros(ranks),
        spare=np.zeros(ranks),
        filled=np.zeros(ranks, np.int64),
        done=np.zeros(encoder.classes, np.int64),
        refused=np.zeros(encoder.classes, np.int64),
    )
    inputs = (encoder.flat, encoder.share, due, period)
    complete = _RUN_LIST(inputs, (order, state), work=STEPS * encoder.positions * encoder.classes)
    return encoder.from_order(order if complete else encoder.one_by_one())


def earliest(encoder: Encoder) -> Floats:
    """When each class could first run for the first microbatch, were there no other; shape (classes,)."""
    flat = encoder.flat
    starts = np.zeros(encoder.classes)
    for op_class in encoder.topological:
        source = int(flat.source[op_class])
        if source >= 0:
            starts[op_class] = starts[source] + flat.time[source] + flat.delay[op_class]
    return starts


@dataclass(frozen=True, slots=True, kw_only=True)
class ListScheduling:
    """List scheduling by a few simple tables, from backwards first to forwards first.

    In each, ops are due when they could first run; those of the next microbatch a period later.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops: the search goes on with something else.
    leads
        How much earlier forwards are due, in times of the busiest rank's work for one microbatch.
    stretches
        The period, in the same times.
    """

    until: float = 0.1
    leads: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    stretches: tuple[float, ...] = (1.0, 0.5, 0.0)

    def __call__(self, run: Run) -> None:
        """Offer the best schedule of these tables."""
        encoder = run.encoder
        run.offer(encoder.from_order(encoder.one_by_one()), NAME, "one by one")
        starts = earliest(encoder)
        work = float(np.max(np.bincount(encoder.rank_of, weights=encoder.total_times)))
        for lead in self.leads:
            for stretch in self.stretches:
                if run.is_over or run.budget.share > self.until:
                    return
                due = starts + np.where(encoder.is_forward, -lead * work, 0.0)
                run.budget.evaluations += 1
                run.offer(list_schedule(encoder, due, stretch * work), NAME, NAME)
            run.report_meanwhile()
