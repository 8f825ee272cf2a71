"""A lower bound from one large microbatch g: each other one delays it on its way, or follows it.

The way of g are its forwards on all stages, and its Is back to the first stage of a rank. Let another microbatch j be
*ahead* at an op of this way if it runs its own such op before g does. Ops of one kind and stage run on one rank, one after
the other:

- If j is ahead from the first forward on, that forward of j delays g.
- If j is behind at one op of the way, and ahead at the next one and ever after, its first of these two ops runs between
  those two of g, and delays g on its way.
- If j is behind at the last op of the way, it runs its I and its W on that stage after g has run its own I::

    rank    F of g    F of j ...        ... I of g | W of g  I of j  W of j

So each microbatch adds at least the shortest of its ops along the way, or its I and W at the end, whichever is less::

    makespan >= way of g + I and W of g + sum over j of min(least op of j along the way, I and W of j)

The delays of several microbatches add up, because each runs between two ops of g on one rank, or before the first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import Placement
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, op_classes

MOST = 16
"""Maximum number of microbatches that are looked at: those with the longest chains."""


def large_microbatch_bounds(placement: Placement, costs: Costs, slices: int = 1) -> Iterator[tuple[float, int, int]]:
    """Yield lower bounds on the makespan, each with the microbatch that it is about and the rank to which its way leads.

    There are none for microbatches that are alike, sliced sequences, and several copies of the model.

    Parameters
    ----------
    costs
        Costs that include what ops lose between each other.
    """
    if costs.factors is None or placement.copies > 1 or slices > 1 or costs.overlap is not None:
        return
    chains = [op_classes(placement, costs.of_microbatch(number)) for number in range(costs.factors.microbatches)]
    lengths = np.array([float((chain.head + chain.time + chain.tail).max()) for chain in chains])
    times = np.stack([chain.time for chain in chains])
    # A message of any other microbatch may be shorter than that of g.
    hops = np.where(placement.crosses[0], costs.transfer_times()[:-1].min(axis=1), 0.0)
    forwards = times[:, FORWARD].min(axis=1)
    large = np.argsort(-lengths, kind="stable")[:MOST]
    for rank in range(placement.ranks):
        stage = min(placement.stages_on(rank))
        along = np.minimum(forwards, times[:, INPUT, stage + 1 :].min(axis=1, initial=np.inf))
        end = times[:, INPUT, stage] + times[:, WEIGHT, stage]
        way = times[:, FORWARD].sum(axis=1) + times[:, INPUT, stage + 1 :].sum(axis=1) + hops.sum() + hops[stage:].sum()
        added = np.minimum(along, end)
        values = way + end + added.sum() - added
        for microbatch in large.tolist():
            yield float(values[microbatch]), microbatch, rank
