"""Arrays that the search's kernels read and write; run as plain Python they are lists.

What the kernels count and name, one meaning a name:

============== ========================================================================================================
``rank``       a pipeline rank, from 0
``op_class``   forwards or backwards of one stage: class ``2 * s`` is the forward of stage s, class ``2 * s + 1`` its
               backward; the stages of further copies of the model count on
``index``      which op of its class, from 0: the k-th is that of the copy's k-th microbatch, as microbatches are alike.
               Where sequences are cut, the k-th forward is slice ``k % slices`` of microbatch ``k // slices``, and the
               backwards of a microbatch come in reverse. Where microbatches differ, ``Decisions.turn``
               says which of them is the k-th, and the index is that of its own op
``share``      how many ops every class has: the microbatches of each copy, times their slices
``op``         ``first[op_class] + index``: the number of an op among all of them
``place``      a position in ``Decisions.order``: rank after rank, each rank's ops in the order in which they run
``source``     the class whose result an op waits for, from the same microbatch; -1: none
``owed``       a weight backward (W) whose input backward (I) has run
``pending``    where to look for the W owed the longest: they run first in, first out, unless ``prefer`` says otherwise
``wide``       a problem in which more is decided, or known, than orders, Ws, pairs and full backwards: ``wide_kernel``
               times its candidates, ``timing_kernel`` those of all others
``time``       in the unit of the costs
``held``       of a rank: activations it holds, in the unit of the limits
``growth``     what an op adds to that, below 0 where it frees
============== ========================================================================================================

Annotations have the shapes of arrays. ``ranks`` and ``classes`` are numbers of ranks and classes. ``ops`` is the number of
forwards and backwards of all ranks, ``classes * share``, and so the number of places, too. The name of a field stands for
its number, or for the length of an array that may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from pipeplan.model import Floats, Ints

KEPT = 0
"""Mode of a microbatch on a stage: its activations stay on the rank."""

RECOMPUTED = 1
"""Mode: the activations are computed again right before the backward."""

OFFLOADED = 2
"""Mode: the activations are copied to the host and back."""


class WideProblem(NamedTuple):
    """Arrays of a wide problem in addition to those of a flat one.

    Attributes
    ----------
    recomputing
        Time of a class's R before its backward, for both classes of a stage.
    recompute_keeps
        Memory that a recomputed forward takes: the R takes the rest.
    copying
        Time of a copy to the host, or back.
    offloaded
        Memory that OFFLOAD frees, and RELOAD takes.
    sending
        Time of the transfer of the class's own result; 0 where it stays on the rank.
    link
        The link that it takes, -1 for none. Without contention there are none.
    modes
        1 for every mode that may be decided on.
    varied
        What each op takes where microbatches differ, as a factor of the mean of its class, in sections by the number of the
        op: ``OF_OP`` forwards and backwards, ``OF_WEIGHT`` Ws, ``OF_RECOMPUTE`` Rs, ``OF_FULL`` full backwards, ``OF_SIZE``
        memory and copies, ``OF_MESSAGE`` transfers of results. Empty where they are alike.
    """

    recomputing: Annotated[Floats, "classes"]
    recompute_keeps: Annotated[Floats, "classes"]
    copying: Annotated[Floats, "classes"]
    offloaded: Annotated[Floats, "classes"]
    sending: Annotated[Floats, "classes"]
    link: Annotated[Ints, "classes"]
    modes: Annotated[Ints, "3"]
    varied: Annotated[Floats, "6 * ops or 0"]


OF_OP = 0
"""Section of ``WideProblem.varied``: times of forwards and backwards."""

OF_WEIGHT = 1
"""Section: times of Ws, by the number of the backward."""

OF_RECOMPUTE = 2
"""Section: times of Rs, by the number of the backward."""

OF_FULL = 3
"""Section: times of backwards that run in full."""

OF_SIZE = 4
"""Section: memory of ops, and times of copies."""

OF_MESSAGE = 5
"""Section: times of transfers of results."""


class WideTiming(NamedTuple):
    """Arrays that timing a candidate of a wide problem writes in addition to the others; empty for a flat one.

    Attributes
    ----------
    begun
        Number of Ws that a rank has run.
    queued, left_in
        Index in ``queue`` for the next offloaded forward, and of the oldest one whose OFFLOAD has no place yet.
    ahead
        The first place after which no RELOAD has been placed.
    out_free, in_free
        Times from which the link to the host, and the one from it, are free.
    looked
        Number of ops of a class before ``ahead``.
    link_free
        Time from which each link is free, of which there are at most as many as classes.
    ran
        The number of the I of the k-th W of a rank, at ``offsets[rank] + k``.
    op_at
        The number of the op at a place.
    queue
        Numbers of forwards that are offloaded, in their order; rank r's from ``offsets[r]`` on.
    offloads, reloads
        Number of OFFLOADs, and of RELOADs, right before the op at a place, after its Ws.
    copied, returned
        End of the copy of a forward to the host, and of the one back; the latter is below 0 before it has begun.
    gone
        1 once the OFFLOAD of a forward has its place.
    """

    begun: Annotated[Ints, "wide * ranks"]
    queued: Annotated[Ints, "wide * ranks"]
    left_in: Annotated[Ints, "wide * ranks"]
    ahead: Annotated[Ints, "wide * ranks"]
    out_free: Annotated[Floats, "wide * ranks"]
    in_free: Annotated[Floats, "wide * ranks"]
    looked: Annotated[Ints, "wide * classes"]
    link_free: Annotated[Floats, "wide * classes"]
    ran: Annotated[Ints, "wide * ops"]
    op_at: Annotated[Ints, "wide * ops"]
    queue: Annotated[Ints, "wide * ops"]
    offloads: Annotated[Ints, "wide * ops"]
    reloads: Annotated[Ints, "wide * ops"]
    copied: Annotated[Floats, "wide * ops"]
    returned: Annotated[Floats, "wide * ops"]
    gone: Annotated[Ints, "wide * ops"]


_I, _F = np.zeros(0, np.int64), np.zeros(0)

NO_WIDE_TIMING = WideTiming(_I, _I, _I, _I, _F, _F, _I, _F, _I, _I, _I, _I, _I, _F, _F, _I)
"""Empty arrays for candidates of a problem that is not wide."""


class FlatProblem(NamedTuple):
    """A problem as flat arrays: times, memory and dependencies.

    Attributes
    ----------
    offsets
        Rank r's order is ``order[offsets[r]:offsets[r + 1]]``.
    work
        The least time that all ops of a rank take together, weight backwards included.
    limit
        The most that a rank may hold, with the slack of rounded sums.
    rank, time, growth
        Rank of a class, time of an op of it, and the memory that the op adds to its rank.
    source, delay
        The class whose result it waits for (-1: none), and how long the transfer takes.
    follower, consumer
        The class that waits for the class, or -1; and its rank where that is another one, or -1.
    first
        The number of the class's first op.
    weight_time, weight_growth
        Time of the W that an I of the class leaves owed, and the memory that it adds; the time is below 0 for classes
        that leave none owed.
    full_time, full_growth
        The same as ``time`` and ``growth`` where a backward of the class runs in full, and leaves nothing owed.
    pairs, partner, partners
        Times of overlapped pairs: ``pairs[partner[f] + partner[b]]`` is that of a forward and a backward of classes f and b
        of one rank, and the next item that with the full backward. ``partners`` is the most backwards of a rank; 0 where no
        pair gains, and a pair takes the sum of both.
    slices
        Into how many slices each sequence is cut.
    wide
        1 for a wide problem, else 0.
    more
        What only a wide problem has; zeros for a flat one.
    """

    offsets: Annotated[Ints, "ranks + 1"]
    work: Annotated[Floats, "ranks > 0"]
    limit: Annotated[Floats, "ranks"]
    rank: Annotated[Ints, "classes > 0"]
    time: Annotated[Floats, "classes"]
    growth: Annotated[Floats, "classes"]
    source: Annotated[Ints, "classes"]
    delay: Annotated[Floats, "classes"]
    follower: Annotated[Ints, "classes"]
    consumer: Annotated[Ints, "classes"]
    first: Annotated[Ints, "classes"]
    weight_time: Annotated[Floats, "classes"]
    weight_growth: Annotated[Floats, "classes"]
    full_time: Annotated[Floats, "classes"]
    full_growth: Annotated[Floats, "classes"]
    pairs: Annotated[Floats, "classes * partners"]
    partner: Annotated[Ints, "classes"]
    partners: int
    slices: Annotated[int, "> 0"]
    wide: Annotated[int, "0 or 1"]
    more: WideProblem


class Target(NamedTuple):
    """The value to minimize: the makespan, or with ``span`` 1 the longest span.

    ``spread`` times the mean of that over the ranks is added, so that of two candidates that are equal the one that leaves
    more ranks early is the better.
    """

    span: int
    spread: float


class Decisions(NamedTuple):
    """The decisions of a candidate.

    Attributes
    ----------
    order
        The class that runs at each place.
    forced
        Number of weight backwards that must run before it.
    joined
        1 where a forward and a backward, this op and the next, run overlapped.
    full
        1 where a backward runs in full: I and W in one; by the number of the op, so that it moves with it. Empty where
        full backwards gain nothing.
    prefer
        Whose W comes next: 1 + the class for the k-th W of a rank at ``offsets[rank] + k``, or 0 for the one owed the
        longest, which also runs where the class owes none. Below 0 the same, and it fills no wait: it runs where it is
        forced, or where memory is short. Empty where it makes no difference.
    mode
        ``KEPT``, ``RECOMPUTED`` or ``OFFLOADED``, by the number of the forward. Empty where all are kept.
    lead
        Most places ahead of its backward at which an offloaded microbatch is fetched back, by the number of the forward.
    turn
        Which microbatch of its copy each class runs in each turn, class after class. Empty where microbatches are alike.
    """

    order: Annotated[Ints, "ops > 0"]
    forced: Annotated[Ints, "ops"]
    joined: Annotated[Ints, "ops"]
    full: Annotated[Ints, "ops or 0"]
    prefer: Annotated[Ints, "ops or 0"]
    mode: Annotated[Ints, "ops or 0"]
    lead: Annotated[Ints, "mode"]
    turn: Annotated[Ints, "ops // slices or 0"]


class CandidateTiming(NamedTuple):
    """Arrays that timing a candidate writes.

    Attributes
    ----------
    cursor, pending, owed
        The place that a rank has reached, where to look for its next W owed, and how many are owed.
    clock, held, left, begin
        Time from which a rank is free, memory that it holds, its work not yet done, and its first start (0 where
        that does not count).
    stack
        Ranks that can go on.
    done, waiting
        Number of ops of a class that have run, and 1 where a rank waits for the next.
    finish, position
        The end of each op, and its place.
    weights, owes
        Number of Ws right before the op at a place, and 1 where it leaves a W owed.
    waited
        1 where the op at a place waits for its source, 2 where for that of the op it overlaps with.
    more
        What only a wide problem has.
    """

    cursor: Annotated[Ints, "ranks"]
    pending: Annotated[Ints, "ranks"]
    owed: Annotated[Ints, "ranks"]
    clock: Annotated[Floats, "ranks"]
    held: Annotated[Floats, "ranks"]
    left: Annotated[Floats, "ranks"]
    begin: Annotated[Floats, "ranks"]
    stack: Annotated[Ints, "ranks"]
    done: Annotated[Ints, "classes"]
    waiting: Annotated[Ints, "classes"]
    finish: Annotated[Floats, "ops"]
    weights: Annotated[Ints, "ops"]
    owes: Annotated[Ints, "ops"]
    waited: Annotated[Ints, "ops"]
    position: Annotated[Ints, "ops"]
    more: WideTiming = NO_WIDE_TIMING


class AnnealingState(NamedTuple):
    """State of an annealing between two calls.

    Attributes
    ----------
    value
        Values of the current candidate, and of the best.
    temperature
        Mean worsening that a step may bring, in the unit of the costs, and the factor by which that falls per step.
    random
        The state of the random numbers.
    critical
        Number of places of the longest chain of the current candidate, then these places.
    """

    value: Annotated[Floats, "2"]
    temperature: Annotated[Floats, "2"]
    random: Annotated[Ints, "1"]
    critical: Annotated[Ints, "ops + 1"]


class Reach(NamedTuple):
    """The largest distance of a move, in places, stages and microbatches."""

    places: int
    stages: int
    microbatches: int


class Change(NamedTuple):
    """A drawn or applied move, with all that is needed to undo it.

    Attributes
    ----------
    terms
        Numbers that the move has drawn; its file explains them.
    moves
        Number of ops that were moved or changed.
    place, target
        From where to where each of them was moved, in order, or which were changed and what they were before.
    """

    terms: Annotated[Ints, "4"]
    moves: Annotated[Ints, "1"]
    place: Annotated[Ints, "ops"]
    target: Annotated[Ints, "ops"]


Propose = Callable[[FlatProblem, Reach, Decisions, int, Change, Ints], None]
"""Function of a move that draws what it does at a place."""

Apply = Callable[[FlatProblem, Decisions, Change], bool]
"""Function of a move that applies it."""

Undo = Callable[[FlatProblem, Decisions, Change], None]
"""Function of a move that undoes it."""


OUTSIDE = 13
"""Number of the first move from outside: that of the search's own moves."""


class OutsideMoves(NamedTuple):
    """Functions of moves from outside, which have the numbers from ``OUTSIDE`` on; as machine code their addresses."""

    propose: Annotated[Sequence[Propose], "outside"]
    apply: Annotated[Sequence[Apply], "outside"]
    undo: Annotated[Sequence[Undo], "outside"]


class StepOptions(NamedTuple):
    """Options of the steps of an annealing by moves.

    Attributes
    ----------
    evaluator
        Evaluator that times candidates.
    weights
        Weight of each move by its number: how often it is drawn.
    outside
        Functions of the moves that are not the search's own.
    reach, target
        Largest distances of a move, and the value to minimize.
    critical
        Number of steps out of 16 that start at an op of the longest chain.
    waits
        Quantiles of the exponential distribution.
    """

    evaluator: int
    weights: Annotated[Ints, "OUTSIDE + outside"]
    outside: OutsideMoves
    reach: Reach
    target: Target
    critical: int
    waits: Annotated[Floats, "quantiles > 0"]


class SearchWalk(NamedTuple):
    """The current candidate of an annealing by moves, the best one so far, its state, and the move of the current step."""

    decisions: Decisions
    best: Decisions
    state: AnnealingState
    change: Change
