"""The moves that shift an op along its row, alone or with the same microbatch's ops of other stages and the next ones' too.

Terms: the place; how many ops of other classes it passes (towards the front if below 0); on how many stages, from its own
towards where the microbatch came from; for how many microbatches, from its own on.
"""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.solver.kernels.random_kernel import draw, draw_extent
from pipeplan.solver.kernels.row_kernel import find, index_of, place_after, rotate


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw how far, for this op alone."""
    distance = draw_extent(random, reach.places)
    if draw(random, 2) == 0:
        distance = -distance
    change.terms[0] = place
    change.terms[1] = distance
    change.terms[2] = 1
    change.terms[3] = 1


def propose_stages(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw how far, and on how many stages."""
    propose(problem, reach, decisions, place, change, random)
    change.terms[2] = draw_extent(random, reach.stages)


def propose_microbatches(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw how far, on how many stages, and for how many microbatches."""
    propose_stages(problem, reach, decisions, place, change, random)
    change.terms[3] = draw_extent(random, reach.microbatches)


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Shift them, and note every op that moved; false if none could."""
    order = decisions.order
    distance = change.terms[1]
    microbatches = change.terms[3]
    op_class = order[change.terms[0]]
    index = index_of(order, problem.offsets[problem.rank[op_class]], change.terms[0])
    moves = 0
    for _ in range(change.terms[2]):
        start = problem.offsets[problem.rank[op_class]]
        stop = problem.offsets[problem.rank[op_class] + 1]
        for turn in range(microbatches):
            # The one in front goes first, so that none stands in the way of the next.
            which = index + (turn if distance < 0 else microbatches - 1 - turn)
            place = find(order, start, stop, op_class, which)
            if place >= 0:
                target = place_after(order, start, stop, place, distance)
                if target != place:
                    rotate(order, place, target)
                    change.place[moves] = place
                    change.target[moves] = target
                    moves += 1
        op_class = problem.source[op_class]
        if op_class < 0:
            break
    change.moves[0] = moves
    return moves > 0


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Move every op back, the last one first."""
    for move in range(change.moves[0] - 1, -1, -1):
        rotate(decisions.order, change.target[move], change.place[move])
