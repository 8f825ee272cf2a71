"""Microbatches that differ as constraints for CP-SAT: any of them may run before any other, on each stage.

Equal microbatches run in one order without loss, which is what makes proofs over many of them fast. Here every pair of jobs
of a rank whose memory is short has a literal, so that only small problems are proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from pipeplan.model import Floats, Kind, source_of, tolerances
from pipeplan.solver.exact.integer_problem import (
    Class,
    Held,
    IntegerMemory,
    IntegerProblem,
    Job,
    Shift,
    common_unit,
    in_units,
)
from pipeplan.solver.exact.model import ExactModel


@dataclass(frozen=True, slots=True)
class VariedMemory(IntegerMemory):
    """The memory of one rank in whole numbers, with that of each microbatch in ``held_by`` (by copy, stage and turn)."""

    held_by: dict[tuple[int, int, int], Held]

    @property
    def binds(self) -> bool:
        """True if all microbatches together do not fit."""
        return self.limit < sum(sum(held) for held in self.held_by.values())

    def of(self, job: Job) -> Held:
        """Return the memory of a job's microbatch on its stage."""
        return self.held_by[job.copy, job.stage, job.turn]


class VariedProblem(IntegerProblem):
    """A problem of microbatches that differ in whole numbers, none larger than the true ones; nothing is in order.

    Parameters
    ----------
    problem
        The problem.
    """

    def _set_times(self) -> None:
        problem = self.problem
        shape = problem.placement.stages, problem.microbatches
        kinds = {*self.kinds, *((Kind.B,) if any(self.may_be_full) else ())}
        tables: dict[Kind | None, Floats] = {
            kind: np.broadcast_to(problem.occupied.times(kind), shape) for kind in kinds
        }
        tables[None] = np.broadcast_to(problem.occupied.transfer_times(), shape)
        every = [value for table in tables.values() for value in table.ravel().tolist()]
        self._set_unit(every, 2 * sum(every))
        self._units = {
            kind: [[in_units(value, self.unit) for value in row] for row in table.tolist()]
            for kind, table in tables.items()
        }

    def _time(self, kind: Kind | None, job: Job, stage: int | None = None) -> int:
        """Return the time of an op of a kind, or without one of a transfer behind a stage, for the microbatch of a job."""
        return self._units[kind][job.stage if stage is None else stage][job.copy * self.share + job.turn]

    @property
    def horizon(self) -> int:
        """Upper bound on the makespan."""
        return 2 * sum(value for table in self._units.values() for row in table for value in row)

    def needs(self, job: Job) -> Iterator[tuple[Job, int]]:
        """Yield the jobs that must end before this one starts, each with the time of its transfer."""
        source = source_of(job.kind, job.stage, self.problem.placement.stages, backward=self.backward)
        if source is not None:
            needed = job._replace(kind=source[0], stage=source[1])
            before = min(job.stage, needed.stage)
            crosses = needed.stage != job.stage and self.problem.placement.crosses[job.copy, before]
            yield needed, self._time(None, job, before) if crosses else 0

    def leads_to(self, first: Job, second: Job) -> bool:
        """Return true if the second job can never start before the first has ended."""
        return first.turn == second.turn and super().leads_to(first, second)

    def _in_order(self, kind: Kind, stage: int) -> bool:
        return False

    @cached_property
    def _forced(self) -> list[dict[Class, list[Shift]]]:
        """Return no precedences: which microbatches fit together depends on which they are."""
        return [{} for _ in range(self.problem.placement.copies)]

    def memory(self, rank: int) -> VariedMemory:
        """Return the memory of a rank's jobs, and its limit."""
        rule = self.problem.memory_limit
        forwards = [job for job in self.jobs_on(rank) if job.kind is Kind.F]
        parts = {
            (job.copy, job.stage, job.turn): self._parts(
                float(rule.activation[job.stage] * factor), float(rule.freed_by_weight[job.stage] * factor)
            )
            for job in forwards
            for factor in [float(rule.factors[job.stage, job.copy * self.share + job.turn])]
        }
        most = float(sum(sum(sizes) for sizes in parts.values()))
        limit = float(rule.limit[rank]) * (1 + tolerances.MEMORY)
        if limit >= most:
            return VariedMemory({}, 0, self.share, dict.fromkeys(parts, Held(0, 0, 0)))
        unit = common_unit([size for sizes in parts.values() for size in sizes], most)
        held = {key: Held(*(in_units(size, unit) for size in sizes)) for key, sizes in parts.items()}
        return VariedMemory({}, in_units(limit, unit), self.share, held)


class VariedModel(ExactModel):
    """The constraints of a problem of microbatches that differ."""

    def _make_full(self) -> None:
        for job, full in self.full.items():
            self.model.add(self.start[job._replace(kind=Kind.W)] == self._end(job)).only_enforce_if(full)

    def _bound_value(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if job.kind is self.integers.kinds[-1]:
                self.model.add(self.value >= self._end(job))
        # The work of the rank, between the least head and the least tail of its jobs.
        heads, work = self.scope.heads(), sum(self.integers.least_time(job) for job in jobs)
        tail = min(self.tails[job] - self.integers.least_time(job) for job in jobs)
        self.model.add(self.value >= min(heads[job] for job in jobs) + work + max(tail, 0))

    def _stay_within(self, memory: IntegerMemory, jobs: Sequence[Job]) -> None:
        if not memory.binds:
            return
        self._order_weights(memory, jobs)
        for one, other in combinations(jobs, 2):
            self._comes_first(one, other)
        self._sum_up(memory, jobs)

    def _follow_on(self) -> None:
        """Do nothing: no job of a kind need come before another."""
