"""Window search: windows of time of the best schedule are solved anew, one after the other.

Annealing moves an op or a class at a time; where memory is short many must move together. In a window of a hundred ops or
two the solver sees all of them at once, knowing what lies before and after only by its times, and takes a fraction of a
second. Between equal makespans it prefers ranks that are free earlier, so that windows pass room on to each other.

Large-neighbourhood search, after Shaw: Using Constraint Programming and Local Search Methods to Solve Vehicle Routing
Problems (1998), on windows of time as in Carchrae and Beck: Principles for the Design of Large Neighborhood Search (2009).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from pipeplan.extensions.search.engines.order_annealing import LocalSearch
from pipeplan.extensions.search.exact.integer_problem import IntegerProblem, Job
from pipeplan.extensions.search.exact.proof import can_prove, evaluation_seconds, solver_seconds_left
from pipeplan.extensions.search.exact.window import Timed, WindowModel
from pipeplan.extensions.search.run import Run
from pipeplan.model import Columns, Kind, Schedule

NAME = "windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSearch:
    """Anneals for a while, then solves windows of the best schedule, until a round of them improves nothing.

    It leaves alone problems that nothing limits, and what its model does not know: spans, a mix of full and split backwards.

    Attributes
    ----------
    annealed, until
        The share of the whole budget until which it anneals first, and at which it stops.
    smallest, largest
        It leaves alone problems of fewer or more ops than this.
    ops
        About how many ops of a window are free, in turn.
    window_seconds
        Seconds of the solver's work for one window.
    tries
        Number of windows in a row that shorten nothing after which it stops.
    worth_seconds
        Seconds of the solver's work that the budget must allow; with less annealing is the better use.
    """

    annealed: float = 0.6
    until: float = 0.85
    smallest: int = 300
    largest: int = 4000
    ops: tuple[int, ...] = (100, 150, 180)
    window_seconds: float = 1.0
    tries: int = 120
    worth_seconds: float = 3.0

    def __call__(self, run: Run) -> None:
        """Run the search; do nothing without OR-Tools."""
        if run.best is None or run.is_over or not can_prove(run):
            return
        size = 3 * run.problem.placement.stages * run.problem.microbatches
        suitable = (
            run.problem.limits is not None and run.problem.objective == "makespan" and not run.encoder.may_run_full
        )
        if not (suitable and self.smallest <= size <= self.largest and solver_seconds_left(run) >= self.worth_seconds):
            return
        LocalSearch(until=self.annealed)(run)
        if not run.is_over:
            _Windows(self, run).solve()


class _Windows:
    """State of the window search on one schedule."""

    def __init__(self, options: WindowSearch, run: Run) -> None:
        assert run.best is not None
        self.options, self.run, self.integers = options, run, IntegerProblem(run.problem)
        self.lineage = run.best
        self.timed = Timed(self.integers, rows_of(self.integers, run.schedule(run.best)))
        self.random = run.random(3)

    def solve(self) -> None:
        """Solve windows until time is up, or none improves the schedule."""
        fruitless, turn = 0, 0
        while not self.run.is_over and self.run.budget.share < self.options.until and fruitless < self.options.tries:
            before = self.timed.makespan
            self._solve_one(self.options.ops[turn % len(self.options.ops)])
            turn += 1
            fruitless = 0 if self.timed.makespan < before else fruitless + 1
            self.run.report_meanwhile()

    def _solve_one(self, ops: int) -> None:
        """Solve a random window of about this many ops, and use its answer unless the schedule gets longer."""
        timed = self.timed
        # A window may begin before the schedule or end after it, so that its ends are as likely as its middle.
        length = timed.makespan * min(ops / len(timed.start), 1.0)
        begin = float(self.random.uniform(-length / 2, timed.makespan - length / 2))
        window, solver = WindowModel(timed, begin, begin + length), self._solver()
        status = solver.status_name(solver.solve(window.model))
        self._spend(solver.deterministic_time)
        if status not in ("OPTIMAL", "FEASIBLE"):
            return
        solved = Timed(self.integers, window.rows({job: solver.value(start) for job, start in window.start.items()}))
        # Rows may deadlock or get longer outside the window; of equal ones the new one may lead on.
        if not solved.is_complete or solved.makespan > timed.makespan:
            return
        self.timed = solved
        if solved.makespan < timed.makespan:
            schedule = self.integers.schedule(solved.start, set(), f"{NAME} from {self.lineage.name}")
            self.run.offer_schedule(schedule, schedule.name)

    def _spend(self, seconds: float) -> None:
        budget = self.run.budget
        spent = max(int(seconds / evaluation_seconds(self.run)), 1)
        left = budget.evaluations_left
        budget.evaluations += spent if left is None else min(spent, left)

    def _solver(self) -> Any:
        from ortools.sat.python.cp_model import CpSolver

        # Nothing is proven here, so the solver may presolve; and one worker returns the same answer every time.
        solver = CpSolver()
        parameters = solver.parameters
        parameters.catch_sigint_signal = False
        parameters.num_workers, parameters.random_seed = 1, self.run.seed % 2**31
        parameters.max_deterministic_time = self.options.window_seconds
        if isfinite(self.run.budget.seconds_left):
            parameters.max_time_in_seconds = self.run.budget.seconds_left
        return solver


def rows_of(integers: IntegerProblem, schedule: Schedule) -> list[list[Job]]:
    """Return the jobs of each rank in order; the k-th of a kind and stage is that of the copy's k-th microbatch."""
    return [list(_row(integers, schedule.row(rank))) for rank in range(schedule.ranks)]


def _row(integers: IntegerProblem, row: Columns) -> Iterator[Job]:
    copies = integers.problem.placement.copy_of(row.microbatch, integers.problem.microbatches)
    turns: dict[tuple[Kind, int, int], int] = {}
    for kind, copy, stage in zip(row.kind.tolist(), np.asarray(copies).tolist(), row.stage.tolist(), strict=True):
        # A full backward counts as its halves, where the model has only these.
        split = Kind(kind) is Kind.B and integers.backward is Kind.I
        for half in (Kind.I, Kind.W) if split else (Kind(kind),):
            turn = turns.get((half, copy, stage), 0)
            turns[half, copy, stage] = turn + 1
            yield Job(half, copy, stage, turn)
