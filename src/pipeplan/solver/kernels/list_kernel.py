"""The hot loop of list scheduling: next always comes the op that is due first and leads to no dead end."""

from pipeplan.model import Floats, Ints
from pipeplan.solver.kernels.arrays import FlatProblem, ListState

NEVER = 1e300


def is_safe(problem: FlatProblem, share: int, state: ListState) -> bool:
    """Whether from here on microbatches can at least be finished one after the other, the oldest first.

    That is the banker's algorithm with a given order: each microbatch must find room for what it still lacks, and gives
    back what it holds. As long as it holds, the next op of the oldest microbatch can always run.
    """
    classes = len(problem.rank)
    oldest = share
    newest = 0
    for item in range(0, classes, 2):
        oldest = min(oldest, state.done[item + 1])
        newest = max(newest, state.done[item])
    for rank in range(len(state.room)):
        state.spare[rank] = state.room[rank]
    for index in range(oldest, newest):
        for item in range(0, classes, 2):
            if state.done[item] <= index:
                state.spare[problem.rank[item]] -= problem.change[item]
        for rank in range(len(state.room)):
            if state.spare[rank] < 0:
                return False
        for item in range(0, classes, 2):
            if state.done[item + 1] <= index:
                state.spare[problem.rank[item]] += problem.change[item]
    return True


def run_list(
    problem: FlatProblem,
    share: int,
    due: Floats,
    period: float,
    order: Ints,
    state: ListState,
) -> bool:
    """Fill ``order`` op by op; false if it came to a dead end.

    The op of a class for microbatch k is due at ``due[class] + k * period``. Next comes always the op that is due first of
    those whose sources are placed, provided that it leaves a safe state.
    """
    classes = len(problem.rank)
    for item in range(classes):
        state.done[item] = 0
        state.refused[item] = -1
    for rank in range(len(state.room)):
        state.room[rank] = problem.cap[rank]
        state.filled[rank] = problem.offsets[rank]
    backwards = 0
    placed = 0
    while placed < len(order):
        chosen = -1
        first = NEVER
        for item in range(classes):
            index = state.done[item]
            time = due[item] + index * period
            if time < first and index < share and state.refused[item] < backwards:
                source = problem.source[item]
                if source < 0 or state.done[source] > index:
                    chosen = item
                    first = time
        if chosen < 0:
            return False
        rank = problem.rank[chosen]
        state.done[chosen] += 1
        if chosen % 2 == 1:
            state.room[rank] += problem.change[chosen - 1]
            backwards += 1
        else:
            state.room[rank] -= problem.change[chosen]
            if not is_safe(problem, share, state):
                state.room[rank] += problem.change[chosen]
                state.done[chosen] -= 1
                state.refused[chosen] = backwards
                continue
        order[state.filled[rank]] = chosen
        state.filled[rank] += 1
        placed += 1
    return True
