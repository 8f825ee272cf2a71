"""CandidateTiming a candidate from where it was changed on, until nothing differs any more.

Most steps of an annealing change little: what comes before is as it was, and so, once waits have taken up the difference,
is what follows. Ranks are timed from mark to mark; a mark says how far each of them has come. At the last mark that no
change is before, timing begins; at a mark behind all changes where clocks, memory, what is owed, and the ends that others
still wait for are what they were, it ends: the rest is the same, and so is the value.

For candidates without overlapped pairs and without full backwards that gain. ``arrays`` and ``marks`` say what is in the
arrays; two timings are kept, of the current candidate and of the trial, which differ only while a step is made.
"""

from pipeplan.kernels import inlined
from pipeplan.model import Ints
from pipeplan.model.tolerances import LAST_DIGITS
from pipeplan.solver.kernels.arrays import CandidateTiming, Change, Decisions, FlatProblem, Target
from pipeplan.solver.kernels.marks import Marks, Stretch, Touched
from pipeplan.solver.kernels.owed_kernel import next_owed
from pipeplan.solver.kernels.timing_kernel import INFEASIBLE, STUCK, run_rank, run_rest

BEGAN = 0
"""Of a stretch: the mark that timing began at."""

ENDED = 1
"""Of a stretch: the mark that it got to."""

REJOINED = 2
"""Of a stretch: whether from there on everything is as it was."""


def begin_at(marks: Marks, mark: int, timing: CandidateTiming) -> None:
    """Set a timing to what it was at a mark."""
    ranks = len(timing.cursor)
    classes = len(timing.done)
    for rank in range(ranks):
        at = mark * ranks + rank
        timing.cursor[rank] = marks.cursor[at]
        timing.pending[rank] = marks.pending[at]
        timing.owed[rank] = marks.owed[at]
        timing.clock[rank] = marks.clock[at]
        timing.held[rank] = marks.held[at]
        timing.left[rank] = marks.left[at]
        timing.begin[rank] = marks.begin[at]
    for op_class in range(classes):
        timing.done[op_class] = marks.done[mark * classes + op_class]


def keep_at(marks: Marks, mark: int, timing: CandidateTiming) -> None:
    """Write what a timing is now, at a mark."""
    ranks = len(timing.cursor)
    classes = len(timing.done)
    for rank in range(ranks):
        at = mark * ranks + rank
        # Not where to look from, but where it is: what is done of the places before may come to stand elsewhere.
        pending = timing.cursor[rank]
        if timing.owed[rank] > 0:
            pending = next_owed(timing.owes, timing.pending[rank])
        marks.pending[at] = pending
        marks.owed[at] = timing.owed[rank]
        marks.clock[at] = timing.clock[rank]
        marks.held[at] = timing.held[rank]
        marks.left[at] = timing.left[rank]
        marks.begin[at] = timing.begin[rank]
    for op_class in range(classes):
        marks.done[mark * classes + op_class] = timing.done[op_class]
    marks.valid[mark] = 1


def copy_mark(source: Marks, mark: int, ranks: int, classes: int, target: Marks) -> None:
    """Copy a mark, but for its places, which are the same."""
    target.valid[mark] = source.valid[mark]
    for at in range(mark * ranks, mark * ranks + ranks):
        target.pending[at] = source.pending[at]
        target.owed[at] = source.owed[at]
        target.clock[at] = source.clock[at]
        target.held[at] = source.held[at]
        target.left[at] = source.left[at]
        target.begin[at] = source.begin[at]
    for at in range(mark * classes, mark * classes + classes):
        target.done[at] = source.done[at]


