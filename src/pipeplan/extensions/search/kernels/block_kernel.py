"""Building blocks: repeating a block for every microbatch, and annealing the block itself.

A block says when the ops of the first microbatch are due, and when those of the others follow. Repeating it means that
every rank does next what is due next, at its own pace, with these exceptions: weight backwards go into the waits, and
before what does not fit into memory; before its first backward a rank may draw forwards forward; after its last
forward it takes the backwards as they come. What comes of it is an order, which is then timed like any candidate.

Ranks take turns: the one that can decide the earliest does, and then either runs something until it can decide again, or
waits.

Arrays: ``block.due`` has the due times of the first microbatch's ops, by class; ``plan`` what is known of the problem;
``repeated`` is written: ``decisions.order`` op by op, ``clocks.wake`` when each rank decides next, ``timing`` what has run,
as in ``timing_kernel``. ``due`` and ``ready`` are times: when an op should run, and when its input is there. Decisions of a
rank, for a block that is repeated with a period of 3::

    due      F0 0   F1 3   I0 5   F2 6   I1 8        F at 0, 3, 6, ..; I at 5, 8, 11, ..
    now 5    I0 is due and not ready until 6         W0 fits into the wait: it runs
    now 6    I0 is due and ready                     it runs, and wakes the rank that waits for it
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.extensions.search.kernels.annealing_kernel import accept, accepted_up_to, cool
from pipeplan.extensions.search.kernels.arrays import (
    AnnealingState,
    CandidateTiming,
    Decisions,
    FlatProblem,
    Target,
)
from pipeplan.extensions.search.kernels.evaluating_kernel import evaluate_by
from pipeplan.extensions.search.kernels.random_kernel import draw
from pipeplan.extensions.search.kernels.row_kernel import copy_numbers
from pipeplan.extensions.search.kernels.timing_kernel import next_owed, runs_before
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints
from pipeplan.model.tolerances import LAST_DIGITS

DRAWS_FORWARDS = 0
"""Rule of a block: 1 where forwards are drawn forward before a rank's first backward."""

TAKES_BACKWARDS = 1
"""Rule of a block: 1 where a backward that is ready goes before something due that is not."""

KEEPS_WEIGHTS = 2
"""Rule of a block: 1 where weight backwards stay where repeating has put them."""

RUNS_FULL = 3
"""Rule of a block: 1 where backwards run in full."""


class Block(NamedTuple):
    """A building block: due times of the ops of one or several consecutive microbatches, and the rules of repeating it.

    Attributes
    ----------
    due
        Due time of each class for each of the ``several`` microbatches of the block, counted from the begin of that
        microbatch, in the unit of the pace, class by class.
    rules
        0 or 1 for each of the rules above.
    several
        Number of microbatches of the block.
    group
        Number of microbatches in a group.
    inner
        The time between the microbatches of a group.
    """

    due: Annotated[Floats, "classes * several"]
    rules: Annotated[Ints, "4"]
    several: Annotated[Ints, "1"]
    group: Annotated[Ints, "1"]
    inner: Annotated[Floats, "1"]


class Beat(NamedTuple):
    """Repetition of a block: for ``share`` microbatches of each copy, a ``period`` apart.

    ``unit`` is the mean time of an op. Both are times of the pace, which need not be the true ones.
    """

    share: Annotated[int, "ops // classes"]
    period: float
    unit: float


class Route(NamedTuple):
    """Classes that each rank runs, and the way of a microbatch through them.

    Attributes
    ----------
    offsets, on_rank
        Rank r runs the classes ``on_rank[offsets[r]:offsets[r + 1]]``.
    way
        The classes in the order in which a microbatch passes through them, copy after copy.
    """

    offsets: Annotated[Ints, "ranks + 1"]
    on_rank: Annotated[Ints, "classes"]
    way: Annotated[Ints, "classes"]


