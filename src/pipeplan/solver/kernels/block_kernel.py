"""The hot loops of building blocks: repeating a block for every microbatch, and annealing the block itself.

A block says when the ops of the first microbatch are due, and when those of the others follow. Repeating it means that
every rank goes by a pace and does next what is due next, with these exceptions: weight backwards go into the waits, and
before what does not fit into memory; before its first backward a rank may draw forwards forward; after its last
forward it takes the backwards as they come. What comes of it is an order, which is then timed like any candidate.
"""

from pipeplan.model import Floats, Ints
from pipeplan.solver.kernels.arrays import AnnealingState, Block, Decisions, FlatProblem, RankClocks, Route, Timing
from pipeplan.solver.kernels.evaluate_kernel import INFEASIBLE, draw, evaluate

NEVER = 1e300

IN_TIME = 1e-12
"""Share of a time by which rounded sums may pass it."""


def due_at(first: float, index: int, period: float, group: int, inner: float) -> float:
    """When an op is due for a microbatch: groups follow each other by a period a microbatch, those in a group closer."""
    return first + index // group * group * period + index % group * inner


def repeat(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    share: int,
    period: float,
    block: Block,
    decisions: Decisions,
    clocks: RankClocks,
    timing: Timing,
) -> bool:
    """Write into ``decisions`` what comes of a block; false if it gets stuck, which only a lack of memory can bring about.

    Ranks go by the times of ``pace``, which need not be those of the problem.
    """
    for item in range(len(problem.rank)):
        timing.done[item] = 0
    for rank in range(len(problem.work)):
        clocks.wake[rank] = 0.0
        clocks.busy[rank] = 0
        clocks.backwards[rank] = 0
        timing.cursor[rank] = problem.offsets[rank]
        timing.pending[rank] = problem.offsets[rank]
        timing.owed[rank] = 0
        timing.held[rank] = 0.0
    for place in range(len(decisions.order)):
        decisions.forced[place] = 0
        decisions.joined[place] = 0
    for op in range(len(decisions.full)):
        decisions.full[op] = 0
    group = block.style[4]
    inner = block.inner[0]
    left = len(decisions.order)
    while left > 0:
        rank = 0
        for other in range(1, len(problem.work)):
            if clocks.wake[other] < clocks.wake[rank]:
                rank = other
        now = clocks.wake[rank]
        if now >= NEVER:
            return False
        clocks.busy[rank] = 0
        # Of all classes the one that is due first; of those that can run, the first forward and the first backward.
        head = forward = backward = -1
        head_due = forward_due = backward_due = NEVER
        head_ready = later = NEVER
        forwards_left = 0
        for slot in range(route.offsets[rank], route.offsets[rank + 1]):
            item = route.item[slot]
            index = timing.done[item]
            if index == share:
                continue
            forwards_left += 1 - item % 2
            source = problem.source[item]
            ready = NEVER
            if source < 0:
                ready = 0.0
            elif timing.done[source] > index:
                ready = timing.finish[problem.first[source] + index] + pace.delay[item]
            due = due_at(block.due[item], index, period, group, inner)
            if due < head_due:
                head, head_due, head_ready = item, due, ready
            if ready > now:
                later = min(later, ready)
            elif item % 2 == 0:
                if due < forward_due:
                    forward, forward_due = item, due
            elif due < backward_due:
                backward, backward_due = item, due
        if head < 0:
            clocks.wake[rank] = NEVER
            continue
        chosen = -1
        if head_ready <= now:
            chosen = head
        elif forward >= 0 and block.style[0] == 1 and clocks.backwards[rank] == 0:
            # All other forwards of the rank that are due before it keep their room.
            room = problem.cap[rank] - timing.held[rank] - problem.change[forward]
            for slot in range(route.offsets[rank], route.offsets[rank + 1]):
                item = route.item[slot]
                index = timing.done[item]
                while item % 2 == 0 and item != forward and index < share:
                    if due_at(block.due[item], index, period, group, inner) >= forward_due:
                        break
                    room -= problem.change[item]
                    index += 1
            if room >= 0:
                chosen = forward
        elif forwards_left == 0 or block.style[1] == 1:
            chosen = backward
        no_room = False
        if chosen >= 0:
            full = chosen % 2 == 1 and block.style[3] == 1
            change = problem.full_change[chosen] if full else problem.change[chosen]
            no_room = timing.held[rank] + change > problem.cap[rank]
        if timing.owed[rank] > 0 and (no_room or chosen < 0):
            while problem.weight_time[decisions.order[timing.pending[rank]]] < 0:
                timing.pending[rank] += 1
            item = decisions.order[timing.pending[rank]]
            if no_room or head_ready >= NEVER or now + pace.weight_time[item] <= head_ready * (1 + IN_TIME):
                if block.style[2] == 1 and timing.cursor[rank] < problem.offsets[rank + 1]:
                    decisions.forced[timing.cursor[rank]] += 1
                timing.pending[rank] += 1
                timing.owed[rank] -= 1
                timing.held[rank] += problem.weight_change[item]
                clocks.wake[rank] = now + pace.weight_time[item]
                clocks.busy[rank] = 1
                continue
        if no_room:
            chosen = backward
        if chosen < 0:
            clocks.wake[rank] = later
            continue
        full = chosen % 2 == 1 and block.style[3] == 1
        end = now + (pace.full_time[chosen] if full else pace.time[chosen])
        op = problem.first[chosen] + timing.done[chosen]
        timing.finish[op] = end
        timing.done[chosen] += 1
        if full:
            decisions.full[op] = 1
            timing.held[rank] += problem.full_change[chosen]
        else:
            timing.held[rank] += problem.change[chosen]
            timing.owed[rank] += 1 if problem.weight_time[chosen] >= 0 else 0
        clocks.backwards[rank] += chosen % 2
        decisions.order[timing.cursor[rank]] = chosen
        timing.cursor[rank] += 1
        left -= 1
        clocks.wake[rank] = end
        clocks.busy[rank] = 1
        follower = route.follower[chosen]
        if follower >= 0:
            other = problem.rank[follower]
            if clocks.busy[other] == 0:
                clocks.wake[other] = min(clocks.wake[other], end + pace.delay[follower])
    return True


