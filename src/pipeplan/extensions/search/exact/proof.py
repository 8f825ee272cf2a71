"""Proofs under way: CP-SAT on models of one problem, in separate threads, until they are done or the run is over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from math import ceil, isfinite
from queue import Empty, SimpleQueue
from typing import Any

from pipeplan.extensions.search.exact.integer_problem import IntegerProblem
from pipeplan.extensions.search.exact.model import ExactModel
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.run import Run
from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import Bound

NAME = "exact"

OP_SECONDS = 30e-9
"""Seconds of an evaluation per op, about: converts a budget of evaluations into the solver's measure of work."""

POLL_SECONDS = 0.05
"""Seconds between two looks at the budget while solvers work."""


def can_prove(run: Run, *, required: bool = False) -> bool:
    """Return true if the exact model covers all schedules of the problem, and its solver is installed or required.

    Its microbatches are alike, and all are kept until their backward.
    """
    problem = run.problem
    plain = problem.communication == "edge" and problem.slices == 1 and not run.encoder.varies
    beyond_model = run.encoder.overlaps or problem.choices.frees_memory
    return plain and not beyond_model and (required or find_spec("ortools") is not None)


def proven(what: str, problem: Problem) -> str:
    """Return the reason of a bound that the solver has proven.

    Its jobs start at whole units. So does every op that starts as soon as it can; a span can be shorter in a schedule whose
    ranks begin later, between two units, of which then nothing is proven.
    """
    when = "" if problem.objective == "makespan" else " with ops that start as soon as they can"
    return f"{what}{when}: the exact solver's proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofTask:
    """Statement to prove: no schedule has a value of at least ``least`` and at most ``most``, in units.

    Attributes
    ----------
    least, most
        Between these.
    first
        True if one such value is enough; otherwise the least one is needed.
    seconds
        For how long at most, in the solver's own measure where the budget is one of evaluations.
    workers
        Threads of the solver.
    """

    least: int
    most: int
    first: bool = False
    seconds: float = float("inf")
    workers: int = 1


class Proofs:
    """The proofs of a run: their bounds, and the schedules that they find.

    Attributes
    ----------
    integers
        The problem in whole numbers.
    evaluation_seconds
        Seconds of solver work that count as one evaluation.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.integers = run, IntegerProblem(run.problem)
        self.repeatable = run.budget.evaluations_left is not None
        self.evaluation_seconds = evaluation_seconds(run)
        self._events: SimpleQueue[tuple[Proof, Schedule | None, int]] = SimpleQueue()

    @property
    def least(self) -> int:
        """The least value that no bound excludes, in units."""
        return ceil(Fraction(self.run.bound.value) * (1 - Fraction(1, 10**9)) / self.integers.unit)

    def raise_to_unit(self) -> None:
        """Raise the bound to the best schedule if less than a unit lies between them, and all times are multiples of it."""
        bound, value = self.run.bound, float(self.least * self.integers.unit)
        above = value > bound.value * (1 + tolerances.ROUNDING)
        if self.beaten <= self.least and self.integers.is_exact and above:
            unit = f"{float(self.integers.unit):g}"
            self.run.raise_bound(Bound(value, f"{bound.reason}; times are multiples of {unit}"))

    @property
    def beaten(self) -> int:
        """The value to be beaten, in units; more than any schedule needs while none is known."""
        best = self.run.best
        return self.integers.horizon + 1 if best is None else self.integers.value_in_units(best.value)

    def carry_out(
        self, source: Callable[[], Proof | None], done: Callable[[Proof], None], *, side_by_side: int
    ) -> None:
        """Run proofs in threads, and take their results in this thread, which the user can interrupt.

        Stop when there are no more proofs or the run is over. Their time counts against a budget of evaluations.

        Parameters
        ----------
        source
            Function that returns the next proof, or None while there is none.
        done
            Function that receives each proof that has ended.
        side_by_side
            Number of proofs under way at the same time.
        """
        begun = self.run.budget.seconds
        working: dict[Proof, Future[None]] = {}
        with ThreadPoolExecutor(side_by_side) as pool:
            try:
                while True:
                    # Start proofs while there are free threads, then take what has come in.
                    while len(working) < side_by_side and not self._is_over and (proof := source()) is not None:
                        working[proof] = pool.submit(proof.work, self._events)
                    if not working:
                        break
                    self._take()
                    self._report(self.run.budget.seconds - begun)
                    for proof in [proof for proof, answer in working.items() if answer.done()]:
                        working.pop(proof).result()
                        self._take_all()
                        self._count(proof)
                        done(proof)
                    if self.run.budget.out_of_time or (self._is_over and not self.repeatable):
                        for proof in working:
                            proof.stop()
            finally:
                self.run.budget.under_way = 0
                # A solver that has not begun ignores a stop: repeat it until all threads have ended.
                while not all(answer.done() for answer in working.values()):
                    for proof in working:
                        proof.stop()
                    wait(working.values(), timeout=POLL_SECONDS)
        self.raise_to_unit()

    @property
    def _is_over(self) -> bool:
        """True if the time is up, or there is nothing left to prove."""
        return self.run.budget.out_of_time or self.beaten <= self.least

    def _take(self) -> None:
        try:
            proof, schedule, bound = self._events.get(timeout=POLL_SECONDS)
        except Empty:
            return
        # A schedule with its own order of Ws is offered unchanged; otherwise as a candidate.
        if schedule is not None and self.run.problem.choices.weight_order:
            self.run.offer_schedule(schedule, NAME)
        elif schedule is not None:
            self.run.offer(self.run.encoder.encode(schedule), NAME, NAME)
        if bound > proof.bound:
            proof.bound = bound
            best = self.run.best
            value = float(bound * self.integers.unit)
            self.run.raise_bound(Bound(value if best is None else min(value, best.value), proof.reason))

    def _take_all(self) -> None:
        while not self._events.empty():
            self._take()

    def _report(self, seconds: float) -> None:
        """Report the progress; a solver's own work is known at its end, and is about as long as its seconds."""
        left = self.run.budget.evaluations_left
        if left is not None:
            self.run.budget.under_way = int(min(seconds / self.evaluation_seconds, left))
        self.run.report_meanwhile()

    def _count(self, proof: Proof) -> None:
        spent, left = int(proof.solver.deterministic_time / self.evaluation_seconds), self.run.budget.evaluations_left
        self.run.budget.evaluations += spent if left is None else min(spent, left)


