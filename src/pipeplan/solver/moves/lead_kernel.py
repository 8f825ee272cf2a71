"""The move that fetches offloaded microbatches back earlier or later. Terms: the first forward, how many, places more."""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import OFFLOADED, Change, Decisions, FlatProblem, Reach
from pipeplan.solver.kernels.random_kernel import draw, draw_extent
from pipeplan.solver.moves.mode_kernel import forward_at

MOST = 64
"""A lead in places beyond which nothing is gained: the link takes one copy after the other."""


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw for how many microbatches, and by how many places."""
    distance = draw_extent(random, reach.places)
    change.terms[0] = forward_at(problem, decisions, place)
    change.terms[1] = draw_extent(random, reach.microbatches)
    change.terms[2] = distance if draw(random, 2) == 0 else -distance


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Change those that are offloaded, and keep what they were; false if none is."""
    share = len(decisions.lead) // len(problem.rank)
    first = change.terms[0]
    number = 0
    for op in range(first, min(first + change.terms[1], (first // share + 1) * share)):
        if decisions.mode[op] == OFFLOADED:
            change.place[number] = op
            change.target[number] = decisions.lead[op]
            decisions.lead[op] = min(max(decisions.lead[op] + change.terms[2], 0), MOST)
            number += 1
    change.moves[0] = number
    return number > 0


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Set them to what they were."""
    for step in range(change.moves[0]):
        decisions.lead[change.place[step]] = change.target[step]
