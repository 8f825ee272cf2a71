"""Ops by class: head, time and tail of the F, I and W of each stage.

A class is one kind of op on one stage, for microbatches that are alike. Its *head* is the shortest chain that must come
before it, its *tail* the shortest chain that must follow it. For three stages and one microbatch::

    stage 0   F0 .............. I0 W0          head of I1 = F0 + F1 + F2 + I2 and the hops between
    stage 1      F1 ...... I1 W1               tail of F1 = F2 + I2 + I1 + max(W1, I0 + W0) and the hops between
    stage 2         F2 I2 W2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import Floats, Ints, Kind, Placement

FORWARD, INPUT, WEIGHT = 0, 1, 2
"""Rows of arrays of classes."""

MANY_STAGES = 256
"""Number of stages on a rank beyond which no best pairing is computed: its time grows with the cube."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Microbatches of one copy of the model that take the same times and bytes.

    Attributes
    ----------
    copy
        Copy of the model.
    microbatch
        The first of them.
    count
        Number of them.
    """

    copy: int
    microbatch: int
    count: int


def alike_microbatches(placement: Placement, microbatches: int, costs: Costs) -> list[Alike]:
    """Return the microbatches of a schedule by what they take; a copy without microbatches has a group of none.

    Raises
    ------
    CostError
        If the costs have factors of another number of microbatches.
    """
    costs.require_microbatches(microbatches)
    copies = placement.copy_of(np.arange(microbatches, dtype=np.int32), microbatches)
    taken = copies[None, :] if costs.factors is None else np.vstack((copies, costs.factors.all))
    _, firsts, counts = np.unique(taken, axis=1, return_index=True, return_counts=True)
    groups = [
        Alike(int(copies[first]), first, count) for first, count in zip(firsts.tolist(), counts.tolist(), strict=True)
    ]
    used = set(copies.tolist())
    return groups + [Alike(copy, 0, 0) for copy in range(placement.copies) if copy not in used]


@dataclass(frozen=True, slots=True)
class OpClasses:
    """Classes of one copy of the model, for one slice of one microbatch: arrays of shape (3, stages).

    Attributes
    ----------
    head
        Length of the chain of ops and transfers that leads to the op.
    time
        Time of the op. A full backward counts as I with W after it, and takes no longer than these two.
    tail
        Length of the chain that follows the op.
    """

    head: Floats
    time: Floats
    tail: Floats


@dataclass(frozen=True, slots=True)
class RankClasses:
    """Classes of a rank, over all copies of the model that it holds stages of: arrays of shape (3, classes).

    Attributes
    ----------
    group, stage
        Number of the microbatches that are alike, of one copy of the model, and stage of each column, shape (classes,).
    head, time, tail
        As in :class:`OpClasses`.
    work
        Least time of all ops of a class together. What pairs save is divided between their ops, so that the classes of any
        set take at least the sum of theirs; see :func:`divisions`.
    count
        Number of ops of each class, shape (classes,).
    microbatch
        The first microbatch of each class, shape (classes,).
    """

    group: NDArray[np.intp]
    stage: NDArray[np.intp]
    head: Floats
    time: Floats
    tail: Floats
    work: Floats
    count: Ints
    microbatch: NDArray[np.intp]

    @property
    def least(self) -> Floats:
        """Return the least time of an op of each class, its part of what pairs save left out; of the shape of ``work``."""
        return self.work / np.maximum(self.count, 1)

    def by_group(self) -> list[list[int]]:
        """Return the columns of each group that has microbatches, in the order of its stages."""
        groups: dict[int, list[int]] = {}
        for column, (group, count) in enumerate(zip(self.group.tolist(), self.count.tolist(), strict=True)):
            if count:
                groups.setdefault(group, []).append(column)
        return list(groups.values())

    @property
    def first_head(self) -> float:
        """Return the earliest time at which the rank can start."""
        return float(self.head[FORWARD].min())

    @property
    def first_way(self) -> float:
        """Return the time from the rank's earliest start to the earliest start of its first backward."""
        return float(self.head[INPUT].min()) - self.first_head

    def since_start(self) -> RankClasses:
        """Return the classes with heads that count from the rank's first start, whichever group it belongs to."""
        head = self.head.copy()
        for group in np.unique(self.group):
            here = self.group == group
            head[:, here] -= head[FORWARD, here].min()
        return replace(self, head=head)


