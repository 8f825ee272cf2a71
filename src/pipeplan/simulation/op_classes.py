"""Ops by class (F, I and W of each stage): how early they can start, how long they take, how much must follow them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import Floats, Ints, Placement

FORWARD, INPUT, WEIGHT = 0, 1, 2
"""Rows of the arrays by class."""


@dataclass(frozen=True, slots=True)
class OpClasses:
    """One copy's ops by class: arrays of shape (3, stages), of one slice of one microbatch.

    Attributes
    ----------
    head
        The chain of ops and transfers that leads to it.
    time
        How long it takes. A full backward counts as I with W behind it, and takes no longer than these two.
    tail
        The chain that follows it.
    """

    head: Floats
    time: Floats
    tail: Floats


@dataclass(frozen=True, slots=True)
class RankClasses:
    """The classes of a rank, of all copies that it holds stages of: arrays of shape (3, classes).

    Attributes
    ----------
    copy, stage
        Copy of the model and stage of each column, shape (classes,).
    head, time, tail
        As in :class:`OpClasses`.
    work
        What all ops of a class together take at least; overlapping them with others saves the most it can.
    count
        How many ops there are of each column's classes, shape (classes,).
    """

    copy: NDArray[np.intp]
    stage: NDArray[np.intp]
    head: Floats
    time: Floats
    tail: Floats
    work: Floats
    count: Ints

    def by_copy(self) -> list[list[int]]:
        """The columns of each copy of the model that has microbatches, in the order of its stages."""
        columns = zip(self.copy.tolist(), self.count.tolist(), strict=True)
        copies: dict[int, list[int]] = {}
        for column, (copy, count) in enumerate(columns):
            if count:
                copies.setdefault(copy, []).append(column)
        return list(copies.values())

    @property
    def first_head(self) -> float:
        """When the rank can start at the earliest."""
        return float(self.head[FORWARD].min())

    @property
    def first_way(self) -> float:
        """From then to the earliest start of its first backward."""
        return float(self.head[INPUT].min()) - self.first_head

    def since_start(self) -> RankClasses:
        """The same with heads that hold from the rank's first start on, whichever copy of the model that belongs to."""
        head = self.head.copy()
        for copy in np.unique(self.copy):
            here = self.copy == copy
            head[:, here] -= head[FORWARD, here].min()
        return replace(self, head=head)


def op_classes(placement: Placement, costs: Costs, copy: int = 0, slices: int = 1) -> OpClasses:
    """The classes of one copy of the model."""
    costs = costs.occupied(placement, slices)
    forward = costs.forward / slices
    inputs = np.minimum(costs.backward_input, costs.backward) / slices
    both = np.minimum(costs.backward_input + costs.backward_weight, costs.backward) / slices
    weights = both - inputs
    hops = np.where(placement.crosses[copy], costs.transfer.time(slices), 0.0)
    down = np.concatenate(([0.0], np.cumsum(forward[:-1] + hops)))
    turn = down[-1] + forward[-1]
    up = turn + np.concatenate((np.cumsum((inputs[1:] + hops)[::-1])[::-1], [0.0]))
    tail = 0.0
    tails: list[float] = []
    for weight, onward in zip(weights.tolist(), [0.0, *(hops + inputs[:-1]).tolist()], strict=True):
        tail = max(weight, onward + tail) if tails else weight
        tails.append(tail)
    tail_inputs = np.array(tails)
    last_tail = inputs[-1] + tail_inputs[-1]
    tail_forward = last_tail + np.concatenate((np.cumsum((forward[1:] + hops)[::-1])[::-1], [0.0]))
    return OpClasses(
        np.stack((down, up, up + inputs)),
        np.stack((forward, inputs, weights)),
        np.stack((tail_forward, tail_inputs, np.zeros(len(forward)))),
    )


def rank_classes(placement: Placement, microbatches: int, costs: Costs, slices: int = 1) -> list[RankClasses]:
    """The classes of every rank."""
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
    """The most time that overlapping a forward of each stage with a backward on its rank can save, shape (stages,)."""
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
