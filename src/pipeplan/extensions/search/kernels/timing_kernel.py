"""Timing one candidate: the loop that a search spends its time in.

Ranks run their rows in order, each until it needs a result that is not there; the rank that makes it wakes it. Every op is
visited once, so the time is linear in the ops.

Arrays: ``timing.stack`` holds the ranks that can go on; ``cursor`` and ``clock`` say how far a rank has come, and when;
``finish`` has the end of every op, by its number; ``done`` counts the ops of a class that have run. ``arrays`` explains the
rest. One visit of a rank, between two waits::

    order    F0  F1  I0  F2  I1            cursor before: I0, after: I1
    runs             I0  W0  F2            I0 is there; W0 fits into the wait for F2; I1 is not there
    then     rank 1 is on the stack: it waited for I0; this rank waits for the I1 of its source

Weight backwards (W) are in no candidate's order. An I leaves its W owed; first in, first out, the Ws owed by a rank run
before one of its later ops when the candidate forces them to, when that op would not fit into memory without them, or when
they fit into the wait for what that op needs. The rest follows the last op.
"""

from pipeplan.extensions.search.kernels.arrays import CandidateTiming, Decisions, FlatProblem, Target
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints

INFEASIBLE = 1e300
"""Value of a candidate that deadlocks, does not fit into memory, or is above the limit."""

NOT_THERE = -1.0
"""Arrival of a result that has not been made."""

STUCK = -1
"""Returned by ``run_rank`` for an infeasible candidate, instead of the number of ranks that can go on."""


def run_ranks(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    stops: Ints,
    first: int,
    top: int,
    timing: CandidateTiming,
) -> int:
    """Run the ``top`` ranks on the stack up to places, of rank r to ``stops[first + r]``; ``STUCK`` if infeasible.

    It is a function of its own, so that it is compiled once for all kernels that time candidates.
    """
    # The rank on top of the stack runs until it waits or is there; ranks that it wakes come on top.
    while top > 0:
        top = run_rank(problem, decisions, span, limit, stops[first + timing.stack[top - 1]], top - 1, False, timing)
    return top


def run_ranks_in_pairs(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    stops: Ints,
    first: int,
    top: int,
    timing: CandidateTiming,
) -> int:
    """Do what ``run_ranks`` does where ops may overlap, or backwards run in full: twice the code, for few problems."""
    while top > 0:
        top = run_rank(problem, decisions, span, limit, stops[first + timing.stack[top - 1]], top - 1, True, timing)
    return top


def value_at_end(problem: FlatProblem, decisions: Decisions, target: Target, timing: CandidateTiming) -> float:
    """Return the value of a candidate whose ranks have run their rows, all owed Ws run; ``INFEASIBLE`` if one has not."""
    ranks = len(problem.work)
    longest = 0.0
    total = 0.0
    for rank in range(ranks):
        # No rank is left to compute the result that this rank waits for: the candidate deadlocks.
        if timing.cursor[rank] < problem.offsets[rank + 1]:
            return INFEASIBLE
        run_rest(problem, decisions, rank, timing)
        duration = timing.clock[rank] - timing.begin[rank]
        longest = max(longest, duration)
        total += duration
    return longest + target.spread * total / ranks


