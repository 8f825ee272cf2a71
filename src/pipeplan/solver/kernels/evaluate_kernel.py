"""The hot loops of the search: timing one candidate, and annealing over many of them.

A candidate says, per rank, in which order it runs its forwards and input backwards. It names *classes*: class ``2 * s`` is
the forward of stage s (stages of further model copies count on), class ``2 * s + 1`` its backward. The k-th time that a
class occurs is its k-th microbatch, since microbatches are alike. A backward runs whole, or only its input half does and
the weight half is owed. Weight backwards are not in the order: first in first out, they are placed by rule: those that the
candidate forces before an op, those without which the op would not fit into memory, and those that fit into the wait for
what the op needs. The rest follows the last op.
"""

from pipeplan.solver.kernels.arrays import Floats, Ints, Journal, Plan, Progress, Scratch, Shop

INFEASIBLE = 1e300
"""The value of a candidate that deadlocks, does not fit into memory, or is above the limit given."""

MODULUS = 2147483647
MULTIPLIER = 48271
"""Park and Miller's generator: its products fit into 64 bits, so it gives the same numbers compiled or not."""


def evaluate(shop: Shop, plan: Plan, span: int, spread: float, limit: float, scratch: Scratch) -> float:
    """The makespan of a plan, or with ``span`` 1 its longest span; ``INFEASIBLE`` if that must be more than ``limit``.

    ``spread`` times the mean of that over the ranks is added, so that of two plans that are equal the one that leaves more
    ranks early is the better. Ranks run their rows in order, each until it needs a result that is not there; the rank that
    makes it wakes it. Every op is visited once, so the time is linear in the ops.
    """
    ranks = len(shop.work)
    for item in range(len(shop.rank)):
        scratch.done[item] = 0
        scratch.waiting[item] = 0
    for rank in range(ranks):
        scratch.cursor[rank] = shop.offsets[rank]
        scratch.pending[rank] = shop.offsets[rank]
        scratch.owed[rank] = 0
        scratch.clock[rank] = 0.0
        scratch.held[rank] = 0.0
        scratch.left[rank] = shop.work[rank]
        scratch.stack[rank] = ranks - 1 - rank
    top = ranks
    unfinished = ranks
    longest = 0.0
    total = 0.0
    chooses = len(plan.whole) > 0
    while top > 0:
        top -= 1
        rank = scratch.stack[top]
        start = shop.offsets[rank]
        stop = shop.offsets[rank + 1]
        place = scratch.cursor[rank]
        pending = scratch.pending[rank]
        owed = scratch.owed[rank]
        clock = scratch.clock[rank]
        held = scratch.held[rank]
        left = scratch.left[rank]
        while place < stop:
            item = plan.order[place]
            index = scratch.done[item]
            source = shop.source[item]
            arrival = 0.0
            cause = 1
            if source >= 0:
                if scratch.done[source] <= index:
                    if shop.rank[source] == rank:
                        return INFEASIBLE
                    scratch.waiting[source] = 1
                    break
                arrival = scratch.finish[shop.first[source] + index] + shop.delay[item]
            time = shop.time[item]
            growth = shop.change[item]
            if chooses and plan.whole[shop.first[item] + index] == 1:
                time = shop.whole_time[item]
                growth = shop.whole_change[item]
            partner = -1
            if plan.joined[place] == 1 and place + 1 < stop and (item + plan.order[place + 1]) % 2 == 1:
                partner = plan.order[place + 1]
                source = shop.source[partner]
                if source >= 0:
                    if scratch.done[source] <= scratch.done[partner]:
                        if shop.rank[source] == rank:
                            return INFEASIBLE
                        scratch.waiting[source] = 1
                        break
                    other = scratch.finish[shop.first[source] + scratch.done[partner]] + shop.delay[partner]
                    if other > arrival:
                        arrival = other
                        cause = 2
                other_time = shop.time[partner]
                other_growth = shop.change[partner]
                if chooses and plan.whole[shop.first[partner] + scratch.done[partner]] == 1:
                    other_time = shop.whole_time[partner]
                    other_growth = shop.whole_change[partner]
                # The forward takes its memory first; an I may add to that.
                forward = item if item % 2 == 0 else partner
                time = max(shop.overlap[forward], time, other_time)
                growth = max(shop.change[forward], growth + other_growth)
            room = shop.cap[rank] - growth
            weights = 0
            while owed > 0:
                while scratch.owes[pending] == 0:
                    pending += 1
                weight = plan.order[pending]
                after = clock + shop.weight_time[weight]
                if weights >= plan.forced[place] and held <= room and after > arrival:
                    break
                clock = after
                held += shop.weight_change[weight]
                left -= shop.weight_time[weight]
                owed -= 1
                pending += 1
                weights += 1
            if held > room:
                return INFEASIBLE
            scratch.weights[place] = weights
            scratch.waited[place] = 0
            if arrival > clock:
                clock = arrival
                scratch.waited[place] = cause
            if place == start:
                scratch.begin[rank] = clock * span
            if clock + left - scratch.begin[rank] > limit:
                return INFEASIBLE
            clock += time
            while True:
                op = shop.first[item] + index
                scratch.owes[place] = 0
                if chooses and plan.whole[op] == 1:
                    held += shop.whole_change[item]
                    left -= shop.whole_time[item]
                else:
                    held += shop.change[item]
                    left -= shop.time[item]
                    if shop.weight_time[item] >= 0:
                        scratch.owes[place] = 1
                        owed += 1
                scratch.finish[op] = clock
                scratch.position[op] = place
                scratch.done[item] = index + 1
                if scratch.waiting[item] == 1:
                    scratch.waiting[item] = 0
                    scratch.stack[top] = shop.consumer[item]
                    top += 1
                place += 1
                if partner < 0:
                    break
                item = partner
                index = scratch.done[item]
                scratch.weights[place] = 0
                scratch.waited[place] = 0
                partner = -1
        scratch.cursor[rank] = place
        if place == stop:
            unfinished -= 1
            while owed > 0:
                if scratch.owes[pending] == 1:
                    clock += shop.weight_time[plan.order[pending]]
                    owed -= 1
                pending += 1
            longest = max(longest, clock - scratch.begin[rank])
            total += clock - scratch.begin[rank]
        scratch.pending[rank] = pending
        scratch.owed[rank] = owed
        scratch.clock[rank] = clock
        scratch.held[rank] = held
        scratch.left[rank] = left
    return INFEASIBLE if unfinished > 0 else longest + spread * total / ranks


