"""The move that forces one weight backward more before an op, or one less. Terms: the place, and 1 or -1."""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.solver.kernels.random_kernel import draw


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw whether one more or one less: where some are forced, one less twice as often."""
    change.terms[0] = place
    change.terms[1] = 1 if decisions.forced[place] == 0 or draw(random, 3) == 0 else -1


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Force it."""
    decisions.forced[change.terms[0]] += change.terms[1]
    return True


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Take it back."""
    decisions.forced[change.terms[0]] -= change.terms[1]