class BlockPlan(NamedTuple):
    """Everything that repeating a block needs besides the block.

    The *pace* is a flat problem of which only the times are used, which need not be the true ones.
    """

    problem: FlatProblem
    pace: FlatProblem
    route: Route
    beat: Beat


class BlockOptions(NamedTuple):
    """Options of a block's annealing.

    Attributes
    ----------
    rules
        Number of rules that may change.
    evaluator, target
        Evaluator that times candidates, and the value to minimize.
    waits
        Quantiles of the exponential distribution.
    """

    rules: Annotated[int, "3 or 4"]
    evaluator: int
    target: Target
    waits: Annotated[Floats, "quantiles > 0"]


class Blocks(NamedTuple):
    """Blocks of an annealing: the current one, the one that a step tries, and the best."""

    current: Block
    trial: Block
    best: Block


class RankClocks(NamedTuple):
    """State of each rank while a block is repeated, in addition to its timing.

    Attributes
    ----------
    wake, busy
        Time at which a rank decides next, and 1 if it runs something until then.
    backwards
        Number of its backwards that have run.
    """

    wake: Annotated[Floats, "ranks"]
    busy: Annotated[Ints, "ranks"]
    backwards: Annotated[Ints, "ranks"]


class Repeated(NamedTuple):
    """Everything that repeating a block writes: the order, and what has run so far."""

    decisions: Decisions
    clocks: RankClocks
    timing: CandidateTiming


NEVER = 1e300

VARIATIONS = 20
"""Number of variations of a block of which one changes a rule, one the time within groups, and the others due times."""


@inlined
def due_at(block: Block, op_class: int, index: int, beat: Beat) -> float:
    """Return when an op is due: groups follow each other by a period per microbatch, those of a group are closer."""
    group = block.group[0]
    several = block.several[0]
    due: float = (
        block.due[op_class * several + index % several]
        + index // group * group * beat.period
        + index % group * block.inner[0]
    )
    return due


def repeat(plan: BlockPlan, block: Block, repeated: Repeated) -> bool:
    """Repeat a block, and write the order into ``decisions``; false if it gets stuck, for lack of memory."""
    begin_repeating(plan.problem, repeated)
    left = len(repeated.decisions.order)
    while left > 0:
        # The rank that decides first; if none ever wakes, ops are left that cannot run.
        rank = first_awake(repeated.clocks)
        if repeated.clocks.wake[rank] >= NEVER:
            return False
        op_class = decide(plan, block, repeated, rank)
        if op_class >= 0:
            run_op(plan, block, repeated, rank, op_class)
            left -= 1
    return True


def begin_repeating(problem: FlatProblem, repeated: Repeated) -> None:
    """Set the arrays to before the first op."""
    decisions, clocks, timing = repeated.decisions, repeated.clocks, repeated.timing
    # Nothing has run: all ranks decide at 0.
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
    """Return the rank that decides next."""
    rank = 0
    for other in range(1, len(clocks.wake)):
        if clocks.wake[other] < clocks.wake[rank]:
            rank = other
    return rank


