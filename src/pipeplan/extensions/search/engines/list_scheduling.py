"""List scheduling: the op that is due first always comes next.

When an op is due follows from a table: classes (F and backward of each stage) have an offset, and microbatches follow each
other by a period. The banker's algorithm keeps it out of dead ends: a forward is placed only if afterwards all microbatches
could still be finished one by one. So it finds a schedule within every memory limit that allows one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.kernels.list_kernel import ListState, run_list
from pipeplan.extensions.search.run import Run
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Floats

_RUN_LIST = Kernel(run_list)

STEPS = 4
"""Cost of placing an op per class, in evaluations: every class is considered, for each microbatch."""

NAME = "list scheduling"


def list_schedule(encoder: Encoder, due: Floats, period: float, *, room: float = 1.0) -> Candidate:
    """Return the list schedule in which the op of class c for microbatch k is due at ``due[c] + k * period``.

    It is made as if ranks might hold ``room`` times as much, for where not all of that is kept.
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
    flat = encoder.flat._replace(limit=room * encoder.flat.limit)
    inputs = (flat, encoder.share, due, period)
    complete = _RUN_LIST(inputs, (order, state))
    return encoder.from_order(order if complete else encoder.one_by_one())


def earliest(encoder: Encoder) -> Floats:
    """Return when each class can run first for the first microbatch, if it is alone; shape (classes,)."""
    flat = encoder.flat
    starts = np.zeros(encoder.classes)
    for op_class in encoder.topological:
        source = int(flat.source[op_class])
        if source >= 0:
            starts[op_class] = starts[source] + flat.time[source] + flat.delay[op_class]
    return starts


@dataclass(frozen=True, slots=True, kw_only=True)
class ListScheduling:
    """Runs list scheduling on a few simple tables, from backwards first to forwards first.

    In each, ops are due when they could first run; those of the next microbatch a period later.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops: the search goes on with something else.
    leads
        Times by which forwards are due earlier, in units of the busiest rank's work for one microbatch.
    stretches
        The period, in the same times.
    rooms
        Factors of the memory that ranks might hold if nothing had to be kept; used if microbatches may be recomputed or
        offloaded.
    smaller_rooms
        The same factors if microbatches differ: tables reckon with the mean one, and larger ones must fit as well.
    """

    until: float = 0.1
    leads: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    stretches: tuple[float, ...] = (1.0, 0.5, 0.0)
    rooms: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0)
    smaller_rooms: tuple[float, ...] = (1.0, 0.8, 0.6, 0.4)

    def __call__(self, run: Run) -> None:
        """Offer the schedules of these tables; nothing if there is a schedule and time is up."""
        encoder = run.encoder
        if run.best is not None and run.budget.out_of_time:
            return
        # One microbatch after the other fits whenever anything does: the search has a start.
        run.offer_in_turns(encoder.from_order(encoder.one_by_one()), NAME, "one by one")
        starts = earliest(encoder)
        work = float(np.max(np.bincount(encoder.rank_of, weights=encoder.total_times)))
        rooms = self.rooms if encoder.decides_mode else self.smaller_rooms if encoder.varies else (1.0,)
        for lead, stretch, room in product(self.leads, self.stretches, rooms):
            if run.is_over or run.budget.share > self.until:
                return
            # Forwards due earlier fill the pipeline first; a shorter period lets microbatches follow more closely.
            due = starts + np.where(encoder.is_forward, -lead * work, 0.0)
            run.budget.evaluations += 1
            run.offer_in_turns(list_schedule(encoder, due, stretch * work, room=room), NAME, NAME)
            run.report_meanwhile()