def op_classes(placement: Placement, costs: Costs, copy: int = 0, slices: int = 1) -> OpClasses:
    """Return the classes of one copy of the model; of microbatches that differ, those of the first one.

    Of slices that differ, times are the mean, and heads and tails those of the first slice, which is the shortest.
    """
    costs = costs.occupied(placement, slices)
    # Least times of F, I and W. A full backward may be shorter than I and W together.
    forward, full, inputs, weights = (costs.times(kind)[:, 0] for kind in (Kind.F, Kind.B, Kind.I, Kind.W))
    both = np.minimum(inputs + weights, full) / slices
    forward, inputs = forward / slices, np.minimum(inputs, full) / slices
    weights = both - inputs
    times = np.stack((forward, inputs, weights))
    if costs.unequal(slices):
        # A full backward may be as short as I, but its first slice has no smaller factor than that of I.
        forward, inputs = forward * costs.first_slice(Kind.F, slices), inputs * costs.first_slice(Kind.I, slices)
        weights = weights * np.minimum(costs.first_slice(Kind.W, slices), costs.first_slice(Kind.B, slices))
    hops = np.where(placement.crosses[copy], costs.transfer_times(slices)[:-1, 0], 0.0)
    # Heads: down the stages, turn at the last one, and up again.
    down = np.concatenate(([0.0], np.cumsum(forward[:-1] + hops)))
    turn = down[-1] + forward[-1]
    up = turn + np.concatenate((np.cumsum((inputs[1:] + hops)[::-1])[::-1], [0.0]))
    # Tails of I, from the first stage on: its own W, or the way further up, whichever is longer.
    tail = 0.0
    tails: list[float] = []
    for weight, onward in zip(weights.tolist(), [0.0, *(hops + inputs[:-1]).tolist()], strict=True):
        tail = max(weight, onward + tail) if tails else weight
        tails.append(tail)
    tail_inputs = np.array(tails)
    # Tails of F, from the last stage on: the way down, the turn, and the last stage's tail of I.
    last_tail = inputs[-1] + tail_inputs[-1]
    tail_forward = last_tail + np.concatenate((np.cumsum((forward[1:] + hops)[::-1])[::-1], [0.0]))
    return OpClasses(
        np.stack((down, up, up + inputs)),
        times,
        np.stack((tail_forward, tail_inputs, np.zeros(len(forward)))),
    )


def rank_classes(placement: Placement, microbatches: int, costs: Costs, slices: int = 1) -> list[list[RankClasses]]:
    """Return the classes of every rank, for each way of :func:`divisions` to divide what pairs save.

    Every way gives valid bounds; none is best for all of them.
    """
    costs = costs.occupied(placement, slices)
    groups = alike_microbatches(placement, microbatches, costs)
    classes = (classes_of(placement, costs, group, slices) for group in groups)
    arrays = [np.stack((group.head, group.time, group.tail)) for group in classes]
    shares = np.array([(slices * group.count, group.microbatch) for group in groups], np.int64).T
    ranks = [_on_rank(rank, placement, groups, shares, arrays) for rank in range(placement.ranks)]
    if not costs.has_pair_times:
        return [ranks]
    saving = [_paired(rank, costs, slices) for rank in ranks]
    return [list(way) for way in zip(*saving, strict=True)]


def classes_of(placement: Placement, costs: Costs, group: Alike, slices: int = 1) -> OpClasses:
    """Return the classes of the microbatches of a group."""
    return op_classes(placement, costs.of_microbatch(group.microbatch), group.copy, slices)


def _on_rank(rank: int, placement: Placement, groups: list[Alike], shares: Ints, arrays: list[Floats]) -> RankClasses:
    """Return the classes of a rank whose ops do not overlap.

    For each group, ``shares`` has its number of slices and first microbatch, and ``arrays`` the heads, times and tails of
    its classes.
    """
    number, stage, own = list[int](), list[int](), list[Floats]()
    for place, (group, values) in enumerate(zip(groups, arrays, strict=True)):
        here = placement.stages_on(rank, group.copy)
        number += [place] * len(here)
        stage += here
        own.append(values[:, :, np.array(here, np.intp)])
    count, microbatch = shares[:, number]
    head, time, tail = np.concatenate(own, axis=2)
    return RankClasses(
        group=np.array(number, np.intp),
        stage=np.array(stage, np.intp),
        head=head,
        time=time,
        tail=tail,
        work=count * time,
        count=count,
        microbatch=microbatch,
    )