def evaluate(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """Return the value of a candidate; ``INFEASIBLE`` if a makespan or span must be more than ``limit``.

    For problems in which nothing overlaps and no backward gains by running in full: most problems.
    """
    begin(problem, timing)
    # All ranks begin, each as far as the end of its row: that of rank r is at ``offsets[r + 1]``.
    if run_ranks(problem, decisions, target.span, limit, problem.offsets, 1, len(problem.work), timing) == STUCK:
        return INFEASIBLE
    return value_at_end(problem, decisions, target, timing)


def evaluate_pairs(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """Do what ``evaluate`` does, for all problems that are not wide."""
    begin(problem, timing)
    ranks = len(problem.work)
    if run_ranks_in_pairs(problem, decisions, target.span, limit, problem.offsets, 1, ranks, timing) == STUCK:
        return INFEASIBLE
    return value_at_end(problem, decisions, target, timing)


def begin(problem: FlatProblem, timing: CandidateTiming) -> None:
    """Set the timing to before the first op; all ranks can go on, the first one first."""
    ranks = len(problem.work)
    for op_class in range(len(problem.rank)):
        timing.done[op_class] = 0
        timing.waiting[op_class] = 0
    for rank in range(ranks):
        timing.cursor[rank] = problem.offsets[rank]
        timing.pending[rank] = problem.offsets[rank]
        timing.owed[rank] = 0
        timing.clock[rank] = 0.0
        timing.held[rank] = 0.0
        timing.left[rank] = problem.work[rank]
        timing.stack[rank] = ranks - 1 - rank


@inlined
def wait_for(problem: FlatProblem, source: int, rank: int, timing: CandidateTiming) -> bool:
    """Have a rank wait for the next op of a class; return true if it waits for itself, which is a deadlock."""
    timing.waiting[source] = 1
    stuck: bool = problem.rank[source] == rank
    return stuck


@inlined
def time_together(
    problem: FlatProblem, op_class: int, time: float, partner: int, other_time: float, full: bool
) -> float:
    """Return how long an op and the one that it overlaps with take together; ``full``: the backward runs in full."""
    if problem.partners == 0:
        return time + other_time
    behind = 1 if full else 0
    together: float = problem.pairs[problem.partner[op_class] + problem.partner[partner] + behind]
    return together


@inlined
def growth_together(op_class: int, growth: float, other_growth: float) -> float:
    """Return what an op and the one that it overlaps with add at most; the forward takes its memory first."""
    forward_growth = other_growth if op_class % 2 == 1 else growth
    return max(forward_growth, growth + other_growth)


@inlined
def run_rank(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    stop: int,
    top: int,
    has_pairs: bool,
    timing: CandidateTiming,
) -> int:
    """Run the rank at ``stack[top]`` up to the place ``stop`` or until it waits; return how many are then on the stack.

    ``STUCK`` if the candidate deadlocks here, does not fit, or ends after ``limit``. ``has_pairs`` false: no pairs, no B.
    """
    rank = timing.stack[top]
    place = timing.cursor[rank]
    pending = timing.pending[rank]
    owed = timing.owed[rank]
    clock = timing.clock[rank]
    held = timing.held[rank]
    left = timing.left[rank]
    may_run_full = has_pairs and len(decisions.full) > 0
    stuck = False
    while place < stop:
        # When the op's input is there. On the same rank it would have to come first: what is not done never will be.
        op_class = decisions.order[place]
        index = timing.done[op_class]
        source = problem.source[op_class]
        arrival = 0.0
        cause = 1
        if source >= 0:
            if timing.done[source] <= index:
                stuck = wait_for(problem, source, rank, timing)
                break
            arrival = timing.finish[problem.first[source] + index] + problem.delay[op_class]
        full = may_run_full and decisions.full[problem.first[op_class] + index] == 1
        time = problem.full_time[op_class] if full else problem.time[op_class]
        growth = problem.full_growth[op_class] if full else problem.growth[op_class]

        # The next op too, where both run overlapped: they start when both inputs are there, and end together.
        partner = -1
        if (
            has_pairs
            and decisions.joined[place] == 1
            and place + 1 < stop
            and (op_class + decisions.order[place + 1]) % 2 == 1
        ):
            partner = decisions.order[place + 1]
            other = input_at(problem, partner, timing)
            if other == NOT_THERE:
                stuck = wait_for(problem, problem.source[partner], rank, timing)
                break
            if other > arrival:
                arrival = other
                cause = 2
            other_full = may_run_full and decisions.full[problem.first[partner] + timing.done[partner]] == 1
            other_time = problem.full_time[partner] if other_full else problem.time[partner]
            other_growth = problem.full_growth[partner] if other_full else problem.growth[partner]
            time = time_together(problem, op_class, time, partner, other_time, full or other_full)
            growth = growth_together(op_class, growth, other_growth)

        # Weight backwards before it, the one owed the longest first.
        room = problem.limit[rank] - growth
        weights = 0
        while owed > 0:
            pending = next_owed(timing.owes, pending)
            weight = decisions.order[pending]
            end = clock + problem.weight_time[weight]
            if not runs_before(weights < decisions.forced[place], held > room, end, arrival):
                break
            clock = end
            held += problem.weight_growth[weight]
            left -= problem.weight_time[weight]
            owed -= 1
            pending += 1
            weights += 1
        if held > room:
            stuck = True
            break
        timing.weights[place] = weights

        # It starts. The rank's remaining work says already how early it can be done.
        timing.waited[place] = cause if arrival > clock else 0
        clock = max(clock, arrival)
        if place == problem.offsets[rank]:
            timing.begin[rank] = clock * span
        if clock + left - timing.begin[rank] > limit:
            stuck = True
            break
        clock += time

        # It ends, and with it the op that it overlaps with; a rank that waits for one of them can go on.
        while True:
            op = problem.first[op_class] + index
            owes = 0
            if may_run_full and decisions.full[op] == 1:
                held += problem.full_growth[op_class]
                left -= problem.full_time[op_class]
            else:
                held += problem.growth[op_class]
                left -= problem.time[op_class]
                owes = 1 if problem.weight_time[op_class] >= 0 else 0
            timing.owes[place] = owes
            owed += owes
            timing.finish[op] = clock
            timing.position[op] = place
            timing.done[op_class] = index + 1
            if timing.waiting[op_class] == 1:
                timing.waiting[op_class] = 0
                timing.stack[top] = problem.consumer[op_class]
                top += 1
            place += 1
            if partner < 0:
                break
            op_class = partner
            index = timing.done[partner]
            timing.weights[place] = 0
            timing.waited[place] = 0
            partner = -1
    # Its state for the next visit.
    timing.cursor[rank] = place
    timing.pending[rank] = pending
    timing.owed[rank] = owed
    timing.clock[rank] = clock
    timing.held[rank] = held
    timing.left[rank] = left
    return STUCK if stuck else top


@inlined
def input_at(problem: FlatProblem, op_class: int, timing: CandidateTiming) -> float:
    """Return when the input of a class's next op is there, or ``NOT_THERE`` where it has not been made."""
    source = problem.source[op_class]
    if source < 0:
        return 0.0
    index = timing.done[op_class]
    if timing.done[source] <= index:
        return NOT_THERE
    arrival: float = timing.finish[problem.first[source] + index] + problem.delay[op_class]
    return arrival


def run_rest(problem: FlatProblem, decisions: Decisions, rank: int, timing: CandidateTiming) -> None:
    """Run the weight backwards that a rank still owes after its last op."""
    # Nothing follows that they could make wait, and a W only frees memory: they run one after the other, without any test.
    pending = timing.pending[rank]
    for _ in range(timing.owed[rank]):
        pending = next_owed(timing.owes, pending)
        timing.clock[rank] += problem.weight_time[decisions.order[pending]]
        pending += 1


@inlined
def next_owed(owes: Ints, pending: int) -> int:
    """Return the place of the I whose W is owed the longest, from ``pending`` on; there must be one."""
    while owes[pending] == 0:
        pending += 1
    return pending


@inlined
def runs_before(forced: bool, lacks_room: bool, end: float, arrival: float) -> bool:
    """Return true if a W that would end at ``end`` runs before an op whose input is there at ``arrival``."""
    return forced or lacks_room or end <= arrival
