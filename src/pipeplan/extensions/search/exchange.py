"""When the results of a candidate are sent, which its times know nothing of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeplan.extensions.search.problem import Problem
from pipeplan.model import BACKWARD_KINDS, Ints, Kind, Schedule, among

FURTHEST = 2
"""Maximum number of steps by which a move delays a result, if every op takes a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Delay of each result: the number of steps between its op and its send.

    A result that is sent at once delays the messages behind it on its stream, and one that is sent later lets them go first;
    but its receiver then waits for what it could have had. Which is better depends on the rest of the row.

    Attributes
    ----------
    delays
        Times of forwards, and of backwards; shape (2, stages, microbatches, slices).
    furthest
        Maximum number of steps by which a move delays a result.
    """

    delays: Ints
    furthest: int = FURTHEST

    @classmethod
    def at_once(cls, problem: Problem) -> Exchange:
        """Return the exchange in which every result is sent at once."""
        # Every end of an op is a step.
        furthest = FURTHEST * problem.placement.ranks
        sent = np.zeros((2, problem.placement.stages, problem.microbatches, problem.slices), np.int64)
        return cls(sent, furthest)

    def completed(self, schedule: Schedule, problem: Problem) -> Schedule:
        """Return a schedule of computations with its messages and collectives."""
        if problem.holds_messages:
            schedule = problem.with_messages(schedule, self.of(schedule))
        return problem.with_collectives(schedule)

    def of(self, schedule: Schedule) -> Ints:
        """Return the delays of a schedule's ops, shape (ops,)."""
        columns = schedule.columns
        backward = among(columns.kind, BACKWARD_KINDS)
        delay = self.delays[backward.astype(np.int64), columns.stage, columns.microbatch, columns.slice]
        return np.where(backward | (columns.kind == Kind.F), delay, 0)

    def moved(self, random: np.random.Generator) -> Exchange:
        """Return a random neighbour: a result, or those of a stage from one microbatch on, is sent earlier or later."""
        delays = self.delays.copy()
        way, stage, first, part = (int(random.integers(size)) for size in delays.shape)
        steps = int(random.integers(1, self.furthest + 1)) * (1 if random.integers(2) else -1)
        last = first + 1 if random.integers(2) else int(random.integers(first, delays.shape[2])) + 1
        delays[way, stage, first:last, part] = np.maximum(delays[way, stage, first:last, part] + steps, 0)
        return replace(self, delays=delays)
