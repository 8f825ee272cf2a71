"""Microbatches that differ: which of them a class runs next, and what its op takes.

Arrays: ``turn`` has the microbatch of each turn of a class, ``varied`` the factors by the number of the op; both are empty
where microbatches are alike. One step, of class 0 whose turns are those of microbatches 2, 0 and 1::

    done     1                    the class has run microbatch 2
    next     op 0                 the op of microbatch 0
    takes    time * varied[0]
"""

from pipeplan.extensions.search.kernels.arrays import CandidateTiming, Decisions, FlatProblem
from pipeplan.extensions.search.kernels.timing_kernel import NOT_THERE
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints


@inlined
def op_index(turn: Ints, first: int, count: int, slices: int) -> int:
    """Return the index of the op that a class runs after ``count`` others; ``first`` is the number of the class's first op.

    It is the count itself where microbatches are alike, and ``turn`` empty.
    """
    if len(turn) == 0:
        return count
    # Slices of a microbatch follow each other, and have its turn.
    index: int = turn[first // slices + count // slices] * slices + count % slices
    return index


@inlined
def next_op(problem: FlatProblem, decisions: Decisions, op_class: int, timing: CandidateTiming) -> int:
    """Return the number of the op that a class runs next."""
    first: int = problem.first[op_class]
    return first + op_index(decisions.turn, first, timing.done[op_class], problem.slices)


@inlined
def varied_by(problem: FlatProblem, section: int, op: int) -> float:
    """Return the factor of an op in a section of what varies by microbatch; 1 if microbatches are alike."""
    varied = problem.more.varied
    if len(varied) == 0:
        return 1.0
    # One of the six sections, each of as many items as there are ops.
    factor: float = varied[section * (len(varied) // 6) + op]
    return factor


@inlined
def has_run(problem: FlatProblem, op_class: int, op: int, timing: CandidateTiming) -> bool:
    """Return true if an op of a class has run."""
    # Microbatches that are alike run in the order of their numbers; else the end of the op says whether it has run.
    if len(problem.more.varied) == 0:
        ran: bool = timing.done[op_class] > op - problem.first[op_class]
        return ran
    there: bool = timing.finish[op] != NOT_THERE
    return there
