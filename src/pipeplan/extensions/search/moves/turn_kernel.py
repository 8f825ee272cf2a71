"""Moves that change which microbatch has which turn, where microbatches differ; the order of classes stays.

Terms of a shift: the class, a turn of it, by how many turns its microbatch moves, and on how many classes, from this one
against the way of the microbatch; 0 means on all. Terms of an exchange: the class, two turns of it; their microbatches trade
places on all classes of their copy of the model. One step, of the microbatch in turn 3 by 2 to the front, on all classes::

    turn     class 0   2 0 1 3      becomes   2 3 0 1
             class 1   0 2 1 3      becomes   0 3 2 1
"""

from pipeplan.extensions.search.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.extensions.search.kernels.random_kernel import draw, draw_extent
from pipeplan.extensions.search.kernels.row_kernel import index_of, rotate
from pipeplan.model import Ints


def propose_everywhere(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw by how many turns the microbatch at the place moves on all stages."""
    propose_here(problem, reach, decisions, place, change, random)
    turns = len(decisions.turn) // len(problem.rank)
    distance = draw_extent(random, turns)
    change.terms[2] = distance if draw(random, 2) == 0 else -distance
    change.terms[3] = 0


def propose_here(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw by how many turns the microbatch at the place moves, and on how many classes."""
    op_class = decisions.order[place]
    count = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
    distance = draw_extent(random, reach.microbatches)
    change.terms[0] = op_class
    change.terms[1] = count // problem.slices
    change.terms[2] = distance if draw(random, 2) == 0 else -distance
    change.terms[3] = draw_extent(random, reach.stages)


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Move the microbatch, and note its turn on each class before and after; false if it moved on none."""
    turn = decisions.turn
    classes = len(problem.rank)
    turns = len(turn) // classes
    op_class = change.terms[0]
    microbatch = turn[op_class * turns + change.terms[1]]
    copy, number = copy_of(problem, op_class)
    # All classes of its copy, or those that lead to this one.
    left = change.terms[3] if change.terms[3] > 0 else number
    if change.terms[3] == 0:
        op_class = copy
    moves = 0
    while left > 0 and op_class >= 0:
        # From its turn now, by the distance, within the turns of the class.
        first = op_class * turns
        place = turn_of(turn, first, microbatch)
        target = min(max(place + change.terms[2], first), first + turns - 1)
        if target != place:
            rotate(turn, place, target)
            change.place[moves] = place
            change.target[moves] = target
            moves += 1
        op_class = op_class + 1 if change.terms[3] == 0 else problem.source[op_class]
        left -= 1
    change.moves[0] = moves
    return moves > 0


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Move the microbatch back, on the last class first."""
    for move in range(change.moves[0] - 1, -1, -1):
        rotate(decisions.turn, change.target[move], change.place[move])


def propose_exchange(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw another turn of the class at the place."""
    propose_here(problem, reach, decisions, place, change, random)
    change.terms[2] = draw(random, len(decisions.turn) // len(problem.rank))


def exchange(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Exchange two microbatches on all classes of their copy; false if they are the same."""
    turn = decisions.turn
    turns = len(turn) // len(problem.rank)
    first = change.terms[0] * turns
    one = turn[first + change.terms[1]]
    other = turn[first + change.terms[2]]
    if one == other:
        return False
    # The turns of all classes of a copy follow each other.
    copy, number = copy_of(problem, change.terms[0])
    for place in range(copy * turns, (copy + number) * turns):
        if turn[place] == one:
            turn[place] = other
        elif turn[place] == other:
            turn[place] = one
    return True


def exchange_back(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Exchange them back: their turns have the same terms."""
    exchange(problem, decisions, change)


def copy_of(problem: FlatProblem, op_class: int) -> tuple[int, int]:
    """Return the first class of a class's copy of the model, and the number of classes of a copy."""
    first = op_class
    # The first forward of a copy waits for nothing.
    while problem.source[first] >= 0 or first % 2 == 1:
        first -= 1
    number = 1
    while first + number < len(problem.rank) and (problem.source[first + number] >= 0 or number % 2 == 1):
        number += 1
    return first, number


def turn_of(turn: Ints, first: int, microbatch: int) -> int:
    """Return the place in ``turn`` at which a class, whose turns begin at ``first``, runs a microbatch."""
    place = first
    while turn[place] != microbatch:
        place += 1
    return place
