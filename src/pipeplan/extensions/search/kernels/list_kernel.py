"""List scheduling (Graham 1969): of the ops that lead to no dead end, always place the one due first.

Arrays: ``due`` has the due time of each class's first op, a ``period`` less than that of the next; ``state.room`` what each
rank may still take in; ``state.done`` how many ops of each class are placed; ``state.filled`` the next place of each rank.
One step::

    due      F0 0    F1 3    I0 5    F2 6            period 3
    placed   F0 F1                                   I0 is due first, but its source is not placed: F2 is tried
    safe?    room for F2 and for finishing 0, 1, 2   yes: F2 is placed; no: F2 is refused until a backward is placed
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.extensions.search.kernels.arrays import FlatProblem
from pipeplan.extensions.search.kernels.row_kernel import mirrored
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints


class ListState(NamedTuple):
    """State of list scheduling.

    Attributes
    ----------
    room, spare
        Memory that a rank may still take in, all owed Ws done; and the same in the test for dead ends.
    filled
        The place of a rank's next op.
    done
        Number of placed ops of a class.
    refused
        Number of backwards that were placed when the next forward of a class led to a dead end: until one more is placed,
        it still does.
    """

    room: Annotated[Floats, "ranks"]
    spare: Annotated[Floats, "ranks"]
    filled: Annotated[Ints, "ranks"]
    done: Annotated[Ints, "classes"]
    refused: Annotated[Ints, "classes"]


NEVER = 1e300


def run_list(
    problem: FlatProblem,
    share: Annotated[int, "ops // classes"],
    due: Annotated[Floats, "classes"],
    period: float,
    order: Annotated[Ints, "ops > 0"],
    state: ListState,
) -> bool:
    """Fill ``order`` op by op; false if it came to a dead end.

    The op of a class for microbatch k is due at ``due[class] + k * period``. Next comes always the op that is due first of
    those whose sources are placed, provided that it leaves a safe state.
    """
    begin_list(problem, state)
    backwards = 0
    placed = 0
    # Place the op that is due first; a forward that leads to a dead end is taken back, and refused for now.
    while placed < len(order):
        chosen = first_due(problem, share, due, period, backwards, state)
        if chosen < 0:
            return False
        rank = problem.rank[chosen]
        state.done[chosen] += 1
        if chosen % 2 == 1:
            # With its weight backward, which is counted at once, it frees all that its forward took.
            state.room[rank] += problem.growth[chosen - 1]
            backwards += 1
        else:
            state.room[rank] -= problem.growth[chosen]
            if not is_safe(problem, share, state):
                state.room[rank] += problem.growth[chosen]
                state.done[chosen] -= 1
                state.refused[chosen] = backwards
                continue
        order[state.filled[rank]] = chosen
        state.filled[rank] += 1
        placed += 1
    return True


def begin_list(problem: FlatProblem, state: ListState) -> None:
    """Set the state to before the first op."""
    for op_class in range(len(problem.rank)):
        state.done[op_class] = 0
        state.refused[op_class] = -1
    for rank in range(len(state.room)):
        state.room[rank] = problem.limit[rank]
        state.filled[rank] = problem.offsets[rank]


@inlined
def first_due(problem: FlatProblem, share: int, due: Floats, period: float, backwards: int, state: ListState) -> int:
    """Return the class that is due first of those whose next op can be placed, or -1; ``backwards`` are placed so far."""
    chosen = -1
    first = NEVER
    for op_class in range(len(problem.rank)):
        index = state.done[op_class]
        # Not those that are all placed, nor forwards refused since the last backward.
        time = due[op_class] + index * period
        if time < first and index < share and state.refused[op_class] < backwards:
            source = problem.source[op_class]
            needed = mirrored(index, problem.slices) if source == op_class - 1 and op_class % 2 == 1 else index
            if source < 0 or state.done[source] > needed:
                chosen = op_class
                first = time
    return chosen


@inlined
def is_safe(problem: FlatProblem, share: int, state: ListState) -> bool:
    """Return true if microbatches can at least be finished one after the other, the oldest first.

    This is the banker's algorithm (Dijkstra 1965) with a fixed order: each microbatch must find room for what it still
    lacks, and frees what it holds. As long as the state is safe, the next op of the oldest microbatch can always run.
    """
    classes = len(problem.rank)
    oldest = share
    newest = 0
    # The microbatches that have begun and are not finished.
    for op_class in range(0, classes, 2):
        oldest = min(oldest, state.done[op_class + 1])
        newest = max(newest, state.done[op_class])
    for rank in range(len(state.room)):
        state.spare[rank] = state.room[rank]
    slices = problem.slices
    # Finish them one by one.
    for index in range(oldest // slices, (newest + slices - 1) // slices):
        # First all forwards that this microbatch still lacks, then its backwards, each with its W.
        end = (index + 1) * slices
        for op_class in range(0, classes, 2):
            if state.done[op_class] < end:
                lacking = min(end - state.done[op_class], slices)
                state.spare[problem.rank[op_class]] -= lacking * problem.growth[op_class]
        for rank in range(len(state.room)):
            if state.spare[rank] < 0:
                return False
        for op_class in range(0, classes, 2):
            if state.done[op_class + 1] < end:
                lacking = min(end - state.done[op_class + 1], slices)
                state.spare[problem.rank[op_class]] += lacking * problem.growth[op_class]
    return True
