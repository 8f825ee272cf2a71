"""Lower bounds: what no schedule of a placement can beat, whatever the order of its ops.

For each rank, any set of its ops must run one after the other: not before the earliest of them can start (its *head*: the
chain of ops and transfers that leads to it), and not so that less than the shortest *tail* follows the last of them.
The largest such sum over sets given by a least head and a least tail is the preemptive one-machine bound (Carlier 1982,
"The one-machine sequencing problem"), and every rank has one. The longest chain of a single microbatch is another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs
from pipeplan.costs.table import Floats
from pipeplan.model import Placement


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the makespan, in the unit of the costs, and in words what it comes from."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Jobs:
    """One copy's ops by class (F, I, W of each stage): arrays of shape (3, stages)."""

    head: Floats
    time: Floats
    tail: Floats


def lower_bound(placement: Placement, microbatches: int, costs: Costs, *, slices: int = 1) -> Bound:
    """A bound on the makespan of any schedule of this placement and these costs, in order or not, split or not."""
    best = Bound(0.0, "no work")
    counts = np.bincount(placement.copy_of(np.arange(microbatches, dtype=np.int32), microbatches))
    copies = [_jobs(placement, copy, costs, slices) for copy in range(len(counts))]
    for jobs in copies:
        chain = float((jobs.head + jobs.time + jobs.tail).max())
        best = max(best, Bound(chain, "the chain of one microbatch through all stages"), key=_value)
    for rank in range(placement.ranks):
        heads, works, tails = _classes_on(rank, placement, copies, counts * slices, _gains(placement, costs) / slices)
        best = max(best, Bound(_one_machine(heads, works, tails), f"the work of rank {rank}"), key=_value)
    return best


def earliest_starts(placement: Placement, costs: Costs, *, slices: int = 1) -> Floats:
    """When the first microbatch can reach each rank at the earliest, shape (ranks,)."""
    earliest = np.full(placement.ranks, np.inf)
    for copy in range(placement.copies):
        np.minimum.at(earliest, placement.table[copy], _jobs(placement, copy, costs, slices).head[0])
    return earliest


def _value(bound: Bound) -> float:
    return bound.value


def _jobs(placement: Placement, copy: int, costs: Costs, slices: int) -> _Jobs:
    """Heads, times and tails of one slice's F, I and W on each stage; a full backward counts as I with W behind it."""
    forward = costs.forward / slices
    inputs = np.minimum(costs.backward_input, costs.backward) / slices
    both = np.minimum(costs.backward_input + costs.backward_weight, costs.backward) / slices
    weights = both - inputs
    ranks = placement.table[copy]
    hops = np.where(ranks[1:] != ranks[:-1], costs.transfer.time(slices), 0.0)
    down = np.concatenate(([0.0], np.cumsum(forward[:-1] + hops)))
    turn = down[-1] + forward[-1]
    up = turn + np.concatenate((np.cumsum((inputs[1:] + hops)[::-1])[::-1], [0.0]))
    tail_inputs = np.empty(len(forward))
    tail_inputs[0] = weights[0]
    for stage in range(1, len(forward)):
        onward = hops[stage - 1] + inputs[stage - 1] + tail_inputs[stage - 1]
        tail_inputs[stage] = max(weights[stage], onward)
    last_tail = inputs[-1] + tail_inputs[-1]
    tail_forward = last_tail + np.concatenate((np.cumsum((forward[1:] + hops)[::-1])[::-1], [0.0]))
    return _Jobs(
        np.stack((down, up, up + inputs)),
        np.stack((forward, inputs, weights)),
        np.stack((tail_forward, tail_inputs, np.zeros(len(forward)))),
    )


def _gains(placement: Placement, costs: Costs) -> Floats:
    """The most time that overlapping a forward of each stage with a backward on its rank can save, shape (stages,)."""
    gains = np.zeros(costs.stages)
    if costs.overlap is None:
        return gains
    for rank in range(placement.ranks):
        here = sorted({stage for copy in range(placement.copies) for stage in placement.stages_on(rank, copy)})
        forward, backward = costs.forward[here, None], costs.backward[None, here]
        together = np.maximum(costs.overlap[here, None], np.maximum(forward, backward))
        gains[here] = np.maximum(gains[here], (forward + backward - together).max(axis=1))
    return np.maximum(gains, 0.0)


def _classes_on(
    rank: int, placement: Placement, copies: list[_Jobs], counts: np.ndarray, gains: Floats
) -> tuple[Floats, Floats, Floats]:
    """Head, total work and tail of each class of ops on a rank."""
    heads, works, tails = [], [], []
    for copy, jobs in enumerate(copies):
        here = list(placement.stages_on(rank, copy))
        work = jobs.time[:, here].copy()
        work[0] -= gains[here]
        heads.append(jobs.head[:, here].ravel())
        works.append(counts[copy] * work.ravel())
        tails.append(jobs.tail[:, here].ravel())
    return np.concatenate(heads), np.concatenate(works), np.concatenate(tails)


def _one_machine(heads: Floats, works: Floats, tails: Floats) -> float:
    """The largest least head + work + least tail over the sets of classes with head >= h and tail >= t."""
    late = heads[None, :] >= heads[:, None]
    long = tails[None, :] >= tails[:, None]
    work = np.einsum("hk,tk,k->ht", late, long, works)
    filled = np.einsum("hk,tk->ht", late, long) > 0
    return float(np.where(filled, heads[:, None] + work + tails[None, :], 0.0).max())