def vary(route: Route, unit: float, rules: int, block: Block, random: Ints) -> None:
    """Change a block: how it is repeated, or when something is due: one op, those after it, or some of those after it.

    Of its style the first ``rules`` numbers may change.
    """
    choice = draw(random, 20)
    if choice == 0:
        rule = draw(random, rules)
        block.style[rule] = 1 - block.style[rule]
        return
    if choice == 1 and block.style[4] > 1:
        block.inner[0] = max(block.inner[0] + (draw(random, 2) - 0.5) * unit, 0.0)
        return
    passes = len(route.way)
    for _ in range(2 if draw(random, 3) == 0 else 1):
        start = draw(random, passes)
        amount = (1 + draw(random, 1 + draw(random, 6))) * 0.5 * unit
        if draw(random, 2) == 0:
            amount = -amount
        scope = draw(random, 3)
        stop = start + 1
        if scope == 1:
            stop = passes
        elif scope == 2:
            stop = min(passes, stop + draw(random, max(passes // 2, 1)))
        for place in range(start, stop):
            block.due[route.way[place]] += amount


def copy_block(source: Block, target: Block) -> None:
    """Copy one block onto another."""
    for item in range(len(source.due)):
        target.due[item] = source.due[item]
    for rule in range(len(source.style)):
        target.style[rule] = source.style[rule]
    target.inner[0] = source.inner[0]


def anneal_block(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    share: int,
    period: float,
    unit: float,
    span: int,
    spread: float,
    cooling: float,
    waits: Floats,
    rules: int,
    steps: int,
    block: Block,
    trial: Block,
    best: Block,
    decisions: Decisions,
    state: AnnealingState,
    clocks: RankClocks,
    timing: Timing,
) -> None:
    """Simulated annealing of a block for a number of steps; the best one seen goes to ``best``.

    As ``anneal`` of the evaluation kernel, but a step varies the block, and what comes of it is timed.
    """
    random = state.random
    for _ in range(steps):
        state.temperature[0] *= cooling
        copy_block(block, trial)
        vary(route, unit, rules, trial, random)
        if not repeat(problem, pace, route, share, period, trial, decisions, clocks, timing):
            continue
        limit = min(state.value[0] + state.temperature[0] * waits[draw(random, len(waits))], INFEASIBLE / 2)
        value = evaluate(problem, decisions, span, spread, limit, timing)
        if value > limit:
            continue
        state.value[0] = value
        copy_block(trial, block)
        if value < state.value[1]:
            state.value[1] = value
            copy_block(trial, best)
