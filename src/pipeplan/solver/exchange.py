"""When results are sent where transfers must meet: a decision of its own, beside the order of the ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.model import BACKWARD_KINDS, Ints, Kind, Schedule, among
from pipeplan.solver.problem import Problem

FURTHEST = 2
"""Steps by which a move delays a result at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """How many steps after its op each result is sent.

    A result that is sent at once makes its sender wait for a receiver that is busy, and one that is sent later lets the
    sender go on; but the receiver then waits for what it could have had. Which is better depends on the rest of the row.

    Attributes
    ----------
    delays
        Of forwards, and of backwards; shape (2, stages, microbatches, slices).
    """

    delays: Ints

    @classmethod
    def at_once(cls, problem: Problem) -> Exchange:
        """Every result is sent at once."""
        return cls(np.zeros((2, problem.placement.stages, problem.microbatches, problem.slices), np.int64))

    def of(self, schedule: Schedule) -> Ints:
        """The delays of a schedule's ops, shape (ops,)."""
        columns = schedule.columns
        backward = among(columns.kind, BACKWARD_KINDS)
        found = self.delays[backward.astype(np.int64), columns.stage, columns.microbatch, columns.slice]
        return np.where(backward | (columns.kind == Kind.F), found, 0)

    def moved(self, random: np.random.Generator) -> Exchange:
        """Another one: a result, or those of a stage from one microbatch on, sent earlier or later."""
        delays = self.delays.copy()
        way, stage, first, part = (int(random.integers(size)) for size in delays.shape)
        steps = int(random.integers(1, FURTHEST + 1)) * (1 if random.integers(2) else -1)
        last = first + 1 if random.integers(2) else int(random.integers(first, delays.shape[2])) + 1
        delays[way, stage, first:last, part] = np.maximum(delays[way, stage, first:last, part] + steps, 0)
        return Exchange(delays)
