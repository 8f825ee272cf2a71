"""Schedules of candidates that hold messages or collectives.

A candidate's times know transfers that delay and no more. Where transfers must meet, a weight backward that fills a wait
there may be before a send or a receive here, and delay the rank at its other end. So none is moved forward before the
messages are there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import BACKWARD_KINDS, HOST_KINDS, NONE, Ints, Kind, Schedule, among, dependencies
from pipeplan.simulation import message_partners, message_times
from pipeplan.solver.candidate import Candidate, Encoder
from pipeplan.solver.kernels.filling_kernel import fill_waits
from pipeplan.solver.problem import Problem

_FILL_WAITS = Kernel(fill_waits)


def schedule_that_meets(encoder: Encoder, candidate: Candidate, exchange: Exchange) -> Schedule:
    """Return a feasible candidate's schedule with its messages and collectives.

    Where transfers must meet, weight backwards are moved into the waits for messages.
    """
    problem = encoder.problem
    meets = problem.communication == "blocking"
    compute = encoder.decode(candidate, fills_waits=not meets)
    schedule = compute
    if problem.holds_messages:
        schedule = problem.with_messages(compute, exchange.of(compute))
    if meets:
        schedule = with_waits_filled(schedule, problem)
    return problem.with_collectives(schedule)


def with_waits_filled(schedule: Schedule, problem: Problem) -> Schedule:
    """Return the schedule with weight backwards moved forward into waits for messages that they fit into.

    All other ops and messages keep their order, and none of them starts later. A schedule with copies to the host stays as
    it is.
    """
    if not schedule.has(Kind.W) or not schedule.kinds.isdisjoint(HOST_KINDS):
        return schedule
    needs = dependencies(schedule)
    partner = message_partners(schedule, needs)
    costs = problem.occupied
    duration = costs.durations(schedule)
    messages = partner != NONE
    duration[messages] = message_times(schedule, costs, partner)[messages]
    owed_by = np.full(len(schedule), NONE, np.int32)
    weights = schedule.where(Kind.W)
    owed_by[weights] = needs.own_stage[weights]
    order, ranks = np.zeros(len(schedule), np.int64), schedule.ranks
    inputs = (schedule.offsets, partner, schedule.rank, schedule.joined, duration, owed_by)
    by_rank = [np.zeros(ranks, np.int64) for _ in range(3)]
    outputs = (order, np.zeros(len(schedule), np.bool_), *by_rank, np.zeros(ranks))
    scratch = (np.zeros(2 * ranks, np.int64), np.zeros(ranks, np.bool_))
    done = _FILL_WAITS(inputs, (*outputs, *scratch), work=len(schedule))
    return replace(schedule, columns=schedule.columns[order]) if done == len(schedule) else schedule


FURTHEST = 2
"""Maximum number of steps by which a move delays a result, if every op takes a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Delay of each result: the number of steps between its op and its send.

    A result that is sent at once makes its sender wait for a receiver that is busy, and one that is sent later lets the
    sender go on; but the receiver then waits for what it could have had. Which is better depends on the rest of the row.

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
        # On streams, every end of an op is a step.
        furthest = FURTHEST * (problem.placement.ranks if problem.communication == "streams" else 1)
        sent = np.zeros((2, problem.placement.stages, problem.microbatches, problem.slices), np.int64)
        return cls(sent, furthest)

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
