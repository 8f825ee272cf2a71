"""Marks: the states of a timing at several places, from which a changed candidate is timed on, not from its beginning.

A mark is a place on every rank that the candidate comes through together. Three marks of a row with two ranks::

    rank 0   |F0 F1 F2|I0 F3 I1|I2 I3|        | is a mark: cursor, pending, owed, clock, held, left, begin by rank,
    rank 1   |F0 I0 F1|I1 F2 I2|F3 I3|          done by class; a row of the arrays each
             0        1        2     3        a change of the I1 of rank 0 is timed from mark 1 on
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.extensions.search.kernels.arrays import CandidateTiming, Change, Decisions, FlatProblem
from pipeplan.extensions.search.kernels.timing_kernel import next_owed
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints


class Marks(NamedTuple):
    """State of a timing when every rank has come so far, for several such places: rows, one after the other.

    Row ``mark`` of an array of ranks begins at ``mark * ranks``, of one of classes at ``mark * classes``. The first row is
    the beginning; the last one, the end, has a cursor alone.

    Attributes
    ----------
    valid
        1 where the candidate comes through these places together.
    cursor, pending, owed, clock, held, left, begin
        As in a timing, by rank.
    done
        As in a timing, by class.
    """

    valid: Annotated[Ints, "marks > 1"]
    cursor: Annotated[Ints, "marks * ranks"]
    pending: Annotated[Ints, "marks * ranks"]
    owed: Annotated[Ints, "marks * ranks"]
    clock: Annotated[Floats, "marks * ranks"]
    held: Annotated[Floats, "marks * ranks"]
    left: Annotated[Floats, "marks * ranks"]
    begin: Annotated[Floats, "marks * ranks"]
    done: Annotated[Ints, "marks * classes"]


class Touched(NamedTuple):
    """Places of the order that a step has changed.

    Attributes
    ----------
    number, ranks
        Number of changed ranks, and these ranks.
    first, last
        Of these ranks, the first and the last place that may differ; of others ``last`` is -1.
    """

    number: Annotated[Ints, "1"]
    ranks: Annotated[Ints, "ranks"]
    first: Annotated[Ints, "ranks"]
    last: Annotated[Ints, "ranks"]


class Stretch(NamedTuple):
    """Marks between which a candidate was timed.

    Attributes
    ----------
    ends
        First mark, last mark, and 1 if from the last one on everything is as it was.
    visits
        Number of places timed since the array was made.
    """

    ends: Annotated[Ints, "3"]
    visits: Annotated[Ints, "1"]


class Trials(NamedTuple):
    """The current candidate of an annealing and its trial, which differ only while a step is made.

    Attributes
    ----------
    touched, stretch
        The places that the step has changed, and the marks between which the trial was timed.
    indices
        The index of the op at each place within its class.
    base, current
        Marks and timing of the current candidate.
    marks, timing
        Marks and timing of the trial.
    """

    touched: Touched
    stretch: Stretch
    indices: Annotated[Ints, "ops"]
    base: Marks
    current: CandidateTiming
    marks: Marks
    timing: CandidateTiming


def begin_marks(problem: FlatProblem, base: Marks) -> None:
    """Write the first mark, which is before the first op."""
    # Row 0 of each array: ranks have run nothing, and owe nothing. Its cursor is that of ``place_marks``.
    for rank in range(len(problem.work)):
        base.pending[rank] = problem.offsets[rank]
        base.owed[rank] = 0
        base.clock[rank] = 0.0
        base.held[rank] = 0.0
        base.left[rank] = problem.work[rank]
        base.begin[rank] = 0.0
    for op_class in range(len(problem.rank)):
        base.done[op_class] = 0
    base.valid[0] = 1


def begin_at(marks: Marks, mark: int, timing: CandidateTiming) -> None:
    """Set a timing to its state at a mark."""
    ranks = len(timing.cursor)
    classes = len(timing.done)
    # By rank, then by class.
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
    """Write the state of a timing at a mark."""
    ranks = len(timing.cursor)
    classes = len(timing.done)
    for rank in range(ranks):
        at = mark * ranks + rank
        # Not where to look from, but where it is: what is done of the places before may move elsewhere.
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
    """Copy a mark except for its places, which are the same."""
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
    """Place the marks of a candidate just timed equal times apart.

    An op that has ended by some time needs no op that has not, so that a candidate comes through these places together.
    """
    count = len(marks.valid) - 1
    ranks = len(problem.work)
    for rank in range(ranks):
        place = problem.offsets[rank]
        stop = problem.offsets[rank + 1]
        for op_class in range(len(problem.rank)):
            if problem.rank[op_class] == rank:
                timing.done[op_class] = 0
        # A mark is after the last op of the rank that has ended by its time.
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
    # Nothing has been timed up to any of them yet.
    for mark in range(count + 1):
        marks.valid[mark] = 0


def note_touched(problem: FlatProblem, decisions: Decisions, change: Change, touched: Touched) -> None:
    """Note the places that a move has changed: those between where ops were and where they are, or its own."""
    # Forget the places of the step before.
    for which in range(touched.number[0]):
        touched.last[touched.ranks[which]] = -1
    touched.number[0] = 0
    if change.moves[0] == 0:
        touch(problem.rank[decisions.order[change.terms[0]]], change.terms[0], change.terms[0], touched)
    # All ops between the two places have moved by one.
    for move in range(change.moves[0]):
        place = change.place[move]
        target = change.target[move]
        touch(problem.rank[decisions.order[target]], min(place, target), max(place, target), touched)


@inlined
def touch(rank: int, first: int, last: int, touched: Touched) -> None:
    """Add places of a rank to the changed ones."""
    # The first change of the rank, or a wider range of places.
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
    """Return the last mark that comes before all changes."""
    # The last mark is the end, and the first one always qualifies.
    mark = len(marks.valid) - 2
    while mark > 0:
        # No changed rank may have come past its first change there.
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
