"""Ops by class: head, time and tail of the F, I and W of each stage.

A class is one kind of op on one stage. Its *head* is the shortest chain that must come before it, its *tail* the shortest
chain that must follow it. For three stages and one microbatch::

    stage 0   F0 .............. I0 W0          head of I1 = F0 + F1 + F2 + I2 and the hops between
    stage 1      F1 ...... I1 W1               tail of F1 = F2 + I2 + I1 + max(W1, I0 + W0) and the hops between
    stage 2         F2 I2 W2
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import Floats, Ints, Placement

FORWARD, INPUT, WEIGHT = 0, 1, 2
"""Rows of arrays of classes."""


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
    copy, stage
        Copy of the model and stage of each column, shape (classes,).
    head, time, tail
        As in :class:`OpClasses`.
    work
        Least time of all ops of a class together: overlapping them with others saves as much as possible.
    count
        Number of ops of each class, shape (classes,).
    """

    copy: NDArray[np.intp]
    stage: NDArray[np.intp]
    head: Floats
    time: Floats
    tail: Floats
    work: Floats
    count: Ints

    def by_copy(self) -> list[list[int]]:
        """Return the columns of each copy of the model that has microbatches, in the order of its stages."""
        columns = zip(self.copy.tolist(), self.count.tolist(), strict=True)
        copies: dict[int, list[int]] = {}
        for column, (copy, count) in enumerate(columns):
            if count:
                copies.setdefault(copy, []).append(column)
        return list(copies.values())

    @property
    def first_head(self) -> float:
        """Return the earliest time at which the rank can start."""
        return float(self.head[FORWARD].min())

    @property
    def first_way(self) -> float:
        """Return the time from the rank's earliest start to the earliest start of its first backward."""
        return float(self.head[INPUT].min()) - self.first_head

    def since_start(self) -> RankClasses:
        """Return the classes with heads that count from the rank's first start, whichever copy it belongs to."""
        head = self.head.copy()
        for copy in np.unique(self.copy):
            here = self.copy == copy
            head[:, here] -= head[FORWARD, here].min()
        return replace(self, head=head)


def op_classes(placement: Placement, costs: Costs, copy: int = 0, slices: int = 1) -> OpClasses:
    """Return the classes of one copy of the model."""
    costs = costs.occupied(placement, slices)
    # Least times of F, I and W. A full backward may be shorter than I and W together.
    forward = costs.forward / slices
    inputs = np.minimum(costs.backward_input, costs.backward) / slices
    both = np.minimum(costs.backward_input + costs.backward_weight, costs.backward) / slices
    weights = both - inputs
    hops = np.where(placement.crosses[copy], costs.transfer.time(slices), 0.0)
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
        np.stack((forward, inputs, weights)),
        np.stack((tail_forward, tail_inputs, np.zeros(len(forward)))),
    )


def rank_classes(placement: Placement, microbatches: int, costs: Costs, slices: int = 1) -> list[RankClasses]:
    """Return the classes of every rank."""
    costs = costs.occupied(placement, slices)
    counts = slices * np.bincount(placement.copy_of(np.arange(microbatches, dtype=np.int32), microbatches))
    copies = [op_classes(placement, costs, copy, slices) for copy in range(len(counts))]
    gains = _gains(placement, costs) / slices
    return [_on_rank(rank, placement, copies, counts, gains) for rank in range(placement.ranks)]


def _on_rank(rank: int, placement: Placement, copies: list[OpClasses], counts: Ints, gains: Floats) -> RankClasses:
    here = [np.array(placement.stages_on(rank, copy), np.intp) for copy in range(len(copies))]
    copy = np.repeat(np.arange(len(copies)), [len(stages) for stages in here])
    stage = np.concatenate(here)
    head, time, tail = (
        np.concatenate(
            [getattr(classes, name)[:, stages] for classes, stages in zip(copies, here, strict=True)], axis=1
        )
        for name in ("head", "time", "tail")
    )
    least = time.copy()
    least[FORWARD] -= gains[stage]
    return RankClasses(
        copy=copy, stage=stage, head=head, time=time, tail=tail, work=counts[copy] * least, count=counts[copy]
    )


def _gains(placement: Placement, costs: Costs) -> Floats:
    """Return the most time that overlapping a forward of each stage with a backward can save, shape (stages,)."""
    gains = np.zeros(costs.stages)
    if costs.overlap is None:
        return gains
    for rank in range(placement.ranks):
        here = sorted({stage for copy in range(placement.copies) for stage in placement.stages_on(rank, copy)})
        stages = np.array(here)
        forward, backward = costs.forward[here, None], costs.backward[None, here]
        together = costs.pair_times(stages[:, None], stages[None, :], backward)
        gains[here] = np.maximum(gains[here], (forward + backward - together).max(axis=1))
    return np.maximum(gains, 0.0)
