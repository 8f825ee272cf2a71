"""Moves that shift an op along its row, alone or with ops of other stages and of the next microbatches.

Terms: the place; the number of ops of other classes that it passes, towards the front if below 0; the number of stages, from
its own against the way of the microbatch; the number of microbatches, from its own on. One step, of F2 by 1 to the front, on
two stages::

    rank 0   F0 F1 I0 F2 I1      becomes   F0 F1 F2 I0 I1
    rank 1   F0 I0 F1 I1 F2      becomes   F0 I0 F1 F2 I1
"""

from pipeplan.extensions.search.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.extensions.search.kernels.random_kernel import draw, draw_extent
from pipeplan.extensions.search.kernels.row_kernel import find, index_of, place_after, rotate
from pipeplan.model import Ints


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw a distance, for this op alone."""
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
    """Draw a distance, and a number of stages."""
    propose(problem, reach, decisions, place, change, random)
    change.terms[2] = draw_extent(random, reach.stages)


def propose_microbatches(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw a distance, a number of stages, and a number of microbatches."""
    propose_stages(problem, reach, decisions, place, change, random)
    change.terms[3] = draw_extent(random, reach.microbatches)


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Shift the ops, and note every op that moved; false if none could."""
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
            # The one in front goes first, so that none is in the way of the next.
            which = index + (turn if distance < 0 else microbatches - 1 - turn)
            # Its place now: ops before it may have moved.
            place = find(order, start, stop, op_class, which)
            if place >= 0:
                target = place_after(order, start, stop, place, distance)
                if target != place:
                    rotate(order, place, target)
                    change.place[moves] = place
                    change.target[moves] = target
                    moves += 1
        # On to the stage that it got its input from.
        op_class = problem.source[op_class]
        if op_class < 0:
            break
    change.moves[0] = moves
    return moves > 0


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Move every op back, the last one first."""
    for move in range(change.moves[0] - 1, -1, -1):
        rotate(decisions.order, change.target[move], change.place[move])
