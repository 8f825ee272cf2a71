"""The hot loops of the search: timing one candidate, and annealing over many of them.

A candidate says, per rank, in which order it runs its forwards and input backwards. It names *classes*: class ``2 * s`` is
the forward of stage s (stages of further model copies count on), class ``2 * s + 1`` its backward. The k-th time that a
class occurs is its k-th microbatch, since microbatches are alike. A backward runs in full, or only its input half does and
the weight half is owed. Weight backwards are not in the order: first in first out, they are placed by rule: those that the
candidate forces before an op, those without which the op would not fit into memory, and those that fit into the wait for
what the op needs. The rest follows the last op.
"""

from pipeplan.model import Floats, Ints
from pipeplan.solver.kernels.arrays import AnnealingState, Change, Decisions, FlatProblem, Timing

INFEASIBLE = 1e300
"""The value of a candidate that deadlocks, does not fit into memory, or is above the limit given."""

MODULUS = 2147483647
MULTIPLIER = 48271
"""Park and Miller's generator: its products fit into 64 bits, so it gives the same numbers compiled or not."""


def evaluate(
    problem: FlatProblem, decisions: Decisions, span: int, spread: float, limit: float, timing: Timing
) -> float:
    """The makespan of a candidate, or with ``span`` 1 its longest span; ``INFEASIBLE`` if that must be more than ``limit``.

    ``spread`` times the mean of that over the ranks is added, so that of two plans that are equal the one that leaves more
    ranks early is the better. Ranks run their rows in order, each until it needs a result that is not there; the rank that
    makes it wakes it. Every op is visited once, so the time is linear in the ops.
    """
    ranks = len(problem.work)
    for item in range(len(problem.rank)):
        timing.done[item] = 0
        timing.waiting[item] = 0
    for rank in range(ranks):
        timing.cursor[rank] = problem.offsets[rank]
        timing.pending[rank] = problem.offsets[rank]
        timing.owed[rank] = 0
        timing.clock[rank] = 0.0
        timing.held[rank] = 0.0
        timing.left[rank] = problem.work[rank]
        timing.stack[rank] = ranks - 1 - rank
    top = ranks
    unfinished = ranks
    longest = 0.0
    total = 0.0
    may_run_full = len(decisions.full) > 0
    while top > 0:
        top -= 1
        rank = timing.stack[top]
        start = problem.offsets[rank]
        stop = problem.offsets[rank + 1]
        place = timing.cursor[rank]
        pending = timing.pending[rank]
        owed = timing.owed[rank]
        clock = timing.clock[rank]
        held = timing.held[rank]
        left = timing.left[rank]
        while place < stop:
            item = decisions.order[place]
            index = timing.done[item]
            source = problem.source[item]
            arrival = 0.0
            cause = 1
            if source >= 0:
                if timing.done[source] <= index:
                    if problem.rank[source] == rank:
                        return INFEASIBLE
                    timing.waiting[source] = 1
                    break
                arrival = timing.finish[problem.first[source] + index] + problem.delay[item]
            time = problem.time[item]
            growth = problem.change[item]
            if may_run_full and decisions.full[problem.first[item] + index] == 1:
                time = problem.full_time[item]
                growth = problem.full_change[item]
            partner = -1
            if decisions.joined[place] == 1 and place + 1 < stop and (item + decisions.order[place + 1]) % 2 == 1:
                partner = decisions.order[place + 1]
                source = problem.source[partner]
                if source >= 0:
                    if timing.done[source] <= timing.done[partner]:
                        if problem.rank[source] == rank:
                            return INFEASIBLE
                        timing.waiting[source] = 1
                        break
                    other = timing.finish[problem.first[source] + timing.done[partner]] + problem.delay[partner]
                    if other > arrival:
                        arrival = other
                        cause = 2
                other_time = problem.time[partner]
                other_growth = problem.change[partner]
                if may_run_full and decisions.full[problem.first[partner] + timing.done[partner]] == 1:
                    other_time = problem.full_time[partner]
                    other_growth = problem.full_change[partner]
                # The forward takes its memory first; an I may add to that.
                forward = item if item % 2 == 0 else partner
                time = max(problem.overlap[forward], time, other_time)
                growth = max(problem.change[forward], growth + other_growth)
            room = problem.cap[rank] - growth
            weights = 0
            while owed > 0:
                while timing.owes[pending] == 0:
                    pending += 1
                weight = decisions.order[pending]
                after = clock + problem.weight_time[weight]
                if weights >= decisions.forced[place] and held <= room and after > arrival:
                    break
                clock = after
                held += problem.weight_change[weight]
                left -= problem.weight_time[weight]
                owed -= 1
                pending += 1
                weights += 1
            if held > room:
                return INFEASIBLE
            timing.weights[place] = weights
            timing.waited[place] = 0
            if arrival > clock:
                clock = arrival
                timing.waited[place] = cause
            if place == start:
                timing.begin[rank] = clock * span
            if clock + left - timing.begin[rank] > limit:
                return INFEASIBLE
            clock += time
            while True:
                op = problem.first[item] + index
                timing.owes[place] = 0
                if may_run_full and decisions.full[op] == 1:
                    held += problem.full_change[item]
                    left -= problem.full_time[item]
                else:
                    held += problem.change[item]
                    left -= problem.time[item]
                    if problem.weight_time[item] >= 0:
                        timing.owes[place] = 1
                        owed += 1
                timing.finish[op] = clock
                timing.position[op] = place
                timing.done[item] = index + 1
                if timing.waiting[item] == 1:
                    timing.waiting[item] = 0
                    timing.stack[top] = problem.consumer[item]
                    top += 1
                place += 1
                if partner < 0:
                    break
                item = partner
                index = timing.done[item]
                timing.weights[place] = 0
                timing.waited[place] = 0
                partner = -1
        timing.cursor[rank] = place
        if place == stop:
            unfinished -= 1
            while owed > 0:
                if timing.owes[pending] == 1:
                    clock += problem.weight_time[decisions.order[pending]]
                    owed -= 1
                pending += 1
            longest = max(longest, clock - timing.begin[rank])
            total += clock - timing.begin[rank]
        timing.pending[rank] = pending
        timing.owed[rank] = owed
        timing.clock[rank] = clock
        timing.held[rank] = held
        timing.left[rank] = left
    return INFEASIBLE if unfinished > 0 else longest + spread * total / ranks


