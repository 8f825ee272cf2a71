"""The move that makes full backwards of halves, or halves of full ones. Terms: the first op, and how many.

They are the backwards of one stage for some microbatches in a row.
"""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import Change, Decisions, FlatProblem, Reach
from pipeplan.solver.kernels.random_kernel import draw_extent
from pipeplan.solver.kernels.row_kernel import index_of


def propose(problem: FlatProblem, reach: Reach, decisions: Decisions, place: int, change: Change, random: Ints) -> None:
    """Draw how many microbatches, from that of the op on; where the op is a forward, it is that microbatch's backward."""
    op_class = decisions.order[place]
    index = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
    share = len(decisions.order) // len(problem.rank)
    change.terms[0] = problem.first[op_class + 1 - op_class % 2] + index
    change.terms[1] = min(draw_extent(random, reach.microbatches), share - index)


def apply(problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Turn each of them."""
    toggle(decisions.full, change.terms[0], change.terms[1])
    return True


def undo(problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Turn each of them back."""
    toggle(decisions.full, change.terms[0], change.terms[1])


def toggle(full: Ints, first: int, count: int) -> None:
    """Make so many backwards, from ``first`` on, full where they are halves, and halves where they are full."""
    for op in range(first, first + count):
        full[op] = 1 - full[op]
