"""CandidateTiming one candidate of a wide problem: ``timing_kernel`` with all that it leaves out, and slower.

Wide is a problem in which one of these counts; what does not has empty arrays, or one slice.

- Owed Ws run in an order of their own (``Decisions.prefer``).
- Microbatches are recomputed or offloaded, each on each stage for itself (``Decisions.mode``).
- A link carries one transfer at a time, in the order in which the sender has finished them (``WideProblem.link``).
- Sequences are cut into slices (``FlatProblem.slices``).
- What counts is the value in several scenarios, in each of which ops take other times (``WideProblem.factors``). Where Ws,
  OFFLOADs and RELOADs stand is decided on the times of the problem; the scenarios run the rows that come of it.

In front of an op come, in this order, Ws, OFFLOADs, RELOADs, and its R. An R waits for nothing but its forward, so that it
fills the wait for its backward's input as a W does.
"""

from pipeplan.kernels import inlined
from pipeplan.solver.kernels.arrays import (
    KEPT,
    MEAN,
    OFFLOADED,
    P95,
    RECOMPUTED,
    CandidateTiming,
    Decisions,
    FlatProblem,
    Target,
)
from pipeplan.solver.kernels.host_kernel import fetch, free_at_once, place_offload, queue_copy
from pipeplan.solver.kernels.owed_kernel import next_owed, preferred_owed, runs_before
from pipeplan.solver.kernels.slice_kernel import mirrored
from pipeplan.solver.kernels.timing_kernel import (
    INFEASIBLE,
    NOT_THERE,
    STUCK,
    begin,
    growth_together,
    time_together,
    wait_for,
)

NOMINAL = -1
"""The scenario in which ops take the times of the problem."""


def evaluate_wide(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, timing: CandidateTiming
) -> float:
    """The value of a candidate; ``INFEASIBLE`` if it must be more than ``limit``."""
    scenarios = len(timing.more.values)
    # A number that is written out is a type of its own, and all that it is handed to would be compiled twice.
    nominal = min(NOMINAL, scenarios)
    if scenarios == 0:
        return run_scenario(problem, decisions, target, limit, nominal, timing)
    if run_scenario(problem, decisions, target, INFEASIBLE / 2, nominal, timing) >= INFEASIBLE:
        return INFEASIBLE
    return over_scenarios(problem, decisions, target, limit, scenarios, timing)


def over_scenarios(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, scenarios: int, timing: CandidateTiming
) -> float:
    """What counts of the values in all scenarios; the one that decides is timed last, for its longest chain."""
    values = timing.more.values
    ignored = scenarios // 20 if target.statistic == P95 else 0
    over = 0
    total = 0.0
    for scenario in range(scenarios):
        most = scenarios * limit - total if target.statistic == MEAN else limit
        values[scenario] = run_scenario(problem, decisions, target, most, scenario, timing)
        if values[scenario] >= INFEASIBLE:
            over += 1
            if over > ignored:
                return INFEASIBLE
        total += values[scenario]
    decisive = ranked(timing, scenarios, ignored)
    value = total / scenarios if target.statistic == MEAN else values[decisive]
    if decisive != scenarios - 1:
        run_scenario(problem, decisions, target, INFEASIBLE / 2, decisive, timing)
    return value


def ranked(timing: CandidateTiming, scenarios: int, larger: int) -> int:
    """The scenario than whose value so many others are larger."""
    values = timing.more.values
    for scenario in range(scenarios):
        above = 0
        for other in range(scenarios):
            if values[other] > values[scenario] or (values[other] == values[scenario] and other < scenario):
                above += 1
        if above == larger:
            return scenario
    return 0


def run_scenario(
    problem: FlatProblem, decisions: Decisions, target: Target, limit: float, scenario: int, timing: CandidateTiming
) -> float:
    """The value in one scenario; ``INFEASIBLE`` if it must be more than ``limit``."""
    begin(problem, timing)
    begin_wide(problem, timing)
    ranks = len(problem.work)
    waiting_to_run = ranks
    unfinished = ranks
    longest = 0.0
    total = 0.0
    while waiting_to_run > 0:
        rank = timing.stack[waiting_to_run - 1]
        waiting_to_run = run_rank(problem, decisions, target.span, limit, scenario, rank, waiting_to_run - 1, timing)
        if waiting_to_run == STUCK:
            return INFEASIBLE
        if timing.cursor[rank] == problem.offsets[rank + 1]:
            unfinished -= 1
            run_rest(problem, decisions, scenario, rank, timing)
            duration = timing.clock[rank] - timing.begin[rank]
            longest = max(longest, duration)
            total += duration
    return INFEASIBLE if unfinished > 0 else longest + target.spread * total / ranks