def trace(problem: FlatProblem, decisions: Decisions, timing: Timing, critical: Ints) -> None:
    """Write the positions of the longest chain of a candidate just timed, the last one first, after their number.

    From the end of the rank that is done last back to a start: an op that waited was held up by its source, any other by
    the op before it on its rank.
    """
    last = 0
    for rank in range(1, len(problem.work)):
        if timing.clock[rank] - timing.begin[rank] > timing.clock[last] - timing.begin[last]:
            last = rank
    place = problem.offsets[last + 1] - 1
    count = 0
    while True:
        count += 1
        critical[count] = place
        if timing.waited[place] > 0:
            place += timing.waited[place] - 1
            item = decisions.order[place]
            index = index_of(decisions.order, problem.offsets[problem.rank[item]], place)
            place = timing.position[problem.first[problem.source[item]] + index]
        elif place == problem.offsets[problem.rank[decisions.order[place]]]:
            break
        else:
            place -= 1
    critical[0] = count


def draw(random: Ints, below: int) -> int:
    """The next random number from 0 to ``below - 1``."""
    state: int = random[0] * MULTIPLIER % MODULUS
    random[0] = state
    return state % below


def extent(random: Ints, most: int) -> int:
    """A random number from 1 to ``most``, small ones more often: half of the time 1."""
    if most <= 1 or draw(random, 2) == 0:
        return 1
    return 1 + draw(random, 1 + draw(random, most))


def rotate(order: Ints, place: int, target: int) -> None:
    """Move one op to another place of its row; those between move up."""
    item = order[place]
    step = 1 if target > place else -1
    while place != target:
        order[place] = order[place + step]
        place += step
    order[place] = item


def find(order: Ints, start: int, stop: int, item: int, index: int) -> int:
    """Where a class stands in a row for the ``index``-th time, or -1."""
    for place in range(start, stop):
        if order[place] == item:
            if index == 0:
                return place
            index -= 1
    return -1


def index_of(order: Ints, start: int, place: int) -> int:
    """How many ops of the same class stand before an op in its row."""
    count = 0
    for other in range(start, place):
        if order[other] == order[place]:
            count += 1
    return count


def shifted(order: Ints, start: int, stop: int, place: int, distance: int) -> int:
    """Where an op comes to stand when it passes ``distance`` ops of other classes (before it, if below 0)."""
    item = order[place]
    step = 1 if distance > 0 else -1
    target = place
    while distance != 0:
        ahead = target + step
        while start <= ahead < stop and order[ahead] == item:
            ahead += step
        if not start <= ahead < stop:
            break
        target = ahead
        distance -= step
    return target


