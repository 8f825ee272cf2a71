"""The move that changes whose owed weight backward a rank runs next. Terms: the first slot, how many, 1 + the class or 0.

A rank's Ws have slots, in their order; those drawn are about to come at the place where the step starts.
"""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.solver.kernels.random_kernel import draw, draw_extent


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw the slots, and the class of an I near the place; or none: the one that is owed the longest."""
    rank = problem.rank[decisions.order[place]]
    start = problem.offsets[rank]
    backwards = 0
    for other in range(start, place):
        backwards += decisions.order[other] % 2
    slot = max(backwards - draw_extent(random, reach.places + 1), 0)
    near = start + draw(random, place - start + 1)
    op_class = decisions.order[near]
    op_class += 1 - op_class % 2
    change.terms[0] = start + slot
    change.terms[1] = draw_extent(random, reach.microbatches)
    change.terms[2] = 0 if draw(random, 3) == 0 or problem.weight_time[op_class] < 0 else 1 + op_class


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Change them, and keep what they were; false if they are that already."""
    first = change.terms[0]
    rank = problem.rank[decisions.order[first]]
    stop = min(first + change.terms[1], problem.offsets[rank + 1])
    changed = False
    for slot in range(first, stop):
        change.place[slot - first] = slot
        change.target[slot - first] = decisions.prefer[slot]
        changed = changed or decisions.prefer[slot] != change.terms[2]
        decisions.prefer[slot] = change.terms[2]
    change.moves[0] = stop - first
    return changed


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Set them to what they were."""
    for step in range(change.moves[0]):
        decisions.prefer[change.place[step]] = change.target[step]