def place_marks(
    problem: FlatProblem, decisions: Decisions, length: float, timing: CandidateTiming, marks: Marks
) -> None:
    """Say how far ranks have come at each mark: marks are equal times apart in a candidate just timed.

    What has ended by some time has needed nothing that had not, so a candidate comes through these places together.
    """
    count = len(marks.valid) - 1
    ranks = len(problem.work)
    for rank in range(ranks):
        place = problem.offsets[rank]
        stop = problem.offsets[rank + 1]
        for op_class in range(len(problem.rank)):
            if problem.rank[op_class] == rank:
                timing.done[op_class] = 0
        for mark in range(count):
            time = length * mark / count
            while place < stop:
                op_class = decisions.order[place]
                if timing.finish[problem.first[op_class] + timing.done[op_class]] > time:
                    break
                timing.done[op_class] += 1
                place += 1
            marks.cursor[mark * ranks + rank] = place
        marks.cursor[count * ranks + rank] = stop
        marks.cursor[rank] = problem.offsets[rank]
    for mark in range(count + 1):
        marks.valid[mark] = 0


def note_touched(problem: FlatProblem, decisions: Decisions, change: Change, touched: Touched) -> None:
    """Say which places a move has changed: those between where ops were and where they are, or the one it is about."""
    for which in range(touched.number[0]):
        touched.last[touched.ranks[which]] = -1
    touched.number[0] = 0
    if change.moves[0] == 0:
        touch(problem.rank[decisions.order[change.terms[0]]], change.terms[0], change.terms[0], touched)
    for move in range(change.moves[0]):
        place = change.place[move]
        target = change.target[move]
        touch(problem.rank[decisions.order[target]], min(place, target), max(place, target), touched)


@inlined
def touch(rank: int, first: int, last: int, touched: Touched) -> None:
    """Add places of a rank to those that were changed."""
    if touched.last[rank] < 0:
        touched.ranks[touched.number[0]] = rank
        touched.number[0] += 1
        touched.first[rank] = first
        touched.last[rank] = last
    else:
        touched.first[rank] = min(touched.first[rank], first)
        touched.last[rank] = max(touched.last[rank], last)


@inlined
def last_before(marks: Marks, touched: Touched, ranks: int) -> int:
    """The last mark that no change is before."""
    mark = len(marks.valid) - 2
    while mark > 0:
        before = marks.valid[mark] == 1
        for which in range(touched.number[0]):
            rank = touched.ranks[which]
            if marks.cursor[mark * ranks + rank] > touched.first[rank]:
                before = False
                break
        if before:
            break
        mark -= 1
    return mark


def evaluate_from(
    problem: FlatProblem,
    decisions: Decisions,
    target: Target,
    limit: float,
    follower: Ints,
    unit: float,
    value: float,
    known: Marks,
    touched: Touched,
    current: CandidateTiming,
    timing: CandidateTiming,
    marks: Marks,
    stretch: Stretch,
) -> float:
    """The value of a candidate that was changed in some places; ``INFEASIBLE`` if it must be more than ``limit``.

    Before the change its value was ``value``, its timing ``current`` and its marks ``known``; ``timing`` is like
    ``current`` and is changed, and so are ``marks``, ``stretch`` says where.
    """
    ranks = len(problem.work)
    end = len(known.valid) - 1
    mark = last_before(known, touched, ranks)
    stretch.ends[BEGAN] = mark
    stretch.ends[REJOINED] = 0
    begin_at(known, mark, timing)
    while mark < end:
        mark += 1
        stretch.ends[ENDED] = mark
        reached = run_to_mark(problem, decisions, target.span, limit, known, mark, timing, stretch)
        if reached == STUCK or (mark == end and reached == 0):
            return INFEASIBLE
        if mark == end:
            break
        marks.valid[mark] = 0
        if reached == 1:
            if known.valid[mark] == 1 and is_as_before(problem, follower, unit, known, mark, touched, current, timing):
                stretch.ends[REJOINED] = 1
                return value
            keep_at(marks, mark, timing)
    longest = 0.0
    total = 0.0
    for rank in range(ranks):
        run_rest(problem, decisions, rank, timing)
        duration = timing.clock[rank] - timing.begin[rank]
        longest = max(longest, duration)
        total += duration
    return longest + target.spread * total / ranks


