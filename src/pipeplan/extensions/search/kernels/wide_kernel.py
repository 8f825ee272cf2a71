"""Timing one candidate of a wide problem: ``timing_kernel`` with all that it leaves out, and slower.

A problem is wide if one of these counts; the arrays of the others are empty, or there is one slice.

- Owed Ws run in their own order (``Decisions.prefer``).
- Microbatches are recomputed or offloaded, each on each stage for itself (``Decisions.mode``).
- A link carries one transfer at a time, in the order in which the sender has finished them (``WideProblem.link``).
- Sequences are cut into slices (``FlatProblem.slices``).
- Microbatches differ in what they take (``WideProblem.varied``), and each class runs them in its own turns
  (``Decisions.turn``).

Arrays: those of ``timing_kernel``, and those of ``WideProblem`` and ``WideTiming`` in ``arrays``. One step runs an op with
all that is before it, in this order; an R waits for nothing but its forward, so that it fills the wait for its
backward's input as a W does::

    place k of the row              W0   OFFLOAD3   RELOAD1   R1   I1
    decided by                      prefer  room     lead     mode  order
    time                            |----|..........|........|----|------|
                                    W runs; the copies go on meanwhile; R ends where the input of I1 arrives
"""

from pipeplan.extensions.search.kernels.arrays import (
    KEPT,
    OF_FULL,
    OF_MESSAGE,
    OF_OP,
    OF_RECOMPUTE,
    OF_SIZE,
    OFFLOADED,
    RECOMPUTED,
    CandidateTiming,
    Decisions,
    FlatProblem,
    Target,
)
from pipeplan.extensions.search.kernels.host_kernel import fetch, make_room, queue_copy
from pipeplan.extensions.search.kernels.row_kernel import mirrored
from pipeplan.extensions.search.kernels.timing_kernel import (
    INFEASIBLE,
    NOT_THERE,
    STUCK,
    begin,
    growth_together,
    time_together,
    wait_for,
)
from pipeplan.extensions.search.kernels.varied_kernel import has_run, next_op, varied_by
from pipeplan.extensions.search.kernels.wide_weights_kernel import run_owed, run_rest
from pipeplan.foundation.kernels import inlined


