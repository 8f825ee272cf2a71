"""Timing a candidate by the evaluator that its problem needs: the smaller it is, the faster."""

from pipeplan.extensions.search.kernels.arrays import CandidateTiming, Decisions, FlatProblem, Target
from pipeplan.extensions.search.kernels.timing_kernel import evaluate, evaluate_pairs
from pipeplan.extensions.search.kernels.wide_kernel import evaluate_wide

PLAIN, PAIRS, WIDE = range(3)
"""Evaluators: of orders with owed Ws, of overlapped pairs and full backwards too, and of all the rest as well."""


def evaluate_by(
    evaluator: int, problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """Return the value of a candidate; ``INFEASIBLE`` if it must be more than ``limit``."""
    if evaluator == PLAIN:
        return evaluate(problem, decisions, target, limit, timing)
    # A problem that is not wide has no arrays for the last one, which would find the same.
    if evaluator == PAIRS or problem.wide == 0:
        return evaluate_pairs(problem, decisions, target, limit, timing)
    return evaluate_wide(problem, decisions, target, limit, timing)
