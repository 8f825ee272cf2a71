"""kFkB: 1F1B whose turns are k microbatches long."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require

USUAL_GROUP = 2
"""Default number of microbatches per group."""


def build_kfkb(shape: Shape) -> Schedule:
    """1F1B whose turns are k microbatches long: ranks alternate k forwards and k backwards.

    While one microbatch of a group is sent, the rank computes the others. So transfers cost no time where ranks wait for
    each other in 1F1B; k times as many activations are the price.

    Two ranks, four microbatches in groups of two::

        rank 0 | 0F0 0F1 0F2 0F3 .   0B0 --  0B1 --  .   .   0B2 --  0B3 --
        rank 1 | .   1F0 1F1 1B0 --  1B1 --  1F2 1F3 1B2 --  1B3 --  .   .

    Idle time is (p - 1)(F + B), as of 1F1B, and (p - 1)(F + B + 2c) if a transfer takes c with 2c <= (k - 1)(F + B); in
    1F1B every microbatch of the steady state waits for two transfers. The peak is min(kp, m) activations. Any shape is
    valid, and the last group may be smaller. One microbatch per group is 1F1B, one group GPipe.

    The group size is k, by default two. Ada-Grouper chooses the largest that fits into memory and adapts it to the
    network during training.

    Source: Wang et al., Ada-Grouper: Accelerating Pipeline Parallelism in Preempted Network by Adaptive Group-Scheduling
    for Micro-Batches (2023). The formulas are pipeplan's own.

    Raises
    ------
    ShapeError
        If the group size is larger than m.
    """
    p, m, k = shape.ranks, shape.microbatches, group_size(shape)
    microbatch = np.arange(m)
    groups = [microbatch[first : first + k] for first in range(0, m, k)]
    return Schedule.from_rows(Placement.linear(p), m, [_row(rank, p, groups) for rank in range(p)])


def _row(rank: int, ranks: int, groups: list[Ints]) -> Columns:
    """Return one rank's row: 1F1B in which a turn is a whole group."""
    warm_up = ranks - 1 - rank
    turns = [ops(Kind.F, rank, group) for group in groups[:warm_up]]
    for group, ahead in zip_longest(groups, groups[warm_up:]):
        turns += [] if ahead is None else [ops(Kind.F, rank, ahead)]
        turns.append(ops(Kind.B, rank, group))
    return concatenate(*turns)


def group_size(shape: Shape) -> int:
    """Return k: the requested group size, by default two.

    Raises
    ------
    ShapeError
        If it is larger than the number of microbatches.
    """
    m = shape.microbatches
    k = min(USUAL_GROUP, m) if shape.group_size is None else shape.group_size
    require(k <= m, "kfkb", f"needs a group size of 1 to {m} for this shape, not {k}", field="group_size")
    return k


kfkb = Strategy(
    name="kfkb",
    title="k forwards, k backwards: 1F1B in groups of microbatches, to hide transfers",
    placement="linear",
    shapes="any p, m; group size k of 1 to m",
    bubble=Formula("(p-1)(F+B)", lambda shape: 3 * (shape.ranks - 1)),
    memory=Formula("min(kp, m)", lambda shape: min(group_size(shape) * shape.ranks, shape.microbatches)),
    paper="Wang et al., Ada-Grouper (2023), arXiv:2303.01675",
    build=build_kfkb,
    requires=group_size,
    grouped=True,
    aliases=("Ada-Grouper",),
)

FAMILY = (kfkb,)