class Proof:
    """One run of the solver.

    Parameters
    ----------
    model
        Its constraints. Only where its scope is whole an answer is a schedule.
    task
        The question.
    reason
        Why its bound holds, in words.
    repeatable
        True if its seconds are the solver's own measure, so that it returns the same answer every time.

    Attributes
    ----------
    bound
        No schedule is better than this, in units, or none below ``task.most + 1``.
    value
        The least value that was found, in units; None where none was.
    finished
        True if the question is answered.
    """

    def __init__(
        self, model: ExactModel, task: ProofTask, *, reason: str, seed: int = 0, repeatable: bool = False
    ) -> None:
        self.model, self.task, self.reason = model, task, reason
        self.bound, self.finished = task.least, False
        self.value: int | None = None
        self.solver = self._solver(seed, repeatable)

    def _solver(self, seed: int, repeatable: bool) -> Any:
        from ortools.sat.python.cp_model import CpSolver

        solver = CpSolver()
        parameters = solver.parameters
        parameters.catch_sigint_signal = False
        # The presolve of OR-Tools 9.15 has called infeasible what is not, and optimal what can be bettered: no proof may
        # rest on it. Without it proofs take no longer (a third less time on the small problems of the benchmark).
        parameters.cp_model_presolve = False
        parameters.random_seed = seed % 2**31
        parameters.num_workers = 1 if repeatable else self.task.workers
        if self.task.first:
            parameters.stop_after_first_solution = True
            parameters.linearization_level = 0  # about a fifth faster, where there is nothing to minimize
        if isfinite(self.task.seconds):
            setattr(parameters, "max_deterministic_time" if repeatable else "max_time_in_seconds", self.task.seconds)
        return solver

    def work(self, events: SimpleQueue[tuple[Proof, Schedule | None, int]]) -> None:
        """Solve, and send bounds and schedules to the queue meanwhile. Runs in any thread."""
        self.model.narrow(self.task.least, self.task.most, minimize=not self.task.first)
        if not self.task.first:
            self.solver.best_bound_callback = lambda bound: events.put((self, None, _whole(bound)))
        status = self.solver.status_name(self.solver.solve(self.model.model, self._listener(events)))
        # Nothing in the range: the bound is above it. Optimal: the bound is the value.
        if status == "INFEASIBLE":
            events.put((self, None, self.task.most + 1))
        elif status == "OPTIMAL" and not self.task.first:
            events.put((self, None, round(self.solver.objective_value)))
        self.finished = status in {"INFEASIBLE", "OPTIMAL"} or (self.task.first and self.value is not None)

    def stop(self) -> None:
        """Stop the solver; it ignores this before it has begun."""
        self.solver.stop_search()

    def _listener(self, events: SimpleQueue[tuple[Proof, Schedule | None, int]]) -> Any:
        from ortools.sat.python.cp_model import CpSolverSolutionCallback

        proof, model = self, self.model

        class Listener(CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                proof.value = self.value(model.value)
                if (schedule := model.answer(self.value, NAME)) is not None:
                    events.put((proof, schedule, proof.task.least))

        return Listener()


def evaluation_seconds(run: Run) -> float:
    """Return the seconds of solver work that an evaluation represents."""
    return OP_SECONDS * run.encoder.positions


def solver_seconds_left(run: Run) -> float:
    """Return the seconds of solver work that are left; evaluations count as the seconds that they represent."""
    left = run.budget.evaluations_left
    return min(float("inf") if left is None else left * evaluation_seconds(run), run.budget.seconds_left)


def _whole(bound: float) -> int:
    return ceil(bound - tolerances.WHOLE_NUMBER)