def trace(shop: Shop, plan: Plan, scratch: Scratch, critical: Ints) -> None:
    """Write the positions of the longest chain of a plan that has just been timed, the last one first, and their number.

    From the end of the rank that is done last back to a start: an op that waited was held up by its source, any other by
    the op before it on its rank.
    """
    last = 0
    for rank in range(1, len(shop.work)):
        if scratch.clock[rank] - scratch.begin[rank] > scratch.clock[last] - scratch.begin[last]:
            last = rank
    place = shop.offsets[last + 1] - 1
    count = 0
    while True:
        count += 1
        critical[count] = place
        if scratch.waited[place] > 0:
            place += scratch.waited[place] - 1
            item = plan.order[place]
            index = index_of(plan.order, shop.offsets[shop.rank[item]], place)
            place = scratch.position[shop.first[shop.source[item]] + index]
        elif place == shop.offsets[shop.rank[plan.order[place]]]:
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
    shop: Shop,
    order: Ints,
    place: int,
    distance: int,
    stages: int,
    microbatches: int,
    journal: Journal,
) -> int:
    """Shift an op along its row, with those of the stages and microbatches around it, and return how many moved.

    Its microbatch is shifted on ``stages`` stages, from its own towards where it came from, and with it the microbatches
    that follow.
    """
    item = order[place]
    index = index_of(order, shop.offsets[shop.rank[item]], place)
    moves = 0
    for _ in range(stages):
        start = shop.offsets[shop.rank[item]]
        stop = shop.offsets[shop.rank[item] + 1]
        for turn in range(microbatches):
            which = index + (turn if distance < 0 else microbatches - 1 - turn)
            place = find(order, start, stop, item, which)
            if place >= 0:
                target = shifted(order, start, stop, place, distance)
                if target != place:
                    rotate(order, place, target)
                    journal.place[moves] = place
                    journal.target[moves] = target
                    moves += 1
        item = shop.source[item]
        if item < 0:
            break
    return moves