def shift(
    problem: FlatProblem,
    order: Ints,
    place: int,
    distance: int,
    stages: int,
    microbatches: int,
    change: Change,
) -> int:
    """Shift an op along its row, with those of the stages and microbatches around it, and return how many moved.

    Its microbatch is shifted on ``stages`` stages, from its own towards where it came from, and with it the microbatches
    that follow.
    """
    item = order[place]
    index = index_of(order, problem.offsets[problem.rank[item]], place)
    moves = 0
    for _ in range(stages):
        start = problem.offsets[problem.rank[item]]
        stop = problem.offsets[problem.rank[item] + 1]
        for turn in range(microbatches):
            which = index + (turn if distance < 0 else microbatches - 1 - turn)
            place = find(order, start, stop, item, which)
            if place >= 0:
                target = shifted(order, start, stop, place, distance)
                if target != place:
                    rotate(order, place, target)
                    change.place[moves] = place
                    change.target[moves] = target
                    moves += 1
        item = problem.source[item]
        if item < 0:
            break
    return moves


def toggle(full: Ints, first: int, count: int) -> None:
    """Turn so many backwards, from ``first`` on, from full into halves or back."""
    for op in range(first, first + count):
        full[op] = 1 - full[op]


def anneal(
    problem: FlatProblem,
    span: int,
    spread: float,
    evaluations: int,
    cooling: float,
    reach: Ints,
    waits: Floats,
    decisions: Decisions,
    best: Decisions,
    state: AnnealingState,
    change: Change,
    timing: Timing,
) -> None:
    """Simulated annealing of a candidate for a number of steps; the best one seen goes to ``best``.

    A step starts at any op, or in ``reach[4]`` of 16 cases at one of the longest chain. It changes the number of weight
    backwards forced before the op; or joins or parts it and the next, where ``reach[3]`` says that overlapping gains
    anything; or makes its backward full or halves it, with those of up to ``reach[2]`` microbatches, where ``reach[5]``
    says that this can gain; or shifts it by up to ``reach[0]`` places, on up to ``reach[1]`` stages, for up to ``reach[2]``
    microbatches. It is accepted if the value grows by no more than the temperature times an exponential variate, drawn from
    the quantiles ``waits``; so the evaluation can stop as soon as a rank must be later than that. The temperature falls by
    the factor ``cooling`` a step.
    """
    positions = len(decisions.order)
    share = positions // len(problem.rank)
    random = state.random
    for _ in range(evaluations):
        state.temperature[0] *= cooling
        if state.critical[0] > 0 and draw(random, 16) < reach[4]:
            place = state.critical[1 + draw(random, state.critical[0])]
        else:
            place = draw(random, positions)
        choice = draw(random, 16)
        moves = 0
        added = 0
        flipped = 0
        turned = 0
        toggled = 0
        if choice < 3:
            added = 1 if decisions.forced[place] == 0 or draw(random, 3) == 0 else -1
            decisions.forced[place] += added
        elif choice < 6 and reach[3] == 1:
            flipped = 1 - 2 * decisions.joined[place]
            decisions.joined[place] += flipped
        elif choice < 9 and reach[5] == 1:
            item = decisions.order[place]
            index = index_of(decisions.order, problem.offsets[problem.rank[item]], place)
            toggled = min(extent(random, reach[2]), share - index)
            turned = problem.first[item + 1 - item % 2] + index
            toggle(decisions.full, turned, toggled)
        else:
            distance = extent(random, reach[0])
            if draw(random, 2) == 0:
                distance = -distance
            stages = extent(random, reach[1]) if choice >= 10 else 1
            microbatches = extent(random, reach[2]) if choice >= 13 else 1
            moves = shift(problem, decisions.order, place, distance, stages, microbatches, change)
            if moves == 0:
                continue
        limit = state.value[0] + state.temperature[0] * waits[draw(random, len(waits))]
        value = evaluate(problem, decisions, span, spread, limit, timing)
        if value > limit:
            decisions.forced[place] -= added
            decisions.joined[place] -= flipped
            toggle(decisions.full, turned, toggled)
            for step in range(moves - 1, -1, -1):
                rotate(decisions.order, change.target[step], change.place[step])
            continue
        state.value[0] = value
        if reach[4] > 0:
            trace(problem, decisions, timing, state.critical)
        if value < state.value[1]:
            state.value[1] = value
            for position in range(positions):
                best.order[position] = decisions.order[position]
                best.forced[position] = decisions.forced[position]
                best.joined[position] = decisions.joined[position]
            for op in range(len(decisions.full)):
                best.full[op] = decisions.full[op]
