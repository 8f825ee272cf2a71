"""Building blocks: repeating a block for every microbatch, and annealing the block itself.

A block says when the ops of the first microbatch are due, and when those of the others follow. Repeating it means that
every rank does next what is due next, at a pace of its own, with these exceptions: weight backwards go into the waits, and
before what does not fit into memory; before its first backward a rank may draw forwards forward; after its last
forward it takes the backwards as they come. What comes of it is an order, which is then timed like any candidate.

Ranks take turns: the one that can decide the earliest does, and then either runs something until it can decide again, or
waits. ``arrays`` says what is in the arrays; the *pace* is a flat problem of which only the times are used, which need not
be the true ones. ``due`` and ``ready`` are times: when an op should run, and when its input is there.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeplan.kernels import inlined
from pipeplan.model import Floats, Ints
from pipeplan.model.tolerances import LAST_DIGITS
from pipeplan.solver.kernels.annealing_kernel import accept, accepted_up_to, cool
from pipeplan.solver.kernels.arrays import (
    AnnealingState,
    CandidateTiming,
    Decisions,
    FlatProblem,
    Target,
)
from pipeplan.solver.kernels.random_kernel import draw
from pipeplan.solver.kernels.timing_kernel import evaluate, next_owed, runs_before

DRAWS_FORWARDS = 0
"""Rule of a block: 1 where forwards are drawn forward before a rank's first backward."""

TAKES_BACKWARDS = 1
"""Rule of a block: 1 where a backward that is ready goes before something due that is not."""

KEEPS_WEIGHTS = 2
"""Rule of a block: 1 where weight backwards stay where repeating has put them."""

RUNS_FULL = 3
"""Rule of a block: 1 where backwards run in full."""


class Block(NamedTuple):
    """A building block: when the ops of a microbatch, or of several that follow each other, are due, and how it is repeated.

    Attributes
    ----------
    due
        When each class is due for each of the ``several`` microbatches of the block, counted from where that microbatch
        begins, in the unit of the pace; shape (classes * several,), class by class.
    rules
        0 or 1 for each of the rules above; shape (4,).
    several
        How many microbatches the block is of; shape (1,).
    group
        How many microbatches make a group; shape (1,).
    inner
        The time between the microbatches of a group; shape (1,).
    """

    due: Floats
    rules: Ints
    several: Ints
    group: Ints
    inner: Floats


class Beat(NamedTuple):
    """How a block is repeated: for ``share`` microbatches of each copy, a ``period`` apart.

    ``unit`` is the mean time of an op. Both are times of the pace, which need not be the true ones.
    """

    share: int
    period: float
    unit: float


class Route(NamedTuple):
    """Which classes a rank runs, and the way of a microbatch through them.

    Attributes
    ----------
    offsets, on_rank
        Rank r runs the classes ``on_rank[offsets[r]:offsets[r + 1]]``; shapes (ranks + 1,) and (classes,).
    follower
        The class that waits for a class, or -1; shape (classes,).
    way
        The classes in the order in which a microbatch passes through them, copy after copy; shape (classes,).
    """

    offsets: Ints
    on_rank: Ints
    follower: Ints
    way: Ints


class RankClocks(NamedTuple):
    """What repeating a block writes by rank beside a timing; shape (ranks,).

    Attributes
    ----------
    wake, busy
        When a rank next decides what to do, and 1 if until then it runs something.
    backwards
        How many of its backwards have run.
    """

    wake: Floats
    busy: Ints
    backwards: Ints


NEVER = 1e300

VARIATIONS = 20
"""Of so many variations of a block, one changes a rule, one the time within groups, and the others when something is due."""


@inlined
def due_at(block: Block, op_class: int, index: int, beat: Beat) -> float:
    """When an op is due: groups follow each other by a period a microbatch, the microbatches of a group closer."""
    group = block.group[0]
    several = block.several[0]
    due: float = (
        block.due[op_class * several + index % several]
        + index // group * group * beat.period
        + index % group * block.inner[0]
    )
    return due


