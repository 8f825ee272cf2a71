"""The arrays that the search's kernels read and write; in an undecorated run they are lists.

Ops come in *classes*: class ``2 * s`` is the forward of stage s (stages of further model copies count on), and class
``2 * s + 1`` its backward.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeplan.model import Floats, Ints

SEARCH_COMPILES_AFTER = 500_000
"""Op evaluations after which the search's kernels are compiled: a search of more than a moment makes many millions."""


class FlatProblem(NamedTuple):
    """The problem as flat arrays, by rank (``offsets``, ``work``, ``cap``) and by class (the others).

    Attributes
    ----------
    offsets
        Rank r's order is ``order[offsets[r]:offsets[r + 1]]``.
    work
        The least time that all ops of a rank take together, weight backwards included.
    cap
        The most that a rank may hold, with the slack of rounded sums.
    rank, time, change
        Where a class runs, how long it takes, and what it adds to the memory of its rank.
    source, delay
        The class whose result it waits for (-1: none), and how long the transfer takes.
    consumer
        The rank that may wait for the class, or -1.
    first
        Where the ends of the class stand in ``Timing.finish``.
    weight_time, weight_change
        How long the weight backward takes that a backward of the class leaves owed, and what it adds to memory; a
        negative time for classes that leave none owed.
    full_time, full_change
        The same as ``time`` and ``change`` where a backward of the class runs in full, and leaves nothing owed.
    overlap
        How long a forward takes together with the backward that it overlaps with, at least.
    """

    offsets: Ints
    work: Floats
    cap: Floats
    rank: Ints
    time: Floats
    change: Floats
    source: Ints
    delay: Floats
    consumer: Ints
    first: Ints
    weight_time: Floats
    weight_change: Floats
    full_time: Floats
    full_change: Floats
    overlap: Floats


class Decisions(NamedTuple):
    """A candidate: ``order``, ``forced`` and ``joined`` by position, rank after rank; ``full`` by op.

    Attributes
    ----------
    order
        The class that runs there.
    forced
        How many weight backwards must run before it.
    joined
        1 where a forward and a backward, this op and the next, run overlapped.
    full
        1 where a backward runs full: I and W in one. Ops stand as in ``Timing.finish``, so that it moves with its op.
        Empty where full backwards gain nothing.
    """

    order: Ints
    forced: Ints
    joined: Ints
    full: Ints


class Timing(NamedTuple):
    """What timing a candidate writes.

    Attributes
    ----------
    cursor, pending, owed, clock, held, left, begin, stack
        By rank: the op reached; where to look for the next W owed; how many are owed; when the rank is free; what it
        holds; work not yet done; its first start; ranks that can go on.
    done, waiting
        By class: how many have run; whether a rank waits for the next.
    finish
        End of each op of each class.
    weights, owes, waited
        By position of the order: how many Ws run right before that op; 1 where it leaves a W owed; and 1 where it waits
        for its source (2: for that of the op that it overlaps with).
    position
        Where each op of each class stands in the order.
    """

    cursor: Ints
    pending: Ints
    owed: Ints
    clock: Floats
    held: Floats
    left: Floats
    begin: Floats
    stack: Ints
    done: Ints
    waiting: Ints
    finish: Floats
    weights: Ints
    owes: Ints
    waited: Ints
    position: Ints


class AnnealingState(NamedTuple):
    """Where an annealing stands, so that it can go on.

    Attributes
    ----------
    value
        Of the current decisions, and of the best.
    temperature
        One number: how much worse, on average, a step may be.
    random
        One number: the generator's state.
    critical
        How many positions the longest chain of the current decisions has, and then these positions.
    """

    value: Floats
    temperature: Floats
    random: Ints
    critical: Ints


class Change(NamedTuple):
    """From where to where ops were moved, in order; to undo it."""

    place: Ints
    target: Ints


class ListState(NamedTuple):
    """What list scheduling writes.

    Attributes
    ----------
    room, spare, filled
        By rank: what it may still take in, all owed weight backwards done; the same in the test for dead ends; where its
        next op goes.
    done
        By class: how many have run.
    refused
        By class: how many backwards had run when its next forward was found to lead to a dead end; until one more has
        run, it still does.
    """

    room: Floats
    spare: Floats
    filled: Ints
    done: Ints
    refused: Ints


class Block(NamedTuple):
    """A building block: when the ops of a microbatch are due, and how it is repeated.

    Attributes
    ----------
    due
        By class: when it is due for the first microbatch.
    style
        Five numbers. 1 where forwards are drawn forward before a rank's first backward; 1 where a backward that is ready
        goes before something due that is not; 1 where weight backwards stay where repeating has put them; 1 where
        backwards run in full; and how many microbatches make a group.
    inner
        One number: the time between the microbatches of a group.
    """

    due: Floats
    style: Ints
    inner: Floats


class Route(NamedTuple):
    """How classes lie.

    Attributes
    ----------
    offsets, item
        Rank r runs the classes ``item[offsets[r]:offsets[r + 1]]``.
    follower
        By class: the class that waits for it, or -1.
    way
        The classes in the order in which a microbatch passes through them, copy after copy.
    """

    offsets: Ints
    item: Ints
    follower: Ints
    way: Ints


class RankClocks(NamedTuple):
    """What repeating a block writes by rank beside a timing.

    Attributes
    ----------
    wake, busy
        When it next decides what to do, and 1 if until then it runs something.
    backwards
        How many of its backwards have run.
    """

    wake: Floats
    busy: Ints
    backwards: Ints
