"""A move from outside: swap an op and the next one of its rank. Terms: the place."""

from pipeplan.extensions.search.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.model import Ints


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Note the place; there is nothing to draw."""
    change.terms[0] = place


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Swap the two; false at the end of a row, and if they are of one class."""
    place = change.terms[0]
    order = decisions.order
    if place + 1 >= problem.offsets[problem.rank[order[place]] + 1] or order[place] == order[place + 1]:
        return False
    order[place], order[place + 1] = order[place + 1], order[place]
    return True


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Swap them back."""
    apply(problem, decisions, change)