def begin_wide(problem: FlatProblem, timing: CandidateTiming) -> None:
    """Set what only wide problems have to before the first op."""
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


@inlined
def run_rank(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    scenario: int,
    rank: int,
    top: int,
    timing: CandidateTiming,
) -> int:
    """Run a rank until it waits for another or is done; ``top`` ranks stand on the stack, and how many then do is returned.

    ``STUCK`` if the candidate turns out to deadlock on this rank, not to fit, or to end later than ``limit``.
    """
    more = problem.more
    wide = timing.more
    stop = problem.offsets[rank + 1]
    may_run_full = len(decisions.full) > 0
    decides_mode = len(decisions.mode) > 0
    nominal = scenario == NOMINAL
    factors = 3 * len(timing.finish) * scenario
    quickest = 1.0 if nominal else more.least_factor[len(problem.work) * scenario + rank]
    place = timing.cursor[rank]
    while place < stop:
        # When the op's input is there, how long it takes, and what it adds.
        timing.cursor[rank] = place
        op_class = decisions.order[place]
        op = problem.first[op_class] + timing.done[op_class]
        cause = 1
        arrival = input_at(problem, op_class, timing)
        if arrival == NOT_THERE:
            return STUCK if wait_for(problem, problem.source[op_class], rank, timing) else top
        full = may_run_full and decisions.full[op] == 1
        time = problem.full_time[op_class] if full else problem.time[op_class]
        growth = growth_of(problem, decisions, op_class, op, full, decides_mode)

        # The next op too, where both run overlapped: they start when both inputs are there, and end together.
        partner = -1
        forward_or_alone = op
        backward = op_class
        if decisions.joined[place] == 1 and place + 1 < stop and (op_class + decisions.order[place + 1]) % 2 == 1:
            partner = decisions.order[place + 1]
            other = input_at(problem, partner, timing)
            if other == NOT_THERE:
                return STUCK if wait_for(problem, problem.source[partner], rank, timing) else top
            if other > arrival:
                arrival = other
                cause = 2
            op = problem.first[partner] + timing.done[partner]
            full = may_run_full and decisions.full[op] == 1
            other_time = problem.full_time[partner] if full else problem.time[partner]
            time = time_together(problem, op_class, time, partner, other_time)
            growth = growth_together(op_class, growth, growth_of(problem, decisions, partner, op, full, decides_mode))
            if partner % 2 == 1:
                backward = partner
            else:
                forward_or_alone = op
        # A scenario stretches a pair by the factor of its forward.
        stretch = 1.0 if nominal else more.factors[factors + forward_or_alone]

        # What the backward needs first, its R or its RELOAD: how long that takes, and what it adds.
        again = 0.0
        extra = 0.0
        mode = KEPT
        forward_op = -1
        if decides_mode and backward % 2 == 1:
            forward_op = problem.first[backward - 1] + mirrored(timing.done[backward], problem.slices)
            mode = decisions.mode[forward_op]
            if mode == RECOMPUTED:
                again = recomputing_time(problem, backward, scenario, timing)
                extra = problem.growth[backward - 1] - more.recompute_keeps[backward - 1]
            elif mode == OFFLOADED and wide.returned[forward_op] < 0:
                extra = more.offloaded[backward - 1]
            elif mode == OFFLOADED and wide.returned[forward_op] > arrival:
                arrival = wide.returned[forward_op]
                cause = 0
        room = problem.limit[rank] - (extra + max(growth, 0.0) if extra > 0 else growth)

        # Before it: weight backwards, copies to the host, and copies back.
        if timing.owed[rank] > 0:
            run_owed(problem, decisions, scenario, rank, place, room, arrival, again, timing)
        else:
            timing.weights[place] = 0
        if decides_mode:
            must_leave = forward_op if mode == OFFLOADED else -1
            make_room(problem, rank, place, nominal, room, must_leave, timing)
        if timing.held[rank] > room and nominal:
            return STUCK
        if decides_mode:
            last = place if partner < 0 else place + 1
            # What the op itself frees is free only behind it.
            beside = problem.limit[rank] - extra - max(growth, 0.0) - timing.held[rank]
            count = -1 if nominal else wide.reloads[place]
            fetched = fetch(problem, decisions, rank, place, last, count, beside, timing.clock[rank], timing)
            timing.held[rank] += fetched + extra if mode == RECOMPUTED else fetched
            if mode == OFFLOADED and wide.returned[forward_op] > arrival:
                arrival = wide.returned[forward_op]
                cause = 0

        # It starts, behind its R. The rank's remaining work says already how early it can be done.
        clock = timing.clock[rank] + again
        timing.waited[place] = 0
        if arrival > clock:
            clock = arrival
            timing.waited[place] = cause
        if place == problem.offsets[rank]:
            timing.begin[rank] = clock * span
        if clock + timing.left[rank] * quickest - timing.begin[rank] > limit:
            return STUCK
        clock += time * stretch
        timing.clock[rank] = clock

        # It ends, and with it the op that it overlaps with. Of two results on one link the forward's goes first.
        if partner < 0:
            top = end_op(problem, decisions, rank, place, op_class, sent(problem, op_class, clock, timing), top, timing)
        else:
            top = end_pair(problem, decisions, rank, place, top, timing)
            place += 1
        place += 1
    timing.cursor[rank] = place
    return top


