"""Dispatching of microbatches that differ: whenever a rank is free, it starts the best of the ops that it could start then.

Arrays: ``ready`` has the time at which the input of each op is there, by the number of the op; ``clock`` the time at which
each rank decides next, and ``free`` that from which it is free; ``owing`` the Is whose Ws a rank owes, oldest first. One
decision, of a rank that is free at 12 and may hold three more microbatches::

    ready    F4 at 9, F2 at 11, I0 at 12, I1 at 15         F4 and F2 could start, and so could I0
    few      fewer than ``most`` are in flight             the forward whose microbatch has the best priority starts
    many     ``most`` are in flight, or none fits          I0 starts
    none     nothing could start                           an owed W, if it ends before I1 is there
    urgent   the chain after F4 ends at the deadline       F4 starts, whatever the other rules say
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.extensions.search.kernels.arrays import OF_MESSAGE, OF_OP, OF_SIZE, OF_WEIGHT, FlatProblem
from pipeplan.extensions.search.kernels.varied_kernel import varied_by
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints

NEVER = 1e300
"""Time of what is not known to come."""


class DispatchRules(NamedTuple):
    """Rules by which a rank chooses its next op.

    Attributes
    ----------
    tails
        Time from the start of each op to the end of the longest chain after it.
    priority
        Place of the microbatch of each op in the line of forwards of its copy, smallest first.
    most
        Number of forwards without their backward up to which a rank prefers forwards.
    deadline
        Time by which all should be done: an op whose chain would end then, or later, starts before any other.
    """

    tails: Annotated[Floats, "ops"]
    priority: Annotated[Ints, "ops"]
    most: Annotated[Ints, "ranks"]
    deadline: float


class DispatchState(NamedTuple):
    """State of dispatching.

    Attributes
    ----------
    ready
        Time at which the input of an op is there.
    clock, free, held
        Time at which a rank decides next, time from which it is free, and the memory that it holds.
    flying
        Number of forwards without their backward on a rank.
    cursor
        Place of a rank's next op.
    owed, first_owed
        Number of Is whose Ws a rank owes or has run, and of those that have run.
    done
        Number of ops of a class that have run.
    started
        1 once an op has started.
    owing
        Is of a rank in their order, from its offset on.
    """

    ready: Annotated[Floats, "ops"]
    clock: Annotated[Floats, "ranks"]
    free: Annotated[Floats, "ranks"]
    held: Annotated[Floats, "ranks"]
    flying: Annotated[Ints, "ranks"]
    cursor: Annotated[Ints, "ranks"]
    owed: Annotated[Ints, "ranks"]
    first_owed: Annotated[Ints, "ranks"]
    done: Annotated[Ints, "classes"]
    started: Annotated[Ints, "ops"]
    owing: Annotated[Ints, "ops"]


def dispatch(
    problem: FlatProblem,
    rules: DispatchRules,
    order: Annotated[Ints, "ops > 0"],
    turn: Annotated[Ints, "ops"],
    state: DispatchState,
) -> bool:
    """Write the order and the turns that come of the rules; false if it came to a dead end.

    Sequences are not cut: a class has as many turns as ops.
    """
    begin_dispatch(problem, state)
    ranks = len(problem.work)
    left = len(order)
    while left > 0:
        # The rank that decides first: whatever arrives before then is known.
        rank = 0
        for other in range(1, ranks):
            if state.clock[other] < state.clock[rank]:
                rank = other
        if state.clock[rank] >= NEVER:
            return False
        op = choose(problem, rules, rank, state)
        if op >= 0:
            start(problem, rank, op, order, turn, state)
            left -= 1
    return True


def begin_dispatch(problem: FlatProblem, state: DispatchState) -> None:
    """Set the state to before the first op: the inputs of the first stages are there."""
    share = len(state.ready) // len(problem.rank)
    for rank in range(len(state.clock)):
        state.clock[rank] = 0.0
        state.free[rank] = 0.0
        state.held[rank] = 0.0
        state.flying[rank] = 0
        state.cursor[rank] = problem.offsets[rank]
        state.owed[rank] = 0
        state.first_owed[rank] = 0
    for op_class in range(len(problem.rank)):
        state.done[op_class] = 0
        for op in range(op_class * share, (op_class + 1) * share):
            state.ready[op] = 0.0 if problem.source[op_class] < 0 else NEVER
            state.started[op] = 0


def choose(problem: FlatProblem, rules: DispatchRules, rank: int, state: DispatchState) -> int:
    """Return the op that a rank starts now; -1 if it runs a W or waits, until the time that its clock then has."""
    share = len(state.ready) // len(problem.rank)
    now = state.clock[rank]
    forward = -1
    backward = -1
    later = NEVER
    first = len(rules.priority)
    earliest = NEVER
    lacks_room = False
    urgent = -1
    longest = rules.deadline - now
    # Look at all ops of the rank that have not started: those that can start now, and those that arrive later.
    for op_class in range(len(problem.rank)):
        if problem.rank[op_class] != rank or state.done[op_class] == share:
            continue
        for op in range(op_class * share, (op_class + 1) * share):
            if state.started[op] == 1:
                continue
            if state.ready[op] > now:
                later = min(later, state.ready[op])
                continue
            if state.held[rank] + gain(problem, op, share) > problem.limit[rank]:
                lacks_room = True
                continue
            if rules.tails[op] >= longest:
                urgent = op
                longest = rules.tails[op]
            if op_class % 2 == 1:
                if state.ready[op] < earliest:
                    backward = op
                    earliest = state.ready[op]
            else:
                # Later stages first, so that microbatches that have begun go on.
                place = rules.priority[op]
                if place < first or (forward >= 0 and op // share > forward // share):
                    forward = op
                    first = place
    # An urgent op first, then a forward as long as few are in flight, then the backward that has waited longest.
    if urgent >= 0:
        return urgent
    if forward >= 0 and (state.flying[rank] < rules.most[rank] or backward < 0):
        return forward
    if backward >= 0:
        return backward
    # A W that makes room, or that fits into the wait; else nothing until something arrives.
    if state.first_owed[rank] < state.owed[rank]:
        op = state.owing[problem.offsets[rank] + state.first_owed[rank]]
        op_class = op // share
        end = now + problem.weight_time[op_class] * varied_by(problem, OF_WEIGHT, op)
        if lacks_room or end <= later:
            state.first_owed[rank] += 1
            state.held[rank] += problem.weight_growth[op_class] * varied_by(problem, OF_SIZE, op)
            state.free[rank] = end
            state.clock[rank] = end
            return -1
    state.clock[rank] = later
    return -1


@inlined
def gain(problem: FlatProblem, op: int, share: int) -> float:
    """Return the memory that an op adds to its rank."""
    added: float = problem.growth[op // share] * varied_by(problem, OF_SIZE, op)
    return added


def start(problem: FlatProblem, rank: int, op: int, order: Ints, turn: Ints, state: DispatchState) -> None:
    """Start an op on its rank, and note when the op that needs its result can start."""
    share = len(state.ready) // len(problem.rank)
    op_class = op // share
    index = op - op_class * share
    end = state.clock[rank] + problem.time[op_class] * varied_by(problem, OF_OP, op)
    # Its place in the row and its turn; the rank is busy until its end, and may owe its W.
    order[state.cursor[rank]] = op_class
    turn[op_class * share + state.done[op_class]] = index
    state.cursor[rank] += 1
    state.done[op_class] += 1
    state.started[op] = 1
    state.held[rank] += gain(problem, op, share)
    state.flying[rank] += 1 if op_class % 2 == 0 else -1
    if problem.weight_time[op_class] >= 0:
        state.owing[problem.offsets[rank] + state.owed[rank]] = op
        state.owed[rank] += 1
    state.free[rank] = end
    state.clock[rank] = end
    # Its result arrives at the next class.
    after = problem.follower[op_class]
    if after >= 0:
        arrival = end + problem.more.sending[op_class] * varied_by(problem, OF_MESSAGE, op)
        state.ready[after * share + index] = arrival
        # A rank that waits decides again when it arrives.
        other = problem.rank[after]
        if other != rank and state.clock[other] > max(arrival, state.free[other]):
            state.clock[other] = max(arrival, state.free[other])
