"""Time a candidate with the evaluator that its problem needs: one that handles fewer decisions is faster."""

from pipeplan.extensions.search.kernels.arrays import CandidateTiming, Decisions, FlatProblem, Target
from pipeplan.extensions.search.kernels.timing_kernel import evaluate, evaluate_pairs
from pipeplan.extensions.search.kernels.wide_kernel import evaluate_wide

PLAIN, PAIRS, WIDE = range(3)
"""Evaluators: for orders with owed Ws; also for overlapped pairs and full backwards; for wide problems."""


def evaluate_by(
    evaluator: int, problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """Return the value of a candidate; ``INFEASIBLE`` if it must be more than ``limit``."""
    if evaluator == PLAIN:
        return evaluate(problem, decisions, target, limit, timing)
    # The wide evaluator needs arrays that only wide problems have; for others, both return the same value.
    if evaluator == PAIRS or problem.wide == 0:
        return evaluate_pairs(problem, decisions, target, limit, timing)
    return evaluate_wide(problem, decisions, target, limit, timing)