@inlined
def recomputing_time(problem: FlatProblem, backward: int, scenario: int, timing: CandidateTiming) -> float:
    """Return how long the R of a class's next backward takes."""
    time: float = problem.more.recomputing[backward]
    if scenario != NOMINAL:
        ops = len(timing.finish)
        op = problem.first[backward] + timing.done[backward]
        time *= problem.more.factors[3 * ops * scenario + 2 * ops + op]
    return time


@inlined
def run_owed(
    problem: FlatProblem,
    decisions: Decisions,
    scenario: int,
    rank: int,
    place: int,
    room: float,
    arrival: float,
    again: float,
    timing: CandidateTiming,
) -> None:
    """Run the owed weight backwards that come before the op at a place: those of the nominal run, or as its rules say.

    ``room`` is what the rank may hold then, ``arrival`` when the op's input is there, and ``again`` how long its R takes.
    """
    wide = timing.more
    ops = len(timing.finish)
    share = ops // len(problem.rank)
    pending = timing.pending[rank]
    owed = timing.owed[rank]
    clock = timing.clock[rank]
    held = timing.held[rank]
    left = timing.left[rank]
    weights = 0
    while owed > 0:
        if scenario == NOMINAL:
            # The W owed the longest, or the one that is preferred.
            slot = wide.begun[rank]
            pending = next_owed(timing.owes, pending)
            chosen = pending
            fills = True
            if len(decisions.prefer) > 0 and decisions.prefer[slot] != 0:
                fills = decisions.prefer[slot] > 0
                preferred = abs(decisions.prefer[slot]) - 1
                chosen = preferred_owed(decisions.order, timing.owes, pending, place, preferred)
            weight = decisions.order[chosen]
            end = clock + problem.weight_time[weight]
            lacking = held > room
            if lacking and len(decisions.mode) > 0:
                lacking = held - free_at_once(problem, rank, max(clock, arrival), share, timing) > room
            if not runs_before(weights < decisions.forced[place], lacking, end, arrival - again if fills else -1.0):
                break
            timing.owes[chosen] = 0
            wide.ran[slot] = wide.op_at[chosen]
            clock = end
        else:
            # As many Ws as in the nominal run, and the same.
            if weights == timing.weights[place]:
                break
            ran = wide.ran[wide.begun[rank]]
            weight = ran // share
            clock += problem.weight_time[weight] * problem.more.factors[3 * ops * scenario + ops + ran]
        held += problem.weight_growth[weight]
        left -= problem.weight_time[weight]
        owed -= 1
        weights += 1
        wide.begun[rank] += 1
    timing.weights[place] = weights
    timing.pending[rank] = pending
    timing.owed[rank] = owed
    timing.clock[rank] = clock
    timing.held[rank] = held
    timing.left[rank] = left


