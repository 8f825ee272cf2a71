"""Microbatches that differ as constraints for CP-SAT: any of them may run before any other, on each stage.

Equal microbatches run in one order without loss, which is what makes proofs over many of them fast. Here every pair of jobs
of a rank whose memory is short has a literal, so that only small problems are proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import combinations

import numpy as np

from pipeplan.model import Floats, Kind, source_of, tolerances
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.exact.integer_problem import (
    Class,
    Held,
    IntegerMemory,
    IntegerProblem,
    Job,
    Shift,
    as_fraction,
    common_unit,
    in_units,
)
from pipeplan.solver.exact.model import ExactModel
from pipeplan.solver.exact.proof import Proof, Proofs, ProofTask, proven, solver_seconds_left
from pipeplan.solver.problem import Problem
from pipeplan.solver.run import Run


@dataclass(frozen=True, slots=True)
class VariedMemory(IntegerMemory):
    """The memory of one rank in whole numbers, with that of each microbatch in ``held_by`` (by copy, stage and turn)."""

    held_by: dict[tuple[int, int, int], Held]

    @property
    def binds(self) -> bool:
        """True if all microbatches together do not fit."""
        return self.limit < sum(sum(held) for held in self.held_by.values())

    def change(self, job: Job) -> int:
        """Return the memory that a job adds to its rank."""
        held = self.held_by[job.copy, job.stage, job.turn]
        if job.kind is Kind.F:
            return held.at_forward
        return -held.until_weight - held.between if job.kind is Kind.W else held.between - held.until_backward


class VariedProblem(IntegerProblem):
    """A problem of microbatches that differ in whole numbers, none larger than the true ones; nothing is in order.

    Parameters
    ----------
    problem
        The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.share = problem.microbatches // problem.placement.copies
        self.backward = Kind.I if problem.split_backward else Kind.B
        self.kinds = (Kind.F, Kind.I, Kind.W) if problem.split_backward else (Kind.F, Kind.B)
        self.may_be_full: list[bool] = problem.full_gains.tolist()
        shape = problem.placement.stages, problem.microbatches
        kinds = {*self.kinds, *((Kind.B,) if any(self.may_be_full) else ())}
        tables: dict[Kind | None, Floats] = {
            kind: np.broadcast_to(problem.occupied.times(kind), shape) for kind in kinds
        }
        tables[None] = np.broadcast_to(problem.occupied.transfer_times(), shape)
        every = [value for table in tables.values() for value in table.ravel().tolist()]
        self.unit = common_unit(every, 2 * sum(every))
        self.is_exact = all((as_fraction(value) / self.unit).denominator == 1 for value in every)
        self._units = {
            kind: [[in_units(value, self.unit) for value in row] for row in table.tolist()]
            for kind, table in tables.items()
        }

    def _of(self, kind: Kind | None, job: Job, stage: int | None = None) -> int:
        return self._units[kind][job.stage if stage is None else stage][job.copy * self.share + job.turn]

    @property
    def horizon(self) -> int:
        """Upper bound on the makespan."""
        return 2 * sum(value for table in self._units.values() for row in table for value in row)

    def time_of(self, job: Job) -> int:
        """Return the duration of a job."""
        return self._of(job.kind, job)

    def time_if_full(self, job: Job) -> int:
        """Return the duration of an I that runs as a full backward; its W then takes none."""
        return self._of(Kind.B, job) if job.kind is Kind.I else 0

    def least_time(self, job: Job) -> int:
        """Return the least duration of a job; of a W, the time that it adds to its backward."""
        time = self.time_of(job)
        if not self.may_be_full[job.stage] or job.kind is Kind.F:
            return time
        inputs, full = self._of(Kind.I, job), self._of(Kind.B, job)
        least = min(inputs, full)
        return least if job.kind is Kind.I else min(inputs + time, full) - least

    def needs(self, job: Job) -> Iterator[tuple[Job, int]]:
        """Yield the jobs that must end before this one starts, each with the time of its transfer."""
        source = source_of(job.kind, job.stage, self.problem.placement.stages, backward=self.backward)
        if source is not None:
            needed = job._replace(kind=source[0], stage=source[1])
            before = min(job.stage, needed.stage)
            crosses = needed.stage != job.stage and self.problem.placement.crosses[job.copy, before]
            yield needed, self._of(None, job, before) if crosses else 0

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


class VariedProofs(Proofs):
    """The proofs of a run whose microbatches differ."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.integers = VariedProblem(run.problem)


NOTHING_BETTER = "no order of microbatches and ops is better"
"""Reason of a bound over all orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactVaried:
    """Proves the best schedule of microbatches that differ optimal, or finds better ones, if there are few.

    Its model has no overlapped pairs, recomputed or offloaded microbatches, slices, or transfers that queue, and knows only
    makespans: it leaves other problems alone.

    Attributes
    ----------
    largest
        It leaves alone problems of more jobs than this.
    annealed_share, share
        Share of the budget that is annealed before, and share of the rest that it may spend.
    worth_seconds
        Seconds of the solver's work that this must allow.
    """

    largest: int = 72
    annealed_share: float = 0.15
    share: float = 0.6
    worth_seconds: float = 0.02

    def __call__(self, run: Run) -> None:
        """Prove; do nothing without OR-Tools. On a budget of evaluations the answer is the same every time."""
        seconds = self.share * solver_seconds_left(run)
        if run.is_over or not can_prove_varied(run) or seconds < self.worth_seconds:
            return
        proofs = VariedProofs(run)
        if proofs.integers.size > self.largest:
            return
        LocalSearch(until=run.budget.share + self.annealed_share)(run)
        proofs.raise_to_unit()
        if run.is_optimal or run.budget.is_spent or proofs.beaten <= proofs.least:
            return
        task = ProofTask(least=proofs.least, most=proofs.beaten - 1, seconds=seconds, workers=run.workers)
        model = VariedModel(proofs.integers, task.least, task.most)
        reason = proven(NOTHING_BETTER, run.problem)
        waiting = iter([Proof(model, task, reason=reason, seed=run.seed, repeatable=proofs.repeatable)])
        proofs.carry_out(lambda: next(waiting, None), lambda proof: None, side_by_side=1)


def can_prove_varied(run: Run) -> bool:
    """Return true if the model covers all schedules of the problem, and its solver is installed."""
    problem = run.problem
    plain = problem.communication == "edge" and problem.slices == 1 and problem.objective == "makespan"
    pairs = problem.costs.overlap is not None and problem.choices.overlap
    covered = plain and run.encoder.varies and not (pairs or problem.choices.frees_memory)
    return covered and find_spec("ortools") is not None
