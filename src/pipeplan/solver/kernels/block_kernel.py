"""The hot loops of building blocks: repeating a block for every microbatch, and annealing the block itself.

A block says when the ops of the first microbatch are due, and when those of the others follow. Repeating it means that
every rank goes by a clock and does next what is due next, with these exceptions: weight backwards go into the waits, and
before what does not fit into memory; before its first backward a rank may draw forwards forward; after its last
forward it takes the backwards as they come. What comes of it is an order, which is then timed like any candidate.
"""

from pipeplan.solver.kernels.arrays import Block, Floats, Ints, Lanes, Plan, Progress, Scratch, Shop, Watch
from pipeplan.solver.kernels.evaluate_kernel import INFEASIBLE, draw, evaluate

NEVER = 1e300

IN_TIME = 1e-12
"""Share of a time by which rounded sums may pass it."""


def due_at(first: float, index: int, period: float, group: int, inner: float) -> float:
    """When an op is due for a microbatch: groups follow each other by a period a microbatch, those in a group closer."""
    return first + index // group * group * period + index % group * inner


def repeat(
    shop: Shop,
    clock: Shop,
    lanes: Lanes,
    share: int,
    period: float,
    block: Block,
    plan: Plan,
    watch: Watch,
    scratch: Scratch,
) -> bool:
    """Write into ``plan`` what comes of a block; false if it gets stuck, which only a lack of memory can bring about.

    Ranks go by the times of ``clock``, which need not be those of the shop.
    """
    for item in range(len(shop.rank)):
        scratch.done[item] = 0
    for rank in range(len(shop.work)):
        watch.wake[rank] = 0.0
        watch.busy[rank] = 0
        watch.backwards[rank] = 0
        scratch.cursor[rank] = shop.offsets[rank]
        scratch.pending[rank] = shop.offsets[rank]
        scratch.owed[rank] = 0
        scratch.held[rank] = 0.0
    for place in range(len(plan.order)):
        plan.forced[place] = 0
        plan.joined[place] = 0
    for op in range(len(plan.whole)):
        plan.whole[op] = 0
    group = block.style[4]
    inner = block.inner[0]
    left = len(plan.order)
    while left > 0:
        rank = 0
        for other in range(1, len(shop.work)):
            if watch.wake[other] < watch.wake[rank]:
                rank = other
        now = watch.wake[rank]
        if now >= NEVER:
            return False
        watch.busy[rank] = 0
        # Of all classes the one that is due first; of those that can run, the first forward and the first backward.
        head = forward = backward = -1
        head_due = forward_due = backward_due = NEVER
        head_ready = later = NEVER
        forwards_left = 0
        for lane in range(lanes.offsets[rank], lanes.offsets[rank + 1]):
            item = lanes.item[lane]
            index = scratch.done[item]
            if index == share:
                continue
            forwards_left += 1 - item % 2
            source = shop.source[item]
            ready = NEVER
            if source < 0:
                ready = 0.0
            elif scratch.done[source] > index:
                ready = scratch.finish[shop.first[source] + index] + clock.delay[item]
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
            watch.wake[rank] = NEVER
            continue
        chosen = -1
        if head_ready <= now:
            chosen = head
        elif forward >= 0 and block.style[0] == 1 and watch.backwards[rank] == 0:
            # All other forwards of the rank that are due before it keep their room.
            room = shop.cap[rank] - scratch.held[rank] - shop.change[forward]
            for lane in range(lanes.offsets[rank], lanes.offsets[rank + 1]):
                item = lanes.item[lane]
                index = scratch.done[item]
                while item % 2 == 0 and item != forward and index < share:
                    if due_at(block.due[item], index, period, group, inner) >= forward_due:
                        break
                    room -= shop.change[item]
                    index += 1
            if room >= 0:
                chosen = forward
        elif forwards_left == 0 or block.style[1] == 1:
            chosen = backward
        full = False
        if chosen >= 0:
            whole = chosen % 2 == 1 and block.style[3] == 1
            change = shop.whole_change[chosen] if whole else shop.change[chosen]
            full = scratch.held[rank] + change > shop.cap[rank]
        if scratch.owed[rank] > 0 and (full or chosen < 0):
            while shop.weight_time[plan.order[scratch.pending[rank]]] < 0:
                scratch.pending[rank] += 1
            item = plan.order[scratch.pending[rank]]
            if full or head_ready >= NEVER or now + clock.weight_time[item] <= head_ready * (1 + IN_TIME):
                if block.style[2] == 1 and scratch.cursor[rank] < shop.offsets[rank + 1]:
                    plan.forced[scratch.cursor[rank]] += 1
                scratch.pending[rank] += 1
                scratch.owed[rank] -= 1
                scratch.held[rank] += shop.weight_change[item]
                watch.wake[rank] = now + clock.weight_time[item]
                watch.busy[rank] = 1
                continue
        if full:
            chosen = backward
        if chosen < 0:
            watch.wake[rank] = later
            continue
        whole = chosen % 2 == 1 and block.style[3] == 1
        end = now + (clock.whole_time[chosen] if whole else clock.time[chosen])
        op = shop.first[chosen] + scratch.done[chosen]
        scratch.finish[op] = end
        scratch.done[chosen] += 1
        if whole:
            plan.whole[op] = 1
            scratch.held[rank] += shop.whole_change[chosen]
        else:
            scratch.held[rank] += shop.change[chosen]
            scratch.owed[rank] += 1 if shop.weight_time[chosen] >= 0 else 0
        watch.backwards[rank] += chosen % 2
        plan.order[scratch.cursor[rank]] = chosen
        scratch.cursor[rank] += 1
        left -= 1
        watch.wake[rank] = end
        watch.busy[rank] = 1
        follower = lanes.follower[chosen]
        if follower >= 0:
            other = shop.rank[follower]
            if watch.busy[other] == 0:
                watch.wake[other] = min(watch.wake[other], end + clock.delay[follower])
    return True


def vary(lanes: Lanes, unit: float, rules: int, block: Block, random: Ints) -> None:
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
    passes = len(lanes.way)
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
            block.due[lanes.way[place]] += amount


def copy_block(source: Block, target: Block) -> None:
    """Copy one block onto another."""
    for item in range(len(source.due)):
        target.due[item] = source.due[item]
    for rule in range(len(source.style)):
        target.style[rule] = source.style[rule]
    target.inner[0] = source.inner[0]


def anneal_block(
    shop: Shop,
    clock: Shop,
    lanes: Lanes,
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
    plan: Plan,
    progress: Progress,
    watch: Watch,
    scratch: Scratch,
) -> None:
    """Simulated annealing of a block for a number of steps; the best one seen goes to ``best``.

    As ``anneal`` of the evaluation kernel, but a step varies the block, and what comes of it is timed.
    """
    random = progress.random
    for _ in range(steps):
        progress.temperature[0] *= cooling
        copy_block(block, trial)
        vary(lanes, unit, rules, trial, random)
        if not repeat(shop, clock, lanes, share, period, trial, plan, watch, scratch):
            continue
        limit = min(progress.value[0] + progress.temperature[0] * waits[draw(random, len(waits))], INFEASIBLE / 2)
        value = evaluate(shop, plan, span, spread, limit, scratch)
        if value > limit:
            continue
        progress.value[0] = value
        copy_block(trial, block)
        if value < progress.value[1]:
            progress.value[1] = value
            copy_block(trial, best)
