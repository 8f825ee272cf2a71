"""Moves that change one decision and leave the order as it is: forced weights, pairs, full backwards, whose W is next.

============== ==================================================== ==============================
move           terms                                                one step
============== ==================================================== ==============================
forced weight  the place; 1 or -1                                   ``F2 I1`` becomes ``F2 W0 I1``
pair           the place                                            ``F2 I1`` becomes ``F2+I1``
full backward  the first op; how many                               ``I1 .. W1`` becomes ``B1``
weight order   the first slot; how many; 1 + the class or 0         ``W0 V0`` becomes ``V0 W0``
============== ==================================================== ==============================

A rank's Ws have slots, in their order; those drawn are about to run at the place where the step starts.
"""

from pipeplan.extensions.search.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.extensions.search.kernels.random_kernel import draw, draw_extent
from pipeplan.extensions.search.kernels.row_kernel import index_of
from pipeplan.model import Ints


def propose_forced(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw whether to force one W more or one less; less is twice as likely if some are forced."""
    change.terms[0] = place
    # Numbers below 0 do not exist: with equal odds the number of forced Ws would grow as a random walk does, and delay ops.
    change.terms[1] = 1 if decisions.forced[place] == 0 or draw(random, 3) == 0 else -1


def force(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Change the number of forced Ws."""
    decisions.forced[change.terms[0]] += change.terms[1]
    return True


def unforce(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Restore the number of forced Ws."""
    decisions.forced[change.terms[0]] -= change.terms[1]


def propose_pair(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Note the place; there is nothing to draw."""
    change.terms[0] = place


def toggle_pair(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Join the op at the place and the next one, or part them."""
    place = change.terms[0]
    decisions.joined[place] = 1 - decisions.joined[place]
    return True


def toggle_pair_back(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Undo ``toggle_pair``."""
    place = change.terms[0]
    decisions.joined[place] = 1 - decisions.joined[place]


def propose_full(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw the number of microbatches, from that of the op on; for a forward its backward is meant."""
    op_class = decisions.order[place]
    index = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
    share = len(decisions.order) // len(problem.rank)
    # Class 2s + 1 is the backward of class 2s: ``+ 1 - op_class % 2`` leads there from either.
    change.terms[0] = problem.first[op_class + 1 - op_class % 2] + index
    change.terms[1] = min(draw_extent(random, reach.microbatches), share - index)


def toggle_full(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Toggle the backwards that were drawn at random between full and halves."""
    toggle(decisions.full, change.terms[0], change.terms[1])
    return True


def toggle_full_back(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Toggle them back."""
    toggle(decisions.full, change.terms[0], change.terms[1])


def toggle(full: Ints, first: int, count: int) -> None:
    """Toggle backwards between full and halves."""
    for op in range(first, first + count):
        full[op] = 1 - full[op]


def propose_weights(
    problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints
) -> None:
    """Draw the slots, and the class of an I near the place; or 0 for the W owed the longest."""
    rank = problem.rank[decisions.order[place]]
    start = problem.offsets[rank]
    # The slot that is about to come at this place: about as many Ws have run as backwards.
    backwards = 0
    for other in range(start, place):
        backwards += decisions.order[other] % 2
    slot = max(backwards - draw_extent(random, reach.places + 1), 0)
    # Only an I before the place can owe its W there.
    near = start + draw(random, place - start + 1)
    op_class = decisions.order[near]
    op_class += 1 - op_class % 2
    change.terms[0] = start + slot
    change.terms[1] = draw_extent(random, reach.microbatches)
    change.terms[2] = 0 if draw(random, 3) == 0 or problem.weight_time[op_class] < 0 else 1 + op_class


def change_weights(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Change the slots, and note their classes before; false if nothing changes."""
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


def restore_weights(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Restore the slots."""
    restore(decisions.prefer, change)


def restore(array: Ints, change: Change) -> None:
    """Restore what an array was before a move, the last change first, as an item may have been changed twice."""
    for step in range(change.moves[0] - 1, -1, -1):
        array[change.place[step]] = change.target[step]
