"""The exact engine: CP-SAT finds what is better than the best known schedule, or proves that nothing is.

It knows the best schedule only as a value that must be beaten. On small instances the proof that nothing beats the
optimum takes a second or two; finding the optimum from nothing takes ten times that. So it belongs behind the engines
that find good schedules fast.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.solver.exact.model import ExactModel
from pipeplan.solver.exact.proof import Proof, Proofs, ProofTask, can_prove, proven, solver_seconds_left
from pipeplan.solver.exact.scope import Scope
from pipeplan.solver.run import Run

NOTHING_BETTER = "no schedule is better"
"""What is proven where every rank was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Proves the best schedule optimal, or finds better ones.

    Its model has no overlapped pairs, nor recomputed and offloaded microbatches, slices, or transfers that queue: it leaves
    problems alone whose schedules have them.

    Attributes
    ----------
    largest
        It leaves alone problems of more ops than this.
    share
        How much of what is left of the budget it may spend.
    required
        Whether it is an error that OR-Tools is not installed; otherwise the engine then does nothing.
    """

    largest: int = 800
    share: float = 1.0
    required: bool = True

    def seconds_left(self, run: Run) -> float:
        """How long the solver may work, in seconds of its own: what is left, or what the evaluations left stand for."""
        return self.share * solver_seconds_left(run)

    def __call__(self, run: Run) -> None:
        """Search and prove. On a budget of evaluations it uses one worker and gives the same answer every time.

        Raises
        ------
        MissingExtraError
            If OR-Tools is not installed, and ``required``.
        """
        if not can_prove(run, required=self.required) or run.is_over:
            return
        proofs = Proofs(run)
        if proofs.integers.size > self.largest or proofs.beaten <= proofs.least:
            return
        model = ExactModel(proofs.integers, proofs.least, proofs.beaten - 1, Scope(proofs.integers))
        task = ProofTask(
            least=proofs.least, most=proofs.beaten - 1, seconds=self.seconds_left(run), workers=run.workers
        )
        waiting = [
            Proof(model, task, reason=proven(NOTHING_BETTER, run.problem), seed=run.seed, repeatable=proofs.repeatable)
        ]
        proofs.carry_out(lambda: waiting.pop() if waiting else None, lambda proof: None, side_by_side=1)
