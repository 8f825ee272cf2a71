"""The exact engine: CP-SAT finds what is better than the best known schedule, or proves that nothing is.

It knows the best schedule only as a value that must be beaten. On small instances the proof that nothing beats the
optimum takes a second or two; finding the optimum from nothing takes ten times that. So it belongs behind the engines
that find good schedules fast.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from math import ceil, isfinite
from queue import Empty, SimpleQueue
from typing import Any

from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import Bound
from pipeplan.solver.exact.integer_problem import IntegerProblem
from pipeplan.solver.exact.model import ExactModel
from pipeplan.solver.run import Run

NAME = "exact"

Event = tuple[Schedule | None, int]
"""A schedule found, or None, and the bound known by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Proves the best schedule optimal, or finds better ones.

    Its model has no overlapped pairs: where the costs say that one gains, it leaves the problem alone.

    Attributes
    ----------
    largest
        It leaves alone problems of more ops than this.
    share
        How much of what is left of the budget it may spend.
    required
        Whether it is an error that OR-Tools is not installed; otherwise the engine then does nothing.
    op_seconds
        About what an evaluation takes for an op: turns a budget of evaluations into the solver's own measure of work.
    poll_seconds
        Seconds between looks at the budget while the solver works.
    """

    largest: int = 800
    share: float = 1.0
    required: bool = True
    op_seconds: float = 30e-9
    poll_seconds: float = 0.05

    def seconds_left(self, run: Run) -> float:
        """How long the solver may work, in seconds of its own: what is left, or what the evaluations left stand for."""
        left = run.budget.evaluations_left
        work = float("inf") if left is None else left * self.evaluation_seconds(run)
        return self.share * min(work, run.budget.seconds_left)

    def evaluation_seconds(self, run: Run) -> float:
        """Seconds of the solver's that an evaluation stands for."""
        return self.op_seconds * run.encoder.positions

    def __call__(self, run: Run) -> None:
        """Search and prove. On a budget of evaluations it uses one worker and gives the same answer every time.

        Raises
        ------
        MissingExtraError
            If OR-Tools is not installed, and ``required``.
        """
        if not (self.required or find_spec("ortools")):
            return
        integers = IntegerProblem(run.problem)
        if integers.size > self.largest or run.encoder.overlaps or run.is_over:
            return
        least = ceil(Fraction(run.bound.value) * (1 - Fraction(1, 10**9)) / integers.unit)
        beaten = integers.horizon + 1 if run.best is None else integers.value_in_units(run.best.value)
        if beaten > least:
            _Proof(self, run, integers, least, beaten).solve()


class _Proof:
    """One run of the solver, for a value of at least ``least`` and below ``beaten``."""

    def __init__(self, options: Exact, run: Run, integers: IntegerProblem, least: int, beaten: int) -> None:
        self.options = options
        self.run, self.integers, self.beaten = run, integers, beaten
        self.model = ExactModel(integers, least, beaten - 1)
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.solver = self._solver()

    def solve(self) -> None:
        """Solve in another thread, and take what it finds in this one, which the user can interrupt."""
        self._limit()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.solver.solve, self.model.model, self._listener())
            try:
                begun = self.run.budget.seconds
                while not answer.done() or not self.events.empty():
                    self._take_next()
                    self._report(self.run.budget.seconds - begun)
                    if self.run.budget.out_of_time:
                        self.solver.stop_search()
            finally:
                self.run.budget.under_way = 0
                self._stop(answer)
        self._conclude(self.solver.status_name(answer.result()))
        spent, left = int(self.solver.deterministic_time / self._evaluation), self.run.budget.evaluations_left
        self.run.budget.evaluations += spent if left is None else min(spent, left)

    @property
    def _evaluation(self) -> float:
        """Seconds of an evaluation, about."""
        return self.options.evaluation_seconds(self.run)

    def _limit(self) -> None:
        budget, parameters, share = self.run.budget, self.solver.parameters, self.options.share
        parameters.random_seed = self.run.seed
        parameters.num_workers = self.run.workers
        if isfinite(budget.seconds_left):
            parameters.max_time_in_seconds = share * budget.seconds_left
        if budget.evaluations_left is not None:
            parameters.num_workers = 1
            parameters.max_deterministic_time = share * budget.evaluations_left * self._evaluation

    def _report(self, seconds: float) -> None:
        """Say how far it is; what the solver has spent by its own measure is known at its end, and is about its seconds."""
        left = self.run.budget.evaluations_left
        if left is not None:
            self.run.budget.under_way = int(min(seconds / self._evaluation, self.options.share * left))
        self.run.report_meanwhile()

    def _take_next(self) -> None:
        try:
            schedule, bound = self.events.get(timeout=self.options.poll_seconds)
        except Empty:
            return
        if schedule is not None:
            self.run.offer_schedule(schedule, NAME)
        self._raise_bound(bound)

    def _raise_bound(self, bound: int) -> None:
        """Take a bound that holds for all schedules: the solver's holds for those that beat the best."""
        best = self.run.best
        value = float(min(bound, self.beaten) * self.integers.unit)
        value = value if best is None else min(value, best.value)
        self.run.raise_bound(Bound(value, "no schedule is better: the exact solver's proof"))

    def _conclude(self, status: str) -> None:
        if status == "INFEASIBLE":
            self._raise_bound(self.beaten)
        elif status == "OPTIMAL":
            self._raise_bound(round(self.solver.objective_value))

    def _stop(self, answer: Future[Any]) -> None:
        """Stop a solver, which hears nothing before it has begun."""
        while not answer.done():
            self.solver.stop_search()
            wait([answer], timeout=self.options.poll_seconds)

    def _solver(self) -> Any:
        from ortools.sat.python.cp_model import CpSolver

        solver = CpSolver()
        solver.parameters.catch_sigint_signal = False
        # The presolve of OR-Tools 9.15 has called infeasible what is not, and optimal what can be bettered: no proof may
        # rest on it. Without it proofs take no longer (a third less time on the small problems of the benchmark).
        solver.parameters.cp_model_presolve = False
        solver.best_bound_callback = lambda bound: self.events.put((None, _integer_bound(bound)))
        return solver

    def _listener(self) -> Any:
        from ortools.sat.python.cp_model import CpSolverSolutionCallback

        model, integers, events = self.model, self.integers, self.events

        class Listener(CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                starts = {job: self.value(start) for job, start in model.start.items()}
                fulls = {job for job, full in model.full.items() if self.value(full)}
                events.put((integers.schedule(starts, fulls, NAME), _integer_bound(self.best_objective_bound)))

        return Listener()


def _integer_bound(bound: float) -> int:
    """The solver's bound, a float, as the whole number that it is."""
    return ceil(bound - tolerances.WHOLE_NUMBER)