@inlined
def decide(plan: BlockPlan, block: Block, repeated: Repeated, rank: int) -> int:
    """Return the class whose op a rank runs now; -1 if it waits, or runs a weight backward instead, which is then noted."""
    problem, pace, route, beat = plan.problem, plan.pace, plan.route, plan.beat
    decisions, clocks, timing = repeated.decisions, repeated.clocks, repeated.timing
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
        # The head may not be ready; the first forward and the first backward are taken only from ops that are.
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
        if leaves_room(plan, block, timing, rank, forward, forward_due):
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
    plan: BlockPlan, block: Block, timing: CandidateTiming, rank: int, forward: int, forward_due: float
) -> bool:
    """Return true if a forward leaves room for all other forwards of the rank that are due before it."""
    problem, route, beat = plan.problem, plan.route, plan.beat
    room = problem.limit[rank] - timing.held[rank] - problem.growth[forward]
    # Of each class of forwards, the microbatches from the next one on that are due earlier.
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
def run_op(plan: BlockPlan, block: Block, repeated: Repeated, rank: int, op_class: int) -> None:
    """Run the next op of a class; the rank that needs its result wakes when that arrives."""
    problem, pace = plan.problem, plan.pace
    decisions, clocks, timing = repeated.decisions, repeated.clocks, repeated.timing
    place = timing.cursor[rank]
    full = op_class % 2 == 1 and block.rules[RUNS_FULL] == 1
    end = clocks.wake[rank] + (pace.full_time[op_class] if full else pace.time[op_class])
    op = problem.first[op_class] + timing.done[op_class]
    timing.finish[op] = end
    timing.done[op_class] += 1
    # What it adds to the memory, and whether its W is owed.
    timing.owes[place] = 0
    if full:
        if len(decisions.full) > 0:
            decisions.full[op] = 1
        timing.held[rank] += problem.full_growth[op_class]
    else:
        timing.held[rank] += problem.growth[op_class]
        if problem.weight_time[op_class] >= 0:
            timing.owes[place] = 1
            timing.owed[rank] += 1
    # Its place in the order; the rank decides again at its end.
    clocks.backwards[rank] += op_class % 2
    decisions.order[place] = op_class
    timing.cursor[rank] += 1
    clocks.wake[rank] = end
    clocks.busy[rank] = 1
    # A rank that runs something decides at its end anyway.
    follower = problem.follower[op_class]
    if follower >= 0:
        other = problem.rank[follower]
        if clocks.busy[other] == 0:
            clocks.wake[other] = min(clocks.wake[other], end + pace.delay[follower])


def vary(route: Route, unit: float, rules: int, block: Block, random: Ints) -> None:
    """Change a block: one of its first ``rules`` rules, the time within its groups, or when something is due."""
    # Rarely a rule or the time within groups; mostly one or two changes of due times.
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

    In a block of several microbatches the change is to one of them, or to all.
    """
    passes = len(route.way)
    several = block.several[0]
    # Of which microbatches of the block, from which class on, and by how much.
    turn = 0
    turns = several
    if several > 1 and draw(random, 4) > 0:
        turn = draw(random, several)
        turns = turn + 1
    start = draw(random, passes)
    amount = (1 + draw(random, 1 + draw(random, 6))) * 0.5 * unit
    if draw(random, 2) == 0:
        amount = -amount
    # One op, all that follow on the microbatch's way, or some of these.
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
    """Copy the values of one block into another."""
    for op_class in range(len(source.due)):
        target.due[op_class] = source.due[op_class]
    copy_numbers(source.rules, target.rules)
    copy_numbers(source.several, target.several)
    copy_numbers(source.group, target.group)
    target.inner[0] = source.inner[0]


def anneal_block(
    plan: BlockPlan, options: BlockOptions, steps: int, blocks: Blocks, state: AnnealingState, repeated: Repeated
) -> None:
    """Simulated annealing of a block for a number of steps; the best one seen goes to ``blocks.best``.

    A step varies the block, and what comes of it is timed. It is kept if the value grows by no more than the temperature
    allows.
    """
    for _ in range(steps):
        cool(state)
        # A copy of the current block is varied. What comes of that may be infeasible; then the next step follows.
        copy_block(blocks.current, blocks.trial)
        vary(plan.route, plan.beat.unit, options.rules, blocks.trial, state.random)
        if not repeat(plan, blocks.trial, repeated):
            continue
        # Time the order; the limit, drawn before, ends that early.
        limit = accepted_up_to(state, options.waits)
        value = evaluate_by(options.evaluator, plan.problem, repeated.decisions, options.target, limit, repeated.timing)
        if value > limit:
            continue
        copy_block(blocks.trial, blocks.current)
        if accept(state, value):
            copy_block(blocks.trial, blocks.best)
