"""The least period of so many microbatches, by halving between a proven bound and the best known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import TYPE_CHECKING

from pipeplan.solver.budget import Budget
from pipeplan.solver.exact.integer_problem import Job
from pipeplan.solver.periodic.pattern import Pattern
from pipeplan.solver.periodic.period_model import PeriodModel
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
    """Bounds on the period of so many microbatches, in the unit of the costs, per microbatch.

    Attributes
    ----------
    microbatches
        How many of each copy of the model pass in a period.
    bound
        No pattern of so many costs less for each further microbatch.
    pattern
        The best known; None where none is.
    is_least
        Whether that is proven the best: to a unit of the times (that of 0.8 and 1.2 is 0.4) or a thousandth.
    """

    microbatches: int
    bound: float
    pattern: Pattern | None
    is_least: bool = False


def least_period(
    before: LeastPeriod, problem: Problem, budget: Budget, *, seed: int = 0, workers: int = 1
) -> LeastPeriod:
    """Return tighter bounds on the period of so many microbatches, within the seconds of a budget."""
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