def evaluate_wide(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """Return the value of a candidate; ``INFEASIBLE`` if it must be more than ``limit``."""
    begin(problem, timing)
    begin_wide(problem, timing)
    ranks = len(problem.work)
    waiting_to_run = ranks
    unfinished = ranks
    longest = 0.0
    total = 0.0
    while waiting_to_run > 0:
        # The rank on top of the stack runs until it waits or is done; ranks that it wakes come on top.
        rank = timing.stack[waiting_to_run - 1]
        waiting_to_run = run_rank(problem, decisions, target.span, limit, rank, waiting_to_run - 1, timing)
        if waiting_to_run == STUCK:
            return INFEASIBLE
        if timing.cursor[rank] == problem.offsets[rank + 1]:
            unfinished -= 1
            run_rest(problem, decisions, rank, timing)
            duration = timing.clock[rank] - timing.begin[rank]
            longest = max(longest, duration)
            total += duration
    return INFEASIBLE if unfinished > 0 else longest + target.spread * total / ranks


def begin_wide(problem: FlatProblem, timing: CandidateTiming) -> None:
    """Set the arrays that only wide problems have to before the first op."""
    wide = timing.more
    for rank in range(len(problem.work)):
        wide.begun[rank] = problem.offsets[rank]
        wide.queued[rank] = problem.offsets[rank]
        wide.left_in[rank] = problem.offsets[rank]
        wide.ahead[rank] = problem.offsets[rank]
        wide.out_free[rank] = 0.0
        wide.in_free[rank] = 0.0
    for op_class in range(len(problem.rank)):
        wide.looked[op_class] = 0
    for link in range(len(wide.link_free)):
        wide.link_free[link] = 0.0
    # Where ops of a class may run in any turn, their number does not tell which of them have run.
    if len(problem.more.varied) > 0:
        for op in range(len(timing.finish)):
            timing.finish[op] = NOT_THERE


@inlined
def run_rank(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    rank: int,
    top: int,
    timing: CandidateTiming,
) -> int:
    """Run a rank until it waits for another or is done; returns what ``timing_kernel.run_rank`` does."""
    wide = timing.more
    stop = problem.offsets[rank + 1]
    may_run_full = len(decisions.full) > 0
    decides_mode = len(decisions.mode) > 0
    place = timing.cursor[rank]
    while place < stop:
        # When the op's input is there, how long it takes, and what it adds.
        op_class = decisions.order[place]
        op = next_op(problem, decisions, op_class, timing)
        cause = 1
        arrival = input_at(problem, op_class, op, timing)
        if arrival == NOT_THERE:
            if wait_for(problem, problem.source[op_class], rank, timing):
                return STUCK
            break
        work, gain = work_and_gain(problem, decisions, op_class, op, may_run_full, decides_mode)
        time, growth = work, gain

        # The next op too, where both run overlapped: they start when both inputs are there, and end together.
        partner = -1
        backward, backward_op = op_class, op
        other_work = other_gain = 0.0
        if decisions.joined[place] == 1 and place + 1 < stop and (op_class + decisions.order[place + 1]) % 2 == 1:
            partner = decisions.order[place + 1]
            other_op = next_op(problem, decisions, partner, timing)
            other = input_at(problem, partner, other_op, timing)
            if other == NOT_THERE:
                if wait_for(problem, problem.source[partner], rank, timing):
                    return STUCK
                break
            if other > arrival:
                arrival = other
                cause = 2
            other_work, other_gain = work_and_gain(problem, decisions, partner, other_op, may_run_full, decides_mode)
            growth = growth_together(op_class, gain, other_gain)
            if partner % 2 == 1:
                backward, backward_op = partner, other_op
            full = may_run_full and decisions.full[backward_op] == 1
            time = time_together(problem, op_class, work, partner, other_work, full)

        # What the backward needs first, its R or its RELOAD: how long that takes, and what it adds.
        again = extra = 0.0
        mode = KEPT
        forward_op = -1
        if decides_mode and backward % 2 == 1:
            forward_op = problem.first[backward - 1] + mirrored(backward_op - problem.first[backward], problem.slices)
            mode = decisions.mode[forward_op]
            again, extra = needed_first(problem, backward, backward_op, forward_op, mode, timing)
            if mode == OFFLOADED and wide.returned[forward_op] > arrival:
                arrival = wide.returned[forward_op]
                cause = 0
        room = problem.limit[rank] - (extra + max(growth, 0.0) if extra > 0 else growth)

        # Before it: weight backwards, copies to the host, and copies back.
        run_owed(problem, decisions, rank, place, room, arrival, again, timing)
        if decides_mode:
            make_room(problem, rank, place, room, forward_op if mode == OFFLOADED else -1, timing)
        if timing.held[rank] > room:
            return STUCK
        if decides_mode:
            # What the op itself frees is free only after it.
            beside = problem.limit[rank] - extra - max(growth, 0.0) - timing.held[rank]
            last = place if partner < 0 else place + 1
            fetched = fetch(problem, decisions, rank, place, last, beside, timing)
            timing.held[rank] += fetched
            if mode == RECOMPUTED:
                timing.held[rank] += extra
            elif mode == OFFLOADED and wide.returned[forward_op] > arrival:
                arrival = wide.returned[forward_op]
                cause = 0

        # It starts, after its R. The rank's remaining work says already how early it can be done.
        clock = timing.clock[rank] + again
        timing.waited[place] = 0
        if arrival > clock:
            clock = arrival
            timing.waited[place] = cause
        if place == problem.offsets[rank]:
            timing.begin[rank] = clock * span
        if clock + timing.left[rank] - timing.begin[rank] > limit:
            return STUCK
        timing.clock[rank] = clock + time
        timing.held[rank] = timing.held[rank] + gain + other_gain
        timing.left[rank] = timing.left[rank] - work - other_work

        # It ends, and with it the op that it overlaps with.
        if partner < 0:
            arrives = sent(problem, op_class, op, timing.clock[rank], timing)
            top = end_op(problem, decisions, place, op, arrives, top, timing)
            place += 1
        else:
            top = end_pair(problem, decisions, place, top, timing)
            place += 2
    timing.cursor[rank] = place
    return top


@inlined
def needed_first(
    problem: FlatProblem,
    backward: int,
    backward_op: int,
    forward_op: int,
    mode: int,
    timing: CandidateTiming,
) -> tuple[float, float]:
    """Return how long the R of a class's next backward takes, and what its R or RELOAD adds."""
    more = problem.more
    # An R takes time and the memory that the forward did not keep; a RELOAD without a place takes the memory alone.
    again = 0.0
    extra = 0.0
    if mode == RECOMPUTED:
        again = more.recomputing[backward] * varied_by(problem, OF_RECOMPUTE, backward_op)
        extra = problem.growth[backward - 1] - more.recompute_keeps[backward - 1]
    elif mode == OFFLOADED and timing.more.returned[forward_op] < 0:
        extra = more.offloaded[backward - 1]
    return again, extra * varied_by(problem, OF_SIZE, forward_op)


@inlined
def end_op(
    problem: FlatProblem,
    decisions: Decisions,
    place: int,
    op: int,
    arrives: float,
    top: int,
    timing: CandidateTiming,
) -> int:
    """End the op at a place, whose result is there at ``arrives``; return how many ranks are then on the stack."""
    op_class = decisions.order[place]
    rank = problem.rank[op_class]
    full = len(decisions.full) > 0 and decisions.full[op] == 1
    timing.owes[place] = 0
    if problem.weight_time[op_class] >= 0 and not full:
        timing.owes[place] = 1
        timing.owed[rank] += 1
    if len(decisions.mode) > 0 and op_class % 2 == 0 and decisions.mode[op] == OFFLOADED:
        queue_copy(problem, rank, op_class, op, timing.clock[rank], timing)
    # Its result can be used, and a rank that waits for it can go on.
    timing.finish[op] = arrives
    timing.position[op] = place
    timing.more.op_at[place] = op
    timing.done[op_class] += 1
    if timing.waiting[op_class] == 1:
        timing.waiting[op_class] = 0
        timing.stack[top] = problem.consumer[op_class]
        top += 1
    return top


def end_pair(problem: FlatProblem, decisions: Decisions, place: int, top: int, timing: CandidateTiming) -> int:
    """End the op at a place and the next one, which overlap; return how many ranks are then on the stack."""
    first = decisions.order[place]
    second = decisions.order[place + 1]
    first_op = next_op(problem, decisions, first, timing)
    second_op = next_op(problem, decisions, second, timing)
    clock = timing.clock[problem.rank[first]]
    # Of two results on one link the forward's goes first.
    if first % 2 == 0:
        first_arrives = sent(problem, first, first_op, clock, timing)
        second_arrives = sent(problem, second, second_op, clock, timing)
    else:
        second_arrives = sent(problem, second, second_op, clock, timing)
        first_arrives = sent(problem, first, first_op, clock, timing)
    timing.weights[place + 1] = 0
    timing.waited[place + 1] = 0
    if len(decisions.mode) > 0:
        timing.more.offloads[place + 1] = 0
        timing.more.reloads[place + 1] = 0
    top = end_op(problem, decisions, place, first_op, first_arrives, top, timing)
    return end_op(problem, decisions, place + 1, second_op, second_arrives, top, timing)


@inlined
def input_at(problem: FlatProblem, op_class: int, op: int, timing: CandidateTiming) -> float:
    """Return when the input of an op is there: 0 if it needs none, ``NOT_THERE`` if it has not been made."""
    source = problem.source[op_class]
    if source < 0:
        return 0.0
    index = op - problem.first[op_class]
    if source == op_class - 1 and op_class % 2 == 1:
        index = mirrored(index, problem.slices)
    needed = problem.first[source] + index
    if not has_run(problem, source, needed, timing):
        return NOT_THERE
    arrival: float = timing.finish[needed]
    return arrival


@inlined
def work_and_gain(
    problem: FlatProblem, decisions: Decisions, op_class: int, op: int, may_run_full: bool, decides_mode: bool
) -> tuple[float, float]:
    """Return how long an op takes, and what it adds to what its rank holds, its R or RELOAD done."""
    size = varied_by(problem, OF_SIZE, op)
    if may_run_full and decisions.full[op] == 1:
        return problem.full_time[op_class] * varied_by(problem, OF_FULL, op), problem.full_growth[op_class] * size
    time = problem.time[op_class] * varied_by(problem, OF_OP, op)
    if decides_mode and op_class % 2 == 0 and decisions.mode[op] == RECOMPUTED:
        return time, problem.more.recompute_keeps[op_class] * size
    return time, problem.growth[op_class] * size


@inlined
def sent(problem: FlatProblem, op_class: int, op: int, end: float, timing: CandidateTiming) -> float:
    """Return when the result of an op that ends now arrives: where links are contended, after a wait for its link."""
    link = problem.more.link[op_class]
    if link >= 0:
        end = max(timing.more.link_free[link], end)
    arrival: float = end + problem.more.sending[op_class] * varied_by(problem, OF_MESSAGE, op)
    if link >= 0:
        timing.more.link_free[link] = arrival
    return arrival
