"""The jobs of a few microbatches that repeat: their true times, what they wait for and what they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, isfinite

import numpy as np

from pipeplan.model import Kind, memory_changes
from pipeplan.solver.exact.integer_problem import IntegerMemory, IntegerProblem, Job
from pipeplan.solver.problem import Problem

MANY = 2000
"""Number of microbatches above which a limit counts as none."""


class Repeated:
    """A problem whose microbatches never end, of which a fixed number of each copy of the model pass in a period.

    Attributes
    ----------
    problem, microbatches
        The problem, and how many microbatches of each copy pass in a period.
    integers
        The jobs of one period in whole numbers.
    """

    def __init__(self, problem: Problem, microbatches: int) -> None:
        copies = problem.placement.copies
        self.problem, self.microbatches = problem, microbatches
        self.integers = IntegerProblem(replace(problem, microbatches=copies * microbatches))
        self._many = IntegerProblem(replace(problem, microbatches=copies * self._more_than_fit()))
        costs, rule = problem.occupied, problem.memory_limit
        self._times = {
            Kind.F: costs.forward,
            Kind.B: costs.backward,
            Kind.I: costs.backward_input,
            Kind.W: costs.backward_weight,
        }
        self._changes = memory_changes(rule.activation, rule.freed_by_weight)

    def _more_than_fit(self) -> int:
        """Return more microbatches than a rank with a limit can hold at once, so that the limits bind; at most ``MANY``."""
        rule, held = self.problem.memory_limit, np.zeros(self.problem.placement.ranks)
        for ranks in self.problem.placement.table:
            np.add.at(held, ranks, rule.activation)
        bounded = [limit / per for limit, per in zip(rule.limit, held, strict=True) if isfinite(limit) and per > 0]
        return 2 + ceil(min(max(bounded, default=0.0), MANY))

    @property
    def jobs(self) -> list[Job]:
        """Jobs of one period."""
        return [job for rank in range(self.problem.placement.ranks) for job in self.integers.jobs_on(rank)]

    def needs(self, job: Job) -> Iterator[tuple[Job, float]]:
        """Yield the jobs that must end before this one starts, each with the time of its transfer."""
        transfer = float(self.problem.occupied.transfer.time())
        for source, delay in self.integers.needs(job):
            yield source, transfer if delay else 0.0

    def time(self, job: Job) -> float:
        """Return the duration of a job."""
        return float(self._times[job.kind][job.stage])

    def change(self, job: Job) -> float:
        """Return the memory that a job adds to its rank, in the unit of the limits."""
        return float(self._changes[job.kind, job.stage])

    def memory(self, rank: int) -> IntegerMemory:
        """Return the memory of one microbatch on a rank, and the limit, as integers."""
        return self._many.memory(rank)

    def least_period(self) -> float:
        """Return a bound for every schedule without end: the work of a rank in a period, and the area of its memory.

        Level times time is an area: in a period each microbatch adds what it holds times how long it must, and the limit
        has room for limit times period of it (Little's law). In the unit of the costs.
        """
        integers, bound = self.integers, Fraction(0)
        for rank in range(self.problem.placement.ranks):
            jobs, memory = integers.jobs_on(rank), self.memory(rank)
            # The rank runs one job at a time.
            bound = max(bound, Fraction(sum(integers.time_of(job) for job in jobs)))
            # Little's law (1961): mean memory = throughput times the area of a microbatch, and at most the limit.
            if memory.limit:
                # Not a whole number: several microbatches may share a period.
                bound = max(bound, Fraction(sum(self.least_area(job, memory) for job in jobs), memory.limit))
        return float(bound * integers.unit) if is_plain(self.problem) else self._least_work()

    def _least_work(self) -> float:
        """Return the work of the busiest rank where backwards may run in full, or overlapped with forwards."""
        costs, table = self.problem.occupied, self.problem.placement.table
        backward = np.minimum(costs.backward, costs.backward_input + costs.backward_weight)
        forwards, backwards = np.zeros(self.problem.placement.ranks), np.zeros(self.problem.placement.ranks)
        for ranks in table:
            np.add.at(forwards, ranks, costs.forward)
            np.add.at(backwards, ranks, backward if self.problem.split_backward else costs.backward)
        work = forwards + backwards if costs.overlap is None else np.maximum(forwards, backwards)
        return float(self.microbatches * work.max())

    def least_area(self, job: Job, memory: IntegerMemory) -> int:
        """Return the area of a forward's microbatch: its memory on the stage times the least time that it holds it."""
        if job.kind is not Kind.F:
            return 0
        held, kind, integers = memory.held[job.stage], self.integers.backward, self.integers
        backward = self.trip(job) + integers.time[kind][job.stage]
        weight = 0 if kind is Kind.B else integers.time[Kind.W][job.stage]
        return held.at_forward * backward + (held.until_weight + held.between) * weight

    def trip(self, forward: Job) -> int:
        """Return the least time from the start of a forward to the start of its backward."""
        integers, copy = self.integers, forward.copy
        last = self.problem.placement.stages - 1
        onward = range(forward.stage, last)
        there = sum(integers.time[Kind.F][stage] + integers.delay(copy, stage) for stage in onward)
        back = sum(integers.time[integers.backward][stage + 1] + integers.delay(copy, stage) for stage in onward)
        return there + integers.time[Kind.F][last] + back

    def head(self, job: Job) -> int:
        """Return the least time from the first forward of a microbatch to a job of it."""
        integers, copy = self.integers, job.copy
        way = sum(integers.time[Kind.F][stage] + integers.delay(copy, stage) for stage in range(job.stage))
        if job.kind is Kind.F:
            return way
        way += self.trip(job._replace(kind=Kind.F))
        return way + (integers.time[Kind.I][job.stage] if job.kind is Kind.W else 0)


def is_plain(problem: Problem) -> bool:
    """Return true if the integer model covers all that the problem allows.

    It knows no overlapped pairs, no mix of full and split backwards, and nothing that is not kept until its backward.
    """
    return not (problem.pairs_gain or problem.full_gains.any() or problem.choices.frees_memory)
