"""A schedule that repeats for ever: when the ops of a few microbatches start, and after which period all do so again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import floor

from pipeplan.model import Kind, Op, tolerances
from pipeplan.solver.exact.integer_problem import Job
from pipeplan.solver.periodic.repeated import Repeated
from pipeplan.solver.problem import Problem


@dataclass(frozen=True, eq=False)
class Pattern:
    """The ops of a few microbatches, which start anew every period.

    Attributes
    ----------
    problem
        Whose stages, times and limits these are; how many microbatches it has does not matter.
    microbatches
        Number of microbatches of each copy of the model that pass in a period.
    period
        The time after which everything starts again, in the unit of the costs.
    starts
        First start of each job; the same job of the next period's microbatch starts a ``period`` later.
    """

    problem: Problem
    microbatches: int
    period: float
    starts: Mapping[Job, float]

    @property
    def per_microbatch(self) -> float:
        """Time per further microbatch, in the unit of the costs."""
        return self.period / (self.microbatches * self.problem.placement.copies)

    def repeated(self, times: int) -> Pattern:
        """Return the pattern as one of ``times`` as many microbatches."""
        starts = {
            job._replace(turn=job.turn + again * self.microbatches): start + again * self.period
            for again in range(times)
            for job, start in self.starts.items()
        }
        return Pattern(self.problem, times * self.microbatches, times * self.period, starts)

    @cached_property
    def rows(self) -> tuple[tuple[Op, ...], ...]:
        """Jobs of each rank in one period, from the earliest forward on.

        Microbatches are numbered so that the oldest in it is 0; the next period is the same with as many more as pass in
        one.
        """
        ranks = [self._row(rank) for rank in range(self.problem.placement.ranks)]
        oldest = min(microbatch for row in ranks for _, _, microbatch in row)
        return tuple(tuple(Op(kind, stage, microbatch - oldest) for kind, stage, microbatch in row) for row in ranks)

    def _row(self, rank: int) -> list[tuple[Kind, int, int]]:
        jobs = [job for job in self.starts if self._rank(job) == rank]
        begin = min(self.starts[job] for job in jobs if job.kind is Kind.F)
        shifts = {job: floor((self.starts[job] - begin) / self.period + tolerances.ROUNDING) for job in jobs}
        order = sorted(jobs, key=lambda job: self.starts[job] - shifts[job] * self.period)
        copies = self.problem.placement.copies
        return [
            (job.kind, job.stage, (job.turn - shifts[job] * self.microbatches) * copies + job.copy) for job in order
        ]

    def faults(self) -> Iterator[str]:
        """Yield the faults of the pattern as sentences; none if it can run for ever within the limits.

        Counts for itself, in the true times and sizes: it shares nothing with the solver's model but the list of jobs.
        """
        jobs, slack = Repeated(self.problem, self.microbatches), tolerances.ROUNDING * self.period
        # Every input is there in time.
        for job in self.starts:
            for source, delay in jobs.needs(job):
                if self.starts[job] < self.starts[source] + jobs.time(source) + delay - slack:
                    yield f"{job} starts before {source} is there"
        for rank in range(self.problem.placement.ranks):
            here = [job for job in self.starts if self._rank(job) == rank]
            # No two jobs of the rank overlap on the circle of the period.
            for one, other in combinations(here, 2):
                apart = (self.starts[other] - self.starts[one] + slack) % self.period
                if not jobs.time(one) <= apart + slack <= self.period - jobs.time(other) + 3 * slack:
                    yield f"{one} and {other} overlap"
            # The memory of the rank is the largest at some start.
            limit = float(self.problem.memory_limit.limit[rank])
            for job in here:
                if (held := self._held(here, jobs, self.starts[job] + slack, job)) > limit * (1 + tolerances.MEMORY):
                    yield f"rank {rank} holds {held:.6g} at {job}"

    def _held(self, here: list[Job], jobs: Repeated, now: float, starting: Job) -> float:
        """Return the memory of a rank during a job: a forward counts from its start, every other job from its end."""
        held = 0.0
        for job in here:
            after = 0.0 if job.kind is Kind.F else jobs.time(job)
            if job != starting or job.kind is Kind.F:
                held += jobs.change(job) * (floor((now - self.starts[job] - after) / self.period) + 1)
            else:
                held += jobs.change(job) * (1 if jobs.change(job) > 0 else 0)
        return held

    def _rank(self, job: Job) -> int:
        return int(self.problem.placement.table[job.copy, job.stage])
