"""The least period of a number of microbatches: modulo scheduling (Rau 1996) by CP-SAT, with memory limits.

Times are those of one round of microbatches, unrolled: what waits for what is linear in them. Two jobs of a rank, each of
which starts again every period T, do not overlap if their starts differ by ``q * T`` and a rest of at least the time of the
first and at most T less the time of the second; the whole number q says how many rounds lie between them. It also says how
often the first has run by the start of the second, so that the memory held then is a linear sum of the q.

Without loss of generality the jobs of a kind and stage run in the order of their microbatches; the first forward starts at
0; of the gaps between first forwards the first is the least; and no wait is two periods or more, since where all
microbatches of a round wait for at least a period at the same place, all that follows can run a round earlier.

If a period is long enough every longer one is, by stretching the circle after everything; so the least period is found by
halving between a proven bound and the best pattern. Memory levels times time are the areas of Little's law (1961).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, isfinite
from typing import TYPE_CHECKING

from pipeplan.errors import MissingExtraError
from pipeplan.model import Kind
from pipeplan.solver.budget import Budget
from pipeplan.solver.exact.integer_problem import Job
from pipeplan.solver.periodic.pattern import Pattern
from pipeplan.solver.periodic.repeated import Repeated
from pipeplan.solver.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver

FINE = 1e-3
"""Relative precision of periods."""

SHARE, LEAST_SECONDS = 0.5, 1.0
"""Share of the remaining seconds for one question to the solver, and the least seconds of a question."""


@dataclass(frozen=True, eq=False)
class LeastPeriod:
    """Bounds on the period of a number of microbatches, in the unit of the costs, per microbatch.

    Attributes
    ----------
    microbatches
        Number of microbatches of each copy of the model that pass in a period.
    bound
        No pattern of this many microbatches costs less for each further one.
    pattern
        The best known; None where none is.
    is_least
        True if that is proven the best: to a unit of the times (that of 0.8 and 1.2 is 0.4) or a thousandth.
    """

    microbatches: int
    bound: float
    pattern: Pattern | None
    is_least: bool = False


def least_period(
    before: LeastPeriod, problem: Problem, budget: Budget, *, seed: int = 0, workers: int = 1
) -> LeastPeriod:
    """Return tighter bounds on the period of as many microbatches, within the seconds of a budget."""
    repeated = Repeated(problem, before.microbatches)
    unit = float(repeated.integers.unit)
    passing = before.microbatches * problem.placement.copies
    short = ceil(before.bound * passing / unit * (1 - 1e-9)) - 1
    pattern, work = before.pattern, sum(map(repeated.integers.time_of, repeated.jobs))
    long = 2 * work + 1 if pattern is None else int(pattern.period / unit + 0.01)
    unclear = long
    while min(unclear, long) - short > max(1, FINE * long) and not budget.is_spent:
        # Near the bound proofs are quick, and near what is known schedules are; in between neither is.
        # Halving is sound: if a period is long enough, every longer one is (see the model).
        period = (short + min(unclear, long)) // 2
        answer = _PeriodProof(repeated, period).answer(budget, seed=seed, workers=workers)
        if answer is None:
            # Neither proven nor found in time: go on below it.
            unclear = period
        elif not answer:
            short = period
        else:
            long = period
            candidate = Pattern(problem, before.microbatches, period * unit, answer)
            pattern = pattern if any(candidate.faults()) else candidate
    is_least = pattern is not None and pattern.period <= (short + max(1, FINE * long)) * unit * (1 + 1e-9)
    return replace(before, bound=max(before.bound, short * unit / passing), pattern=pattern, is_least=is_least)


class _PeriodProof:
    """The question to the solver whether a period is long enough."""

    def __init__(self, repeated: Repeated, period: int) -> None:
        self.repeated, self.model = repeated, PeriodModel(repeated, period)

    def answer(self, budget: Budget, *, seed: int, workers: int) -> dict[Job, float] | None:
        """Return the starts of the jobs; empty if the period is too short; None if time ran out."""
        solver = self._solver(seed, workers)
        if isfinite(budget.seconds_left):
            solver.parameters.max_time_in_seconds = max(SHARE * budget.seconds_left, LEAST_SECONDS)
        status = solver.status_name(solver.solve(self.model.model))
        if status == "INFEASIBLE":
            return {}
        if status not in ("OPTIMAL", "FEASIBLE"):
            return None
        unit = float(self.repeated.integers.unit)
        return {job: solver.value(start) * unit for job, start in self.model.start.items()}

    def _solver(self, seed: int, workers: int) -> CpSolver:
        from ortools.sat.python.cp_model import CpSolver

        solver = CpSolver()
        solver.parameters.random_seed, solver.parameters.num_workers = seed % 2**31, workers
        # No proof may rest on the presolve of OR-Tools 9.15: see the exact engine.
        solver.parameters.cp_model_presolve = False
        return solver


if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr


class PeriodModel:
    """The constraints of a schedule of this period, in units of the whole-number problem.

    Attributes
    ----------
    model
        The model for the solver.
    start
        First start of each job.

    Raises
    ------
    MissingExtraError
        If OR-Tools is not installed.
    """

    def __init__(self, repeated: Repeated, period: int) -> None:
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise MissingExtraError("search", "ortools") from None
        self.repeated, self.period = repeated, period
        self.model: CpModel = cp_model.CpModel()
        latest = self._latest()
        self._most_rounds = latest // period + 1
        self.start: dict[Job, IntVar] = {
            job: self.model.new_int_var(repeated.head(job), latest, "") for job in repeated.jobs
        }
        self._rounds: dict[tuple[Job, Job], IntVar | LinearExpr | int] = {}
        self._begin()
        self._wait()
        for rank in range(repeated.problem.placement.ranks):
            jobs = repeated.integers.jobs_on(rank)
            self._run_one_at_a_time(jobs)
            self._stay_within(rank, jobs)

    def _latest(self) -> int:
        """Return the latest start of any job of the first round.

        By the limits: of what the first stage holds at once, and then of what another still owes weight backwards for, each
        period brings at least one microbatch. Where nothing limits them, by the waits, each less than two periods.
        """
        repeated, period, stages = self.repeated, self.period, range(self.repeated.problem.placement.stages)
        by_waits = max(map(repeated.head, repeated.jobs)) + 4 * (len(stages) + 1) * period
        copies = range(repeated.problem.placement.copies)
        backward = repeated.integers.backward
        # How many periods a microbatch takes at most on its way and until its last W, by what fits at once.
        ways = [self._fits(Job(Kind.F, copy, 0, 0), backward) for copy in copies]
        owed = [self._fits(Job(Kind.I, copy, stage, 0), Kind.W) for copy in copies for stage in stages]
        if backward is Kind.B:
            owed = [0]
        if any(fit is None for fit in (*ways, *owed)):
            return by_waits
        return min(by_waits, (2 + max(fit or 0 for fit in ways) + max(fit or 0 for fit in owed)) * period)

    def _fits(self, job: Job, until: Kind) -> int | None:
        """Return how many microbatches fit between two jobs of a stage at once; None: all.

        As if the rank had no other stage.
        """
        memory = self.repeated.memory(int(self.repeated.problem.placement.table[job.copy, job.stage]))
        parts = memory.held[job.stage]
        owed = parts.until_weight + parts.between
        held = owed if job.kind is not Kind.F else parts.at_forward
        held = min(held, owed) if until is Kind.W else held
        return memory.limit // held if memory.limit and held else None

    def _begin(self) -> None:
        """Break symmetries: the first forward starts at 0, other copies in the first period; the first gap is the least."""
        several = self.repeated.microbatches
        for copy in range(self.repeated.problem.placement.copies):
            first = Job(Kind.F, copy, 0, 0)
            self.model.add(self.start[first] <= (self.period - 1 if copy else 0))
        if several > 1:
            second = self.start[Job(Kind.F, 0, 0, 1)]
            self.model.add(second * several <= self.period)

    def _wait(self) -> None:
        integers, last = self.repeated.integers, self.repeated.microbatches - 1
        for job, start in self.start.items():
            for source, delay in integers.needs(job):
                self.model.add(start >= self.start[source] + integers.time_of(source) + delay)
            # The last microbatch of a round runs before the first of the next, one period later.
            if job.turn == last > 0:
                again = self.start[job._replace(turn=0)] + self.period
                self.model.add(again >= start + integers.time_of(job))

    def _run_one_at_a_time(self, jobs: list[Job]) -> None:
        integers = self.repeated.integers
        # Modulo constraint (Rau 1996): apart by q periods and a rest that leaves room for both jobs.
        for one, other in combinations(jobs, 2):
            rounds: IntVar | int = 0
            if (one.kind, one.copy, one.stage) != (other.kind, other.copy, other.stage):
                rounds = self.model.new_int_var(*self._span_of_rounds(one, other), "")
                rest = self.start[other] - self.start[one] - self.period * rounds
                self.model.add_linear_constraint(rest, integers.time_of(one), self.period - integers.time_of(other))
            self._rounds[one, other], self._rounds[other, one] = rounds, -1 - rounds
        # Implied: three jobs on a circle. The rounds from the first to the last are those over the middle one, or one more.
        for one, middle, other in combinations(jobs, 3):
            over = self._rounds[one, other] - self._rounds[one, middle] - self._rounds[middle, other]
            if not isinstance(over, int):
                self.model.add_linear_constraint(over, 0, 1)

    def _span_of_rounds(self, one: Job, other: Job) -> tuple[int, int]:
        """Return the range of rounds between two jobs: at least 0 for a microbatch on one stage, at most as many as fit."""
        if (one.copy, one.stage, one.turn) != (other.copy, other.stage, other.turn):
            return -self._most_rounds - 1, self._most_rounds
        fits = self._fits(one, other.kind)
        return 0, self._most_rounds if fits is None else fits - 1

    def _stay_within(self, rank: int, jobs: list[Job]) -> None:
        """Limit the memory at each job that adds some: all changes, each as often as it has happened by then."""
        memory = self.repeated.memory(rank)
        if not memory.limit:
            return
        changes = {job: change for job in jobs if (change := memory.change(job)) != 0}
        for job, change in changes.items():
            # Each change has happened as often as rounds of its job lie before this one.
            if change > 0:
                before = [self._rounds[other, job] * amount for other, amount in changes.items() if other != job]
                self.model.add(sum(before) <= memory.limit)
        self._fit_area(rank, jobs)

    def _fit_area(self, rank: int, jobs: list[Job]) -> None:
        """Add the implied area constraint: memory times time within a period is at most limit times period (Little 1961)."""
        memory, integers = self.repeated.memory(rank), self.repeated.integers
        area = 0
        for job in jobs:
            at = 0 if job.kind is Kind.F else integers.time_of(job)
            area = area - memory.change(job) * (self.start[job] + at)
        self.model.add(area <= memory.limit * self.period)