def repeat(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    beat: Beat,
    block: Block,
    decisions: Decisions,
    clocks: RankClocks,
    timing: CandidateTiming,
) -> bool:
    """Write into ``decisions`` what comes of a block; false if it gets stuck, which only a lack of memory makes it do."""
    begin_repeating(problem, decisions, clocks, timing)
    left = len(decisions.order)
    while left > 0:
        rank = first_awake(clocks)
        if clocks.wake[rank] >= NEVER:
            return False
        op_class = decide(problem, pace, route, beat, block, decisions, clocks, timing, rank)
        if op_class >= 0:
            run_op(problem, pace, route, block, decisions, clocks, timing, rank, op_class)
            left -= 1
    return True


def begin_repeating(problem: FlatProblem, decisions: Decisions, clocks: RankClocks, timing: CandidateTiming) -> None:
    """Set everything to before the first op."""
    for op_class in range(len(problem.rank)):
        timing.done[op_class] = 0
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


@inlined
def first_awake(clocks: RankClocks) -> int:
    """The rank that can decide the earliest."""
    rank = 0
    for other in range(1, len(clocks.wake)):
        if clocks.wake[other] < clocks.wake[rank]:
            rank = other
    return rank


@inlined
def decide(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    beat: Beat,
    block: Block,
    decisions: Decisions,
    clocks: RankClocks,
    timing: CandidateTiming,
    rank: int,
) -> int:
    """The class whose op a rank runs now; -1 if it waits, or runs a weight backward instead, which is then seen to."""
    now = clocks.wake[rank]
    clocks.busy[rank] = 0

    # Of all classes the one that is due first; of those that can run, the first forward and the first backward.
    head = forward = backward = -1
    head_due = forward_due = backward_due = NEVER
    head_ready = later = NEVER
    forwards_left = 0
    for slot in range(route.offsets[rank], route.offsets[rank + 1]):
        op_class = route.on_rank[slot]
        index = timing.done[op_class]
        if index == beat.share:
            continue
        forwards_left += 1 - op_class % 2
        source = problem.source[op_class]
        ready = NEVER
        if source < 0:
            ready = 0.0
        elif timing.done[source] > index:
            ready = timing.finish[problem.first[source] + index] + pace.delay[op_class]
        due = due_at(block, op_class, index, beat)
        if due < head_due:
            head, head_due, head_ready = op_class, due, ready
        if ready > now:
            later = min(later, ready)
        elif op_class % 2 == 0:
            if due < forward_due:
                forward, forward_due = op_class, due
        elif due < backward_due:
            backward, backward_due = op_class, due
    if head < 0:
        clocks.wake[rank] = NEVER
        return -1

    # What is due, or what may run before it while it is not ready.
    chosen = -1
    if head_ready <= now:
        chosen = head
    elif forward >= 0 and block.rules[DRAWS_FORWARDS] == 1 and clocks.backwards[rank] == 0:
        if leaves_room(problem, route, beat, block, timing, rank, forward, forward_due):
            chosen = forward
    elif forwards_left == 0 or block.rules[TAKES_BACKWARDS] == 1:
        chosen = backward
    lacks_room = False
    if chosen >= 0:
        full = chosen % 2 == 1 and block.rules[RUNS_FULL] == 1
        growth = problem.full_growth[chosen] if full else problem.growth[chosen]
        lacks_room = timing.held[rank] + growth > problem.limit[rank]

    # A weight backward before it, or else a backward where it does not fit.
    if timing.owed[rank] > 0 and (lacks_room or chosen < 0):
        place = next_owed(timing.owes, timing.pending[rank])
        end = now + pace.weight_time[decisions.order[place]]
        if runs_before(False, lacks_room, end, head_ready * (1 + LAST_DIGITS)):
            if block.rules[KEEPS_WEIGHTS] == 1 and timing.cursor[rank] < problem.offsets[rank + 1]:
                decisions.forced[timing.cursor[rank]] += 1
            timing.pending[rank] = place + 1
            timing.owed[rank] -= 1
            timing.held[rank] += problem.weight_growth[decisions.order[place]]
            clocks.wake[rank] = end
            clocks.busy[rank] = 1
            return -1
    if lacks_room:
        chosen = backward
    if chosen < 0:
        clocks.wake[rank] = later
    return chosen