def toggle(whole: Ints, first: int, count: int) -> None:
    """Turn so many backwards, from ``first`` on, from whole into halves or back."""
    for op in range(first, first + count):
        whole[op] = 1 - whole[op]


def anneal(
    shop: Shop,
    span: int,
    spread: float,
    evaluations: int,
    cooling: float,
    reach: Ints,
    waits: Floats,
    plan: Plan,
    best: Plan,
    progress: Progress,
    journal: Journal,
    scratch: Scratch,
) -> None:
    """Simulated annealing of a plan for a number of steps; the best plan seen goes to ``best``.

    A step starts at any op, or in ``reach[4]`` of 16 cases at one of the longest chain. It changes the number of weight
    backwards forced before the op; or joins or parts it and the next, where ``reach[3]`` says that overlapping gains
    anything; or makes its backward whole or halves it, with those of up to ``reach[2]`` microbatches, where ``reach[5]``
    says that this can gain; or shifts it by up to ``reach[0]`` places, on up to ``reach[1]`` stages, for up to ``reach[2]``
    microbatches. It is accepted if the value grows by no more than the temperature times an exponential variate, drawn from
    the quantiles ``waits``; so the evaluation can stop as soon as a rank must be later than that. The temperature falls by
    the factor ``cooling`` a step.
    """
    positions = len(plan.order)
    share = positions // len(shop.rank)
    random = progress.random
    for _ in range(evaluations):
        progress.temperature[0] *= cooling
        if progress.critical[0] > 0 and draw(random, 16) < reach[4]:
            place = progress.critical[1 + draw(random, progress.critical[0])]
        else:
            place = draw(random, positions)
        choice = draw(random, 16)
        moves = 0
        added = 0
        flipped = 0
        turned = 0
        toggled = 0
        if choice < 3:
            added = 1 if plan.forced[place] == 0 or draw(random, 3) == 0 else -1
            plan.forced[place] += added
        elif choice < 6 and reach[3] == 1:
            flipped = 1 - 2 * plan.joined[place]
            plan.joined[place] += flipped
        elif choice < 9 and reach[5] == 1:
            item = plan.order[place]
            index = index_of(plan.order, shop.offsets[shop.rank[item]], place)
            toggled = min(extent(random, reach[2]), share - index)
            turned = shop.first[item + 1 - item % 2] + index
            toggle(plan.whole, turned, toggled)
        else:
            distance = extent(random, reach[0])
            if draw(random, 2) == 0:
                distance = -distance
            stages = extent(random, reach[1]) if choice >= 10 else 1
            microbatches = extent(random, reach[2]) if choice >= 13 else 1
            moves = shift(shop, plan.order, place, distance, stages, microbatches, journal)
            if moves == 0:
                continue
        limit = progress.value[0] + progress.temperature[0] * waits[draw(random, len(waits))]
        value = evaluate(shop, plan, span, spread, limit, scratch)
        if value > limit:
            plan.forced[place] -= added
            plan.joined[place] -= flipped
            toggle(plan.whole, turned, toggled)
            for step in range(moves - 1, -1, -1):
                rotate(plan.order, journal.target[step], journal.place[step])
            continue
        progress.value[0] = value
        if reach[4] > 0:
            trace(shop, plan, scratch, progress.critical)
        if value < progress.value[1]:
            progress.value[1] = value
            for position in range(positions):
                best.order[position] = plan.order[position]
                best.forced[position] = plan.forced[position]
                best.joined[position] = plan.joined[position]
            for op in range(len(plan.whole)):
                best.whole[op] = plan.whole[op]
