"""Timing a candidate from where it was changed on, until nothing differs any more.

Most steps of an annealing change little: what comes before is as it was, and so, once waits have taken up the difference,
is what follows. Ranks are timed from mark to mark (``marks_kernel``)::

    marks      0     1     2     3     4
    row        .......x..................      x: the change
    timed            |-----|-----|             begins at 1, the last mark before the change; ends at 3, where clocks,
                                               memory, owed Ws and the results still awaited are what they were

The rest is the same, and so is the value. That holds for candidates without overlapped pairs and without full backwards
that gain; others are timed whole.

Arrays: ``trials`` holds the current candidate and the trial; see ``arrays`` and ``marks_kernel``.

The annealing makes the same steps as ``annealing_kernel`` with the same random numbers, in a fraction of the time where
schedules are long.
"""

from pipeplan.extensions.search.kernels.annealing_kernel import (
    accept,
    accepted_up_to,
    cool,
    copy_decisions,
    draw_place,
    last_place,
)
from pipeplan.extensions.search.kernels.arrays import (
    CandidateTiming,
    Decisions,
    FlatProblem,
    SearchWalk,
    StepOptions,
    Target,
)
from pipeplan.extensions.search.kernels.marks_kernel import (
    Trials,
    begin_at,
    begin_marks,
    copy_mark,
    keep_at,
    last_before,
    note_touched,
    place_marks,
)
from pipeplan.extensions.search.kernels.random_kernel import draw_weighted
from pipeplan.extensions.search.kernels.timing_kernel import (
    INFEASIBLE,
    STUCK,
    evaluate,
    next_owed,
    run_ranks,
    value_at_end,
)
from pipeplan.extensions.search.moves.numbered_kernel import apply, propose, undo
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints
from pipeplan.model.tolerances import LAST_DIGITS, SEARCHED_MEMORY

BEGAN = 0
"""Index into ``Stretch.ends``: the mark at which timing began."""

ENDED = 1
"""Index into ``Stretch.ends``: the mark that timing reached."""

REJOINED = 2
"""Index into ``Stretch.ends``: 1 if from there on everything is as it was."""


def evaluate_from(
    problem: FlatProblem,
    decisions: Decisions,
    target: Target,
    limit: float,
    unit: float,
    value: float,
    trials: Trials,
) -> float:
    """Return the value of a changed candidate; ``INFEASIBLE`` if it must be more than ``limit``.

    Before the change its value was ``value``. The trial's timing, which was equal to the current one, and its marks are
    changed where the stretch says. Memory that differs by less than ``unit`` is the same.
    """
    ends = trials.stretch.ends
    base = trials.base
    end = len(base.valid) - 1
    mark = last_before(base, trials.touched, len(problem.work))
    ends[BEGAN] = mark
    ends[REJOINED] = 0
    begin_at(base, mark, trials.timing)
    # From mark to mark. After the end of a rank's row nothing is compared: all is timed.
    while mark < end:
        mark += 1
        ends[ENDED] = mark
        reached = run_to_mark(problem, decisions, target.span, limit, mark, trials)
        if reached == STUCK or (mark == end and reached == 0):
            return INFEASIBLE
        if mark == end:
            break
        # Where the candidate does not come through the places of the mark together, the mark is not valid for it.
        trials.marks.valid[mark] = 0
        if reached == 1:
            if base.valid[mark] == 1 and is_as_before(problem, unit, mark, trials):
                ends[REJOINED] = 1
                return value
            keep_at(trials.marks, mark, trials.timing)
    # It never met its old timing again: the value is that of all ranks' ends.
    return value_at_end(problem, decisions, target, trials.timing)


def run_to_mark(problem: FlatProblem, decisions: Decisions, span: int, limit: float, mark: int, trials: Trials) -> int:
    """Run all ranks up to a mark: 1 if they get there, 0 if some need a result from after it, ``STUCK`` if infeasible."""
    ranks = len(problem.work)
    timing = trials.timing
    visits = trials.stretch.visits
    stops = trials.base.cursor
    # All ranks that have not reached the mark can try; those that wait were noted for another stretch.
    for op_class in range(len(problem.rank)):
        timing.waiting[op_class] = 0
    top = 0
    for rank in range(ranks):
        visits[0] -= timing.cursor[rank]
        if timing.cursor[rank] < stops[mark * ranks + rank]:
            timing.stack[top] = rank
            top += 1
    stuck = run_ranks(problem, decisions, span, limit, stops, mark * ranks, top, timing) == STUCK
    reached = 1
    for rank in range(ranks):
        visits[0] += timing.cursor[rank]
        if timing.cursor[rank] < stops[mark * ranks + rank]:
            reached = 0
    return STUCK if stuck else reached


@inlined
def is_as_before(problem: FlatProblem, unit: float, mark: int, trials: Trials) -> bool:
    """Return true if from a mark on everything is as it was: no later op was changed or comes at another time."""
    ranks = len(problem.work)
    base, touched, timing = trials.base, trials.touched, trials.timing
    # All changes lie before the mark.
    for which in range(touched.number[0]):
        rank = touched.ranks[which]
        if base.cursor[mark * ranks + rank] <= touched.last[rank]:
            return False
    # Every rank is in the state that it was in, and owes the same Ws.
    for rank in range(ranks):
        at = mark * ranks + rank
        if (
            abs(timing.clock[rank] - base.clock[at]) > LAST_DIGITS * base.clock[at]
            or timing.owed[rank] != base.owed[at]
            or abs(timing.held[rank] - base.held[at]) > unit
            or timing.begin[rank] != base.begin[at]
        ):
            return False
        if timing.owed[rank] > 0:
            pending = next_owed(timing.owes, timing.pending[rank])
            if pending != base.pending[at] or pending <= touched.last[rank]:
                return False
    # Results that have been made and not yet used arrive when they did.
    before = trials.current.finish
    for op_class in range(len(problem.rank)):
        after = problem.follower[op_class]
        if after >= 0:
            first = problem.first[op_class]
            for op in range(first + timing.done[after], first + timing.done[op_class]):
                if abs(timing.finish[op] - before[op]) > LAST_DIGITS * before[op]:
                    return False
    return True