def _paired(rank: RankClasses, costs: Costs, slices: int) -> Iterator[RankClasses]:
    """Yield the classes of a rank with the least work of ops that may overlap, for each way of :func:`divisions`."""
    stages, column = np.unique(rank.stage, return_inverse=True)
    halves = costs.backward_input[stages] + costs.backward_weight[stages]
    # Beside its halves, a full backward that is longer saves less.
    longer = np.maximum(costs.backward[stages] - halves, 0.0) if costs.factors is None else 0.0
    saving = np.maximum(pair_savings(costs, stages, Kind.I), pair_savings(costs, stages, Kind.B) - longer)
    ways = divisions(np.maximum(saving, 0.0))
    # A pair saves its one gap and, of the times of its ops, no more than either one's factor times what equal ones do.
    factors = np.ones((2, len(column)))
    if costs.factors is not None:
        backward = np.maximum(costs.factors.backward_input, costs.factors.backward_weight)
        both = np.stack((costs.factors.forward, backward))[:, rank.stage, rank.microbatch]
        factors = np.maximum(both, 1.0)
    # Of slices that differ, each forward saves its own part.
    for way in ways[:1] if costs.unequal(slices) else ways:
        forward, backward = (part[column] / slices * factor for part, factor in zip(way, factors, strict=True))
        least = rank.time.copy()
        least[FORWARD] -= forward
        # I saves first, as it may overlap alone; W the rest, in a full backward.
        least[INPUT] = np.maximum(rank.time[INPUT] - backward, 0.0)
        least[WEIGHT] -= np.clip(backward - rank.time[INPUT], 0.0, rank.time[WEIGHT])
        yield replace(rank, work=rank.count * least)


def pair_savings(costs: Costs, stages: Ints, kind: Kind) -> Floats:
    """Return how much less a forward and a backward of ``kind``, B or I, take as a pair than one after the other.

    The array has a row for the forward of each of the stages, and a column for the backward. The costs have pair times.
    """
    backward = (costs.backward_input if kind is Kind.I else costs.backward)[stages]
    together = costs.pair_times(stages[:, None], stages[None, :], backward[None, :], kind is Kind.I)
    saving: Floats = costs.forward[stages, None] + backward[None, :] - together
    return saving


def divisions(saving: Floats) -> list[tuple[Floats, Floats]]:
    """Return ways to divide what each pair saves between its forward, the row, and its backward, the column.

    In each way, the two parts of any pair sum to at least what it saves. So ops that take their own times less their parts
    never take less together, however they are paired. The first way gives all to forwards: the most that any pair of
    theirs saves. In the other two, the parts sum to what the best pairing saves: they are dual solutions of the assignment
    problem, one with the most for forwards and one with the most for backwards (Kuhn, "The Hungarian method for the
    assignment problem", Naval Research Logistics Quarterly 2, 1955). Of very many stages there is only the first.
    """
    size = len(saving)
    all_to_forwards = saving.max(axis=1), np.zeros(size)
    if size > MANY_STAGES:
        return 3 * [all_to_forwards]
    forward, backward = np.zeros(size), np.zeros(size + 1)
    # Row that each column is assigned to, -1: none. The last column starts the search for one that is free.
    row_of = np.full(size + 1, -1)
    for row in range(size):
        row_of[size], column = row, size
        reached, slack, source = np.zeros(size + 1, np.bool_), np.full(size + 1, np.inf), np.zeros(size, np.intp)
        while row_of[column] >= 0:
            reached[column] = True
            here = row_of[column]
            excess = forward[here] + backward[:size] - saving[here]
            closer = ~reached[:size] & (excess < slack[:size])
            slack[:size][closer], source[closer] = excess[closer], column
            nearest = int(np.where(reached, np.inf, slack)[:size].argmin())
            step = slack[nearest]
            forward[row_of[reached]] -= step
            backward[reached] += step
            slack[~reached] -= step
            column = nearest
        while column != size:
            row_of[column], column = row_of[source[column]], int(source[column])
    backward = backward[:size]
    most_forward, most_backward = backward.min(), forward.min()
    return [
        all_to_forwards,
        (forward + most_forward, backward - most_forward),
        (forward - most_backward, backward + most_backward),
    ]