def run_to_mark(
    problem: FlatProblem,
    decisions: Decisions,
    span: int,
    limit: float,
    known: Marks,
    mark: int,
    timing: CandidateTiming,
    stretch: Stretch,
) -> int:
    """Run all ranks up to a mark: 1 if they get there, 0 if some need what comes behind it, ``STUCK`` if infeasible."""
    ranks = len(problem.work)
    for op_class in range(len(problem.rank)):
        timing.waiting[op_class] = 0
    top = 0
    for rank in range(ranks):
        if timing.cursor[rank] < known.cursor[mark * ranks + rank]:
            timing.stack[top] = rank
            top += 1
    while top > 0:
        rank = timing.stack[top - 1]
        before = timing.cursor[rank]
        stop = known.cursor[mark * ranks + rank]
        top = run_rank(problem, decisions, span, limit, rank, stop, top - 1, False, timing)
        stretch.visits[0] += timing.cursor[rank] - before
        if top == STUCK:
            return STUCK
    for rank in range(ranks):
        if timing.cursor[rank] < known.cursor[mark * ranks + rank]:
            return 0
    return 1


@inlined
def is_as_before(
    problem: FlatProblem,
    follower: Ints,
    unit: float,
    known: Marks,
    mark: int,
    touched: Touched,
    current: CandidateTiming,
    timing: CandidateTiming,
) -> bool:
    """Whether from a mark on everything is as it was: nothing that follows was changed or comes at another time."""
    ranks = len(problem.work)
    for which in range(touched.number[0]):
        rank = touched.ranks[which]
        if known.cursor[mark * ranks + rank] <= touched.last[rank]:
            return False
    for rank in range(ranks):
        at = mark * ranks + rank
        if (
            abs(timing.clock[rank] - known.clock[at]) > LAST_DIGITS * known.clock[at]
            or timing.owed[rank] != known.owed[at]
            or abs(timing.held[rank] - known.held[at]) > unit
            or timing.begin[rank] != known.begin[at]
        ):
            return False
        if timing.owed[rank] > 0:
            pending = next_owed(timing.owes, timing.pending[rank])
            if pending != known.pending[at] or pending <= touched.last[rank]:
                return False
    for op_class in range(len(problem.rank)):
        after = follower[op_class]
        if after >= 0:
            first = problem.first[op_class]
            for op in range(first + timing.done[after], first + timing.done[op_class]):
                if abs(timing.finish[op] - current.finish[op]) > LAST_DIGITS * current.finish[op]:
                    return False
    return True


def settle(
    problem: FlatProblem,
    known: Marks,
    began: int,
    source: CandidateTiming,
    trial: CandidateTiming,
    target: CandidateTiming,
    indices: Ints,
) -> None:
    """Copy from one timing to another what was timed since a mark, up to where ``trial`` is; note indices by place."""
    ranks = len(problem.work)
    classes = len(problem.rank)
    for rank in range(ranks):
        # Where timing broke off, the next place may have been begun.
        stop = min(trial.cursor[rank] + 1, problem.offsets[rank + 1])
        for place in range(known.cursor[began * ranks + rank], stop):
            target.weights[place] = source.weights[place]
            target.owes[place] = source.owes[place]
            target.waited[place] = source.waited[place]
    for op_class in range(classes):
        first = problem.first[op_class]
        for index in range(known.done[began * classes + op_class], trial.done[op_class]):
            target.finish[first + index] = source.finish[first + index]
            target.position[first + index] = source.position[first + index]
            indices[source.position[first + index]] = index


def keep_step(
    problem: FlatProblem,
    known: Marks,
    current: CandidateTiming,
    timing: CandidateTiming,
    marks: Marks,
    stretch: Stretch,
    indices: Ints,
) -> None:
    """Make the trial the current candidate."""
    ranks = len(problem.work)
    classes = len(problem.rank)
    settle(problem, known, stretch.ends[BEGAN], timing, timing, current, indices)
    for mark in range(stretch.ends[BEGAN] + 1, stretch.ends[ENDED]):
        if marks.valid[mark] == 1:
            copy_mark(marks, mark, ranks, classes, known)
        else:
            known.valid[mark] = 0
    if stretch.ends[REJOINED] == 0:
        for rank in range(ranks):
            current.clock[rank] = timing.clock[rank]
            current.begin[rank] = timing.begin[rank]