@inlined
def make_room(
    problem: FlatProblem, rank: int, place: int, nominal: bool, room: float, must_leave: int, timing: CandidateTiming
) -> None:
    """Give OFFLOADs their place before the op at a place: until it fits, and the forward ``must_leave`` is away."""
    wide = timing.more
    share = len(timing.finish) // len(problem.rank)
    offloads = 0
    while wide.left_in[rank] < wide.queued[rank]:
        if nominal:
            is_away = must_leave < 0 or wide.gone[must_leave] == 1
            if timing.held[rank] <= room and is_away:
                break
        elif offloads == wide.offloads[place]:
            break
        away = place_offload(rank, timing)
        timing.clock[rank] = max(timing.clock[rank], wide.copied[away])
        timing.held[rank] -= problem.more.offloaded[away // share]
        offloads += 1
    wide.offloads[place] = offloads


@inlined
def end_op(
    problem: FlatProblem,
    decisions: Decisions,
    rank: int,
    place: int,
    op_class: int,
    arrives: float,
    top: int,
    timing: CandidateTiming,
) -> int:
    """End the op at a place, whose result is there at ``arrives``; return how many ranks then stand on the stack."""
    decides_mode = len(decisions.mode) > 0
    op = problem.first[op_class] + timing.done[op_class]
    timing.owes[place] = 0
    if len(decisions.full) > 0 and decisions.full[op] == 1:
        timing.held[rank] += problem.full_growth[op_class]
        timing.left[rank] -= problem.full_time[op_class]
    else:
        timing.held[rank] += growth_of(problem, decisions, op_class, op, False, decides_mode)
        timing.left[rank] -= problem.time[op_class]
        if problem.weight_time[op_class] >= 0:
            timing.owes[place] = 1
            timing.owed[rank] += 1
    if decides_mode and op_class % 2 == 0 and decisions.mode[op] == OFFLOADED:
        queue_copy(problem, rank, op_class, op, timing.clock[rank], timing)
    timing.finish[op] = arrives
    timing.position[op] = place
    timing.more.op_at[place] = op
    timing.done[op_class] += 1
    if timing.waiting[op_class] == 1:
        timing.waiting[op_class] = 0
        timing.stack[top] = problem.consumer[op_class]
        top += 1
    return top


def end_pair(
    problem: FlatProblem, decisions: Decisions, rank: int, place: int, top: int, timing: CandidateTiming
) -> int:
    """End the op at a place and the next one, which overlap; return how many ranks then stand on the stack."""
    clock = timing.clock[rank]
    first = decisions.order[place]
    second = decisions.order[place + 1]
    if first % 2 == 0:
        first_arrives = sent(problem, first, clock, timing)
        second_arrives = sent(problem, second, clock, timing)
    else:
        second_arrives = sent(problem, second, clock, timing)
        first_arrives = sent(problem, first, clock, timing)
    timing.weights[place + 1] = 0
    timing.waited[place + 1] = 0
    if len(decisions.mode) > 0:
        timing.more.offloads[place + 1] = 0
        timing.more.reloads[place + 1] = 0
    top = end_op(problem, decisions, rank, place, first, first_arrives, top, timing)
    return end_op(problem, decisions, rank, place + 1, second, second_arrives, top, timing)


@inlined
def input_at(problem: FlatProblem, op_class: int, timing: CandidateTiming) -> float:
    """When the input of a class's next op is there: 0 where it needs none, ``NOT_THERE`` where it has not been made."""
    source = problem.source[op_class]
    if source < 0:
        return 0.0
    index = timing.done[op_class]
    if source == op_class - 1 and op_class % 2 == 1:
        index = mirrored(index, problem.slices)
    if timing.done[source] <= index:
        return NOT_THERE
    arrival: float = timing.finish[problem.first[source] + index]
    return arrival


@inlined
def growth_of(
    problem: FlatProblem, decisions: Decisions, op_class: int, op: int, full: bool, decides_mode: bool
) -> float:
    """What an op adds to what its rank holds, its R or RELOAD done."""
    growth: float = problem.full_growth[op_class] if full else problem.growth[op_class]
    if decides_mode and op_class % 2 == 0 and decisions.mode[op] == RECOMPUTED:
        growth = problem.more.recompute_keeps[op_class]
    return growth


@inlined
def sent(problem: FlatProblem, op_class: int, end: float, timing: CandidateTiming) -> float:
    """When the result of an op that ends now is where it is needed: where links are contended, once its link is free."""
    link = problem.more.link[op_class]
    if link >= 0:
        end = max(timing.more.link_free[link], end)
    arrival: float = end + problem.more.sending[op_class]
    if link >= 0:
        timing.more.link_free[link] = arrival
    return arrival


def run_rest(problem: FlatProblem, decisions: Decisions, scenario: int, rank: int, timing: CandidateTiming) -> None:
    """Run the weight backwards that a rank still owes after its last op."""
    wide = timing.more
    ops = len(timing.finish)
    stop = problem.offsets[rank + 1]
    for _ in range(timing.owed[rank]):
        slot = wide.begun[rank]
        if scenario == NOMINAL:
            chosen = next_owed(timing.owes, timing.pending[rank])
            timing.pending[rank] = chosen
            if len(decisions.prefer) > 0 and decisions.prefer[slot] != 0:
                chosen = preferred_owed(decisions.order, timing.owes, chosen, stop, abs(decisions.prefer[slot]) - 1)
            timing.owes[chosen] = 0
            wide.ran[slot] = wide.op_at[chosen]
            timing.clock[rank] += problem.weight_time[decisions.order[chosen]]
        else:
            ran = wide.ran[slot]
            weight = ran // (ops // len(problem.rank))
            timing.clock[rank] += problem.weight_time[weight] * problem.more.factors[3 * ops * scenario + ops + ran]
        wide.begun[rank] += 1
