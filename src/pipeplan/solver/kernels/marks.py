"""The arrays with which a candidate is timed from where it was changed on, not from its beginning."""

from __future__ import annotations

from typing import NamedTuple

from pipeplan.model import Floats, Ints


class Marks(NamedTuple):
    """What timing had written when every rank had come so far, for several such places: rows, one behind the other.

    Row ``mark`` of an array of ranks begins at ``mark * ranks``, of one of classes at ``mark * classes``. The first row is
    the beginning; the last one, the end, has a cursor alone.

    Attributes
    ----------
    valid
        1 where the candidate comes through these places together; shape (marks,).
    cursor, pending, owed, clock, held, left, begin
        As in a timing; shape (marks * ranks,).
    done
        As in a timing; shape (marks * classes,).
    """

    valid: Ints
    cursor: Ints
    pending: Ints
    owed: Ints
    clock: Floats
    held: Floats
    left: Floats
    begin: Floats
    done: Ints


class Touched(NamedTuple):
    """Where a step has changed the order.

    Attributes
    ----------
    number, ranks
        How many ranks, shape (1,), and which; shape (ranks,).
    first, last
        Of these ranks, the first and the last place that may differ; of others ``last`` is -1; shape (ranks,).
    """

    number: Ints
    ranks: Ints
    first: Ints
    last: Ints


class Stretch(NamedTuple):
    """Between which marks a candidate was timed.

    Attributes
    ----------
    ends
        The mark that it began at, the one that it got to, and 1 if from there on everything is as it was; shape (3,).
    visits
        How many places were timed since the array was made; shape (1,).
    """

    ends: Ints
    visits: Ints
