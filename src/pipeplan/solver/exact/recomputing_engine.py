"""The exact engine for problems in which microbatches may be recomputed: proves, or finds better ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any

from pipeplan.model import Schedule
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.exact.proof import NAME, Proof, Proofs, ProofTask, proven, solver_seconds_left
from pipeplan.solver.exact.recomputing_model import RecomputingModel, RecomputingProblem
from pipeplan.solver.run import Run

NOTHING_BETTER = "no schedule that recomputes right before backwards is better"
"""Reason of a bound on schedules that recompute right before backwards."""

Events = SimpleQueue[tuple[Proof, Schedule | None, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRecomputing:
    """Proves the best schedule optimal where microbatches may be recomputed, or finds better ones.

    Its model knows recomputation, and neither overlapped pairs nor offloaded microbatches, slices, or transfers that queue.
    First it asks for a bound over all schedules, then for better ones with microbatches in order, then for both at once:
    each only where the one before leaves a gap.

    Attributes
    ----------
    largest
        It leaves alone problems of more ops than this, Rs not counted.
    annealed_share
        The share of the budget that is annealed before.
    share
        Share of the remaining budget that it may spend.
    worth_seconds
        Seconds of the solver's work that this must allow.
    """

    largest: int = 150
    annealed_share: float = 0.2
    share: float = 0.3
    worth_seconds: float = 0.02

    def __call__(self, run: Run) -> None:
        """Prove; do nothing without OR-Tools. On a budget of evaluations the answer is the same every time."""
        seconds = self.share * solver_seconds_left(run)
        if not can_prove_recomputing(run) or seconds < self.worth_seconds or run.is_over:
            return
        proofs = RecomputingProofs(run)
        if proofs.integers.size > self.largest or not proofs.recomputing.exact:
            return
        LocalSearch(until=run.budget.share + self.annealed_share)(run)
        for ordered, free, share in ((True, True, 0.3), (True, False, 0.2), (False, False, 0.5)):
            if run.budget.is_spent or proofs.beaten <= proofs.least:
                return
            proofs.use(ordered=ordered)
            task = ProofTask(least=proofs.least, most=proofs.beaten - 1, seconds=share * seconds, workers=run.workers)
            model = RecomputingModel(proofs.recomputing, task.least, task.most, free=free)
            proof = RecomputingProof(model, task, seed=run.seed, repeatable=proofs.repeatable)
            waiting = iter([proof])
            proofs.carry_out(partial(next, waiting, None), lambda proof: None, side_by_side=1)


def can_prove_recomputing(run: Run) -> bool:
    """Return true if the model covers all schedules of the problem, and its solver is installed."""
    problem = run.problem
    plain = problem.communication == "edge" and problem.slices == 1
    plain = plain and not (run.encoder.overlaps or run.encoder.varies)
    covered = plain and problem.choices.recompute and not problem.choices.offload
    return covered and find_spec("ortools") is not None


class RecomputingProofs(Proofs):
    """The proofs of a run whose problem decides on recomputation.

    Attributes
    ----------
    recomputing
        The problem in whole numbers.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.use(ordered=True)

    def use(self, *, ordered: bool) -> None:
        """Number jobs in the order of their times, or not: both count in the same unit."""
        self.integers = self.recomputing = RecomputingProblem(self.run.problem, ordered=ordered)


class RecomputingProof(Proof):
    """One run of the solver on a model with recomputation; a bound for microbatches in order alone is not used."""

    def __init__(self, model: RecomputingModel, task: ProofTask, *, seed: int, repeatable: bool) -> None:
        self.recomputing = model
        super().__init__(
            model, task, reason=proven(NOTHING_BETTER, model.integers.problem), seed=seed, repeatable=repeatable
        )

    def work(self, events: Events) -> None:
        """Solve, and send bounds and schedules to the queue meanwhile. Runs in any thread."""
        bounds: Events = events if self.recomputing.has_all_schedules else SimpleQueue()
        self._found = events
        super().work(bounds)

    def _listener(self, events: Events) -> Any:
        from ortools.sat.python.cp_model import CpSolverSolutionCallback

        proof, model, schedules = self, self.recomputing, self._found

        class Listener(CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                proof.value = self.value(model.value)
                if any(self.value(model.again[one]) != self.value(model.again[other]) for one, other in model.decided):
                    return
                starts = {job: self.value(start) for job, start in model.start.items()}
                fulls = {job for job, full in model.full.items() if self.value(full)}
                again = [other for _, other in model.decided if self.value(model.again[other])]
                schedule = model.recomputing.recomputing_schedule(starts, fulls, again, NAME)
                schedules.put((proof, schedule, proof.task.least))

        return Listener()