@inlined
def leaves_room(
    problem: FlatProblem,
    route: Route,
    beat: Beat,
    block: Block,
    timing: CandidateTiming,
    rank: int,
    forward: int,
    forward_due: float,
) -> bool:
    """Whether a forward leaves room for all other forwards of the rank that are due before it."""
    room = problem.limit[rank] - timing.held[rank] - problem.growth[forward]
    for slot in range(route.offsets[rank], route.offsets[rank + 1]):
        op_class = route.on_rank[slot]
        index = timing.done[op_class]
        while op_class % 2 == 0 and op_class != forward and index < beat.share:
            if due_at(block, op_class, index, beat) >= forward_due:
                break
            room -= problem.growth[op_class]
            index += 1
    return bool(room >= 0)


@inlined
def run_op(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    block: Block,
    decisions: Decisions,
    clocks: RankClocks,
    timing: CandidateTiming,
    rank: int,
    op_class: int,
) -> None:
    """Run the next op of a class, and wake the rank that it is for when its result is there."""
    place = timing.cursor[rank]
    full = op_class % 2 == 1 and block.rules[RUNS_FULL] == 1
    end = clocks.wake[rank] + (pace.full_time[op_class] if full else pace.time[op_class])
    op = problem.first[op_class] + timing.done[op_class]
    timing.finish[op] = end
    timing.done[op_class] += 1
    timing.owes[place] = 0
    if full:
        decisions.full[op] = 1
        timing.held[rank] += problem.full_growth[op_class]
    else:
        timing.held[rank] += problem.growth[op_class]
        if problem.weight_time[op_class] >= 0:
            timing.owes[place] = 1
            timing.owed[rank] += 1
    clocks.backwards[rank] += op_class % 2
    decisions.order[place] = op_class
    timing.cursor[rank] += 1
    clocks.wake[rank] = end
    clocks.busy[rank] = 1
    follower = route.follower[op_class]
    if follower >= 0:
        other = problem.rank[follower]
        if clocks.busy[other] == 0:
            clocks.wake[other] = min(clocks.wake[other], end + pace.delay[follower])


def vary(route: Route, unit: float, rules: int, block: Block, random: Ints) -> None:
    """Change a block: one of its first ``rules`` rules, the time within its groups, or when something is due."""
    choice = draw(random, VARIATIONS)
    if choice == 0:
        rule = draw(random, rules)
        block.rules[rule] = 1 - block.rules[rule]
    elif choice == 1 and block.group[0] > 1:
        block.inner[0] = max(block.inner[0] + (draw(random, 2) - 0.5) * unit, 0.0)
    else:
        for _ in range(2 if draw(random, 3) == 0 else 1):
            move_due(route, unit, block, random)


def move_due(route: Route, unit: float, block: Block, random: Ints) -> None:
    """Make one op due earlier or later, or all from it on, or some, by up to 3 units; small steps are more often.

    Of a block of several microbatches that is one of them, or all.
    """
    passes = len(route.way)
    several = block.several[0]
    turn = 0
    turns = several
    if several > 1 and draw(random, 4) > 0:
        turn = draw(random, several)
        turns = turn + 1
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
    for step in range(start, stop):
        for one in range(turn, turns):
            block.due[route.way[step] * several + one] += amount


def copy_block(source: Block, target: Block) -> None:
    """Copy one block onto another."""
    for op_class in range(len(source.due)):
        target.due[op_class] = source.due[op_class]
    for rule in range(len(source.rules)):
        target.rules[rule] = source.rules[rule]
    target.several[0] = source.several[0]
    target.group[0] = source.group[0]
    target.inner[0] = source.inner[0]


def anneal_block(
    problem: FlatProblem,
    pace: FlatProblem,
    route: Route,
    beat: Beat,
    rules: int,
    target: Target,
    waits: Floats,
    steps: int,
    block: Block,
    trial: Block,
    best: Block,
    decisions: Decisions,
    state: AnnealingState,
    clocks: RankClocks,
    timing: CandidateTiming,
) -> None:
    """Simulated annealing of a block for a number of steps; the best one seen goes to ``best``.

    A step varies the block, and what comes of it is timed. It is kept if the value grows by no more than the temperature
    allows.
    """
    for _ in range(steps):
        cool(state)
        copy_block(block, trial)
        vary(route, beat.unit, rules, trial, state.random)
        if not repeat(problem, pace, route, beat, trial, decisions, clocks, timing):
            continue
        limit = accepted_up_to(state, waits)
        value = evaluate(problem, decisions, target, limit, timing)
        if value > limit:
            continue
        copy_block(trial, block)
        if accept(state, value):
            copy_block(trial, best)
