"""The move that joins an op and the next, a forward and a backward, to run overlapped, or parts them. Terms: the place."""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import Change, Decisions, FlatProblem, Reach


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """The pair at the place; there is nothing to draw."""
    change.terms[0] = place


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Join or part it."""
    place = change.terms[0]
    decisions.joined[place] = 1 - decisions.joined[place]
    return True


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Part or join it again."""
    place = change.terms[0]
    decisions.joined[place] = 1 - decisions.joined[place]
