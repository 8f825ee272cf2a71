"""Moves that change which microbatches are kept, recomputed or offloaded, and when these are fetched back.

Terms of a change to one mode: the first forward, the number of microbatches, the number of stages, the mode. Terms of an
exchange: the two forwards. Terms of a lead: the first forward, the number of microbatches, places more. One step::

    mode     keep keep offload keep      becomes   keep recompute recompute keep      (two microbatches from 1 on)
"""

from pipeplan.extensions.search.kernels.arrays import KEPT, OFFLOADED, RECOMPUTED, Change, Decisions, FlatProblem, Reach
from pipeplan.extensions.search.kernels.random_kernel import draw, draw_extent
from pipeplan.extensions.search.kernels.row_kernel import index_of, mirrored
from pipeplan.extensions.search.moves.decision_kernel import restore
from pipeplan.model import Ints

MOST = 64
"""Largest lead in places: a longer one gains nothing, as the link takes one copy after the other."""


def forward_at(problem: FlatProblem, decisions: Decisions, place: int) -> int:
    """Return the forward of the microbatch at a place."""
    op_class = decisions.order[place]
    index = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
    if op_class % 2 == 1:
        op_class -= 1
        index = mirrored(index, problem.slices)
    op: int = problem.first[op_class] + index
    return op


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw a mode that the problem allows, other than the microbatch's, for some microbatches on some stages."""
    op = forward_at(problem, decisions, place)
    # One of the other two modes; where that one is not allowed, the other.
    further = 1 + draw(random, 2)
    mode = (decisions.mode[op] + further) % 3
    if problem.more.modes[mode] == 0:
        mode = KEPT if decisions.mode[op] != KEPT else OFFLOADED if problem.more.modes[OFFLOADED] == 1 else RECOMPUTED
    change.terms[0] = op
    change.terms[1] = draw_extent(random, reach.microbatches)
    change.terms[2] = draw_extent(random, reach.stages) if draw(random, 4) == 0 else 1
    change.terms[3] = mode


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Set the mode, and note the modes before."""
    share = len(decisions.mode) // len(problem.rank)
    op = change.terms[0]
    number = 0
    # Stage by stage, from its own against the way of the microbatch.
    for _ in range(change.terms[2]):
        op_class = op // share
        for other in range(op, min(op + change.terms[1], (op_class + 1) * share)):
            change.place[number] = other
            change.target[number] = decisions.mode[other]
            decisions.mode[other] = change.terms[3]
            number += 1
        if problem.source[op_class] < 0:
            break
        op += (problem.source[op_class] - op_class) * share
    change.moves[0] = number
    return True


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Restore the modes."""
    restore(decisions.mode, change)


def propose_exchange(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw another place of the rank, near ones more often."""
    rank = problem.rank[decisions.order[place]]
    start = problem.offsets[rank]
    stop = problem.offsets[rank + 1]
    most = max((stop - start) // 2, 1)
    # Towards the end of the row or its beginning, with equal odds.
    other = place + draw_extent(random, most) if draw(random, 2) == 0 else place - draw_extent(random, most)
    change.terms[0] = forward_at(problem, decisions, place)
    change.terms[1] = forward_at(problem, decisions, min(max(other, start), stop - 1))


def exchange(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Exchange the modes of two forwards; false if they are the same."""
    mode = decisions.mode[change.terms[0]]
    if decisions.mode[change.terms[1]] == mode:
        return False
    decisions.mode[change.terms[0]] = decisions.mode[change.terms[1]]
    decisions.mode[change.terms[1]] = mode
    return True


def exchange_back(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Exchange the modes back."""
    mode = decisions.mode[change.terms[0]]
    decisions.mode[change.terms[0]] = decisions.mode[change.terms[1]]
    decisions.mode[change.terms[1]] = mode


def propose_lead(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw the number of microbatches, and by how many places they are fetched back earlier or later."""
    distance = draw_extent(random, reach.places)
    change.terms[0] = forward_at(problem, decisions, place)
    change.terms[1] = draw_extent(random, reach.microbatches)
    change.terms[2] = distance if draw(random, 2) == 0 else -distance


def change_lead(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Change the leads of offloaded microbatches, and note the leads before; false if none is offloaded."""
    share = len(decisions.lead) // len(problem.rank)
    first = change.terms[0]
    number = 0
    # Up to the last microbatch of the class.
    for op in range(first, min(first + change.terms[1], (first // share + 1) * share)):
        if decisions.mode[op] == OFFLOADED:
            change.place[number] = op
            change.target[number] = decisions.lead[op]
            decisions.lead[op] = min(max(decisions.lead[op] + change.terms[2], 0), MOST)
            number += 1
    change.moves[0] = number
    return number > 0


def restore_lead(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Restore the leads."""
    restore(decisions.lead, change)
