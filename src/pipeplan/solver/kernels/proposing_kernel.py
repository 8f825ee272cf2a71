"""Finding the next candidate that is worth being judged: moves until one leads to a value that is small enough."""

from collections.abc import Callable

from pipeplan.model import Floats, Ints
from pipeplan.solver.kernels.annealing_kernel import draw_place
from pipeplan.solver.kernels.arrays import (
    AnnealingState,
    CandidateTiming,
    Change,
    Decisions,
    FlatProblem,
    Reach,
    Target,
)
from pipeplan.solver.kernels.critical_kernel import trace
from pipeplan.solver.kernels.random_kernel import draw_weighted
from pipeplan.solver.kernels.timing_kernel import INFEASIBLE


def proposing_by(
    evaluate: Callable[..., float],
    propose: Callable[..., None],
    apply: Callable[..., bool],
    undo: Callable[..., None],
) -> Callable[..., int]:
    """The loop that proposes by moves, timed by ``evaluate``.

    Each of the other functions takes the number of a move, and what that move's own takes.
    """

    def next_candidate(
        problem: FlatProblem,
        weights: Ints,
        reach: Reach,
        critical: int,
        target: Target,
        limit: float,
        tries: int,
        decisions: Decisions,
        state: AnnealingState,
        change: Change,
        timing: CandidateTiming,
        value: Floats,
    ) -> int:
        """Change ``decisions`` by one move to a candidate whose value is at most ``limit``; that goes to ``value``.

        Gives how many moves were tried; ``tries`` + 1 where none of them led to one, and nothing is changed.
        """
        if critical > 0 and evaluate(problem, decisions, target, INFEASIBLE / 2, timing) < INFEASIBLE:
            trace(problem, decisions, timing, state.critical)
        for tried in range(tries):
            place = draw_place(state, critical, len(decisions.order))
            move = draw_weighted(state.random, weights)
            propose(move, problem, reach, decisions, place, change, state.random)
            if not apply(move, problem, decisions, change):
                continue
            value[0] = evaluate(problem, decisions, target, limit, timing)
            if value[0] <= limit:
                return tried + 1
            undo(move, problem, decisions, change)
        return tries + 1

    return next_candidate