def settle(problem: FlatProblem, source: CandidateTiming, target: CandidateTiming, trials: Trials) -> None:
    """Copy from one timing to another all that was timed of the trial, up to where it is; note indices by place."""
    ranks = len(problem.work)
    classes = len(problem.rank)
    began = trials.stretch.ends[BEGAN]
    base, trial = trials.base, trials.timing
    for rank in range(ranks):
        # Where timing broke off, the next place may have been begun.
        stop = min(trial.cursor[rank] + 1, problem.offsets[rank + 1])
        for place in range(base.cursor[began * ranks + rank], stop):
            target.weights[place] = source.weights[place]
            target.owes[place] = source.owes[place]
            target.waited[place] = source.waited[place]
    for op_class in range(classes):
        first = problem.first[op_class]
        for index in range(base.done[began * classes + op_class], trial.done[op_class]):
            target.finish[first + index] = source.finish[first + index]
            target.position[first + index] = source.position[first + index]
            trials.indices[source.position[first + index]] = index


def keep_step(problem: FlatProblem, trials: Trials) -> None:
    """Make the trial the current candidate: copy its timing and its marks."""
    ranks = len(problem.work)
    classes = len(problem.rank)
    ends = trials.stretch.ends
    settle(problem, trials.timing, trials.current, trials)
    for mark in range(ends[BEGAN] + 1, ends[ENDED]):
        if trials.marks.valid[mark] == 1:
            copy_mark(trials.marks, mark, ranks, classes, trials.base)
        else:
            trials.base.valid[mark] = 0
    if ends[REJOINED] == 0:
        for rank in range(ranks):
            trials.current.clock[rank] = trials.timing.clock[rank]
            trials.current.begin[rank] = trials.timing.begin[rank]


def trace_by_indices(
    problem: FlatProblem, decisions: Decisions, timing: CandidateTiming, indices: Ints, critical: Ints
) -> None:
    """Write the longest chain as ``annealing_kernel.trace`` does; ``indices`` has the index of the op at each place."""
    place = last_place(problem, timing)
    count = 0
    while True:
        count += 1
        critical[count] = place
        op_class = decisions.order[place]
        if timing.waited[place] > 0:
            place = timing.position[problem.first[problem.source[op_class]] + indices[place]]
        elif place == problem.offsets[problem.rank[op_class]]:
            break
        else:
            place -= 1
    critical[0] = count


def unit_of(problem: FlatProblem) -> float:
    """Return the difference up to which two sums of memory count as equal."""
    largest = 0.0
    for op_class in range(len(problem.growth)):
        largest = max(largest, abs(problem.growth[op_class]))
    return SEARCHED_MEMORY * largest


def anneal_locally(
    problem: FlatProblem, options: StepOptions, steps: int, most: int, walk: SearchWalk, trials: Trials
) -> int:
    """Anneal for a number of steps, or until ``most`` places were timed, and return the number of steps.

    The current candidate is timed afresh at first.
    """
    decisions, state, change, target = walk.decisions, walk.state, walk.change, options.target
    touched, visits, current = trials.touched, trials.stretch.visits, trials.current
    unit = unit_of(problem)
    # Time the current candidate whole, to know where its marks are.
    length = evaluate(problem, decisions, target, INFEASIBLE / 2, current)
    place_marks(problem, decisions, length, current, trials.base)
    visits[0] = 0
    touched.number[0] = 0
    for rank in range(len(problem.work)):
        touched.last[rank] = -1
    # Time it from mark to mark, which are placed but not yet written, in both timings.
    begin_marks(problem, trials.base)
    evaluate_from(problem, decisions, target, INFEASIBLE / 2, unit, INFEASIBLE, trials)
    keep_step(problem, trials)
    for step in range(steps):
        if visits[0] >= most:
            return step
        # Draw a move, and apply it.
        cool(state)
        place = draw_place(state, options.critical, len(decisions.order))
        move = draw_weighted(state.random, options.weights)
        propose(move, options, problem, decisions, place, change, state.random)
        change.moves[0] = 0
        if not apply(move, options.outside, problem, decisions, change):
            continue
        note_touched(problem, decisions, change, touched)
        # Time the trial from the change on; a value above the limit, known before, ends that early.
        limit = accepted_up_to(state, options.waits)
        value = evaluate_from(problem, decisions, target, limit, unit, state.value[0], trials)
        if value > limit:
            undo(move, options.outside, problem, decisions, change)
            settle(problem, current, trials.timing, trials)
            continue
        # It is accepted: the trial is the current candidate from now on.
        keep_step(problem, trials)
        if options.critical > 0:
            trace_by_indices(problem, decisions, current, trials.indices, state.critical)
        if accept(state, value):
            copy_decisions(decisions, walk.best)
    return steps
