"""1F1B (one forward, one backward), and 1F1B with a longer warm-up, overlapped pairs, longer turns or recomputation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import numpy as np

from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, alternate, concatenate, ops, overlap
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require

Row = Callable[[Columns, Columns, int], Columns]
"""Function from a rank's forwards, its backwards and the length of its warm-up to its row."""


def one_forward_one_backward(forwards: Columns, backwards: Columns, warm_up: int) -> Columns:
    """Return ``warm_up`` forwards, then alternately a forward and a backward, then the remaining backwards."""
    return concatenate(forwards[:warm_up], alternate(forwards[warm_up:], backwards))


def forward_with_backward(forwards: Columns, backwards: Columns, warm_up: int) -> Columns:
    """Return ``warm_up`` forwards, then overlapped pairs of a forward and a backward, then the remaining backwards."""
    pairs = max(len(forwards) - warm_up, 0)
    return concatenate(forwards[:warm_up], overlap(forwards[warm_up:], backwards[:pairs]), backwards[pairs:])


def build_1f1b(shape: Shape) -> Schedule:
    """Each rank runs as many forwards as there are ranks after it, then alternates one forward and one backward.

    Backwards start as early as possible, so a rank never holds more microbatches than needed to keep the ranks after it
    busy.

    Three ranks, four microbatches::

        rank 0 | 0F0 0F1 0F2 .   .   .   .   0B0 --  0F3 0B1 --  .   0B2 --  .   0B3 --
        rank 1 | .   1F0 1F1 .   .   1B0 --  1F2 1B1 --  1F3 1B2 --  .   1B3 --  .   .
        rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  .   .   .   .

    Idle time is (p - 1)(F + B), the peak min(p, m) activations. Any shape is valid: with fewer microbatches than ranks, all
    of them belong to the warm-up.

    Source: Narayanan et al., PipeDream (2019), section 3.2, with the flush of Narayanan et al., Memory-Efficient
    Pipeline-Parallel DNN Training (2021), section 3.2.
    """
    return _linear(shape, one_forward_one_backward, lambda behind: behind)


def build_eager_1f1b(shape: Shape) -> Schedule:
    """1F1B with twice the warm-up: min(2(p - 1 - r) + 1, m) forwards on rank r, then alternately a backward and a forward.

    Each forward ends one round trip before the next rank needs it, which leaves time to hide both transfers.

    Three ranks, five microbatches::

        rank 0 | 0F0 0F1 0F2 0F3 0F4 .   .   0B0 --  .   0B1 --  .   0B2 --  .   0B3 --  .   0B4 --
        rank 1 | .   1F0 1F1 1F2 .   1B0 --  1F3 1B1 --  1F4 1B2 --  .   1B3 --  .   1B4 --  .   .
        rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  2F4 2B4 --  .   .   .   .

    Idle time is (p - 1)(F + B), the peak min(2p - 1, m) activations. Any shape is valid.

    Source: Zhuang et al., On Optimizing the Communication of Model Parallelism (2022), section 4.
    """
    # The last forward of the warm-up is the first op of the alternation: F, then B.
    return _linear(shape, one_forward_one_backward, lambda behind: 2 * behind)


def build_1f1b_overlap(shape: Shape) -> Schedule:
    """1F1B with 2(p - 1 - r) + 1 forwards as the warm-up of rank r, after which each forward overlaps with a backward.

    The longer warm-up makes the two ops of a pair independent, so that the computation of one hides the communication of
    the other.

    Two ranks, four microbatches; a pair takes F + B::

        rank 0 | 0F0  0F1  0F2  .    .    (0F3 0B0) --   0B1  --   .    0B2  --   0B3  --
        rank 1 | .    1F0  (1F1 1B0) --   (1F2 1B1) --   (1F3 1B2) --   1B3  --   .    .

    Idle time is (p - 1)(F + B) if a pair takes F + B, the peak min(2p, m) activations. Any shape is valid: a rank whose
    warm-up covers all m microbatches has no pairs.

    Source: the public pipeline-schedule visualizer's "1F1B with overlapped forward and backward".
    """
    return _linear(shape, forward_with_backward, lambda behind: 2 * behind + 1)


def _linear(shape: Shape, row: Row, warm_up: Callable[[int], int]) -> Schedule:
    """Return the schedule with one chunk per rank; ``warm_up`` maps the number of ranks after a rank to its warm-up."""
    microbatch = np.arange(shape.microbatches)
    rows = [
        row(ops(Kind.F, rank, microbatch), ops(Kind.B, rank, microbatch), warm_up(shape.ranks - 1 - rank))
        for rank in range(shape.ranks)
    ]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


_FILL_AND_DRAIN = Formula("(p-1)(F+B)", lambda shape: 3 * (shape.ranks - 1))

one_f_one_b = Strategy(
    name="1f1b",
    title="one forward, one backward",
    placement="linear",
    shapes="any p, m",
    bubble=_FILL_AND_DRAIN,
    memory=Formula("min(p, m)", lambda shape: min(shape.ranks, shape.microbatches)),
    paper="Narayanan et al., PipeDream (2019), arXiv:1806.03377; with flush: arXiv:2006.09503",
    build=build_1f1b,
    aliases=("1F1B",),
)

eager_1f1b = Strategy(
    name="eager-1f1b",
    title="1F1B with twice the warm-up, to hide transfers",
    placement="linear",
    shapes="any p, m",
    bubble=_FILL_AND_DRAIN,
    memory=Formula("min(2p-1, m)", lambda shape: min(2 * shape.ranks - 1, shape.microbatches)),
    paper="Zhuang et al., On Optimizing the Communication of Model Parallelism (2022), arXiv:2211.05322",
    build=build_eager_1f1b,
)

one_f_one_b_overlap = Strategy(
    name="1f1b-overlap",
    title="1F1B with each forward overlapped with a backward",
    placement="linear",
    shapes="any p, m",
    bubble=_FILL_AND_DRAIN,
    memory=Formula("min(2p, m)", lambda shape: min(2 * shape.ranks, shape.microbatches)),
    paper="PP-schedule-visualizer, 1F1B with overlapped forward and backward",
    build=build_1f1b_overlap,
    aliases=("1f1b_overlap",),
)


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
    p, m, k = shape.ranks, shape.microbatches, kfkb_group(shape)
    microbatch = np.arange(m)
    groups = [microbatch[first : first + k] for first in range(0, m, k)]
    return Schedule.from_rows(Placement.linear(p), m, [_grouped_row(rank, p, groups) for rank in range(p)])


def _grouped_row(rank: int, ranks: int, groups: list[Ints]) -> Columns:
    """Return one rank's row: 1F1B in which a turn is a whole group."""
    warm_up = ranks - 1 - rank
    turns = [(Kind.F, group) for group in groups[:warm_up]]
    for group, ahead in zip_longest(groups, groups[warm_up:]):
        turns += [] if ahead is None else [(Kind.F, ahead)]
        turns.append((Kind.B, group))
    kinds = np.repeat([kind for kind, _ in turns], [len(group) for _, group in turns])
    return ops(kinds, rank, np.concatenate([group for _, group in turns]))


def kfkb_group(shape: Shape) -> int:
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
    memory=Formula("min(kp, m)", lambda shape: min(kfkb_group(shape) * shape.ranks, shape.microbatches)),
    paper="Wang et al., Ada-Grouper (2023), arXiv:2303.01675",
    build=build_kfkb,
    requires=kfkb_group,
    grouped=True,
    aliases=("Ada-Grouper",),
)


def build_mario(shape: Shape) -> Schedule:
    """1F1B in which forwards keep only their inputs; ranks recompute the rest while they wait for gradients.

    Four steps turn 1F1B into it. Every activation is recomputed (*apply checkpoint*). The recomputation runs before the
    gradient arrives, not after (*overlap recompute*), so that only backwards remain on the way back through the ranks. On
    the last rank, each backward directly follows its forward, and nothing is recomputed (*remove redundancy*). The memory
    that this saves holds inputs of further forwards, which fill the bubble before the first backward (*prepose forward*).
    The warm-up of rank r has min(3(p - 1 - r), m) of them for B = 2F, instead of p - 1 - r.

    Three ranks, four microbatches::

        rank 0 | 0F0 0F1 0F2 0F3 0R0 .   .   .   0B0 --  0R1 0B1 --  0R2 0B2 --  0R3 0B3 --
        rank 1 | .   1F0 1F1 1F2 1F3 1R0 1B0 --  1R1 1B1 --  1R2 1B2 --  1R3 1B3 --  .   .
        rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  .   .   .   .   .

    The first p - 1 ranks idle (p - 2)(F + B), which is less than in 1F1B, and no schedule of full backwards that recomputes
    on all of them is shorter. The last rank idles mR + (p - 2)(F + B), because it recomputes nothing. With fewer than four
    microbatches, all recomputation is hidden, and idle time is (p - 1)(F + B). The peak is 1 activation on every rank, and
    the inputs of up to 3(p - 1) + 1 forwards (``--recompute-bytes``). Any shape is valid.

    Source: Liu et al., Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism (2025). The authors prepose
    forwards while their simulator finds that it helps; the number here, and the formulas, are pipeplan's own.
    """
    p, m = shape.ranks, shape.microbatches
    microbatch = np.arange(m)
    rows = []
    for rank in range(p):
        forwards, again, backwards = (ops(kind, rank, microbatch) for kind in (Kind.F, Kind.R, Kind.B))
        ahead = 3 * (p - 1 - rank)
        turns = (forwards[ahead:], again, backwards) if ahead else (forwards, backwards)
        rows.append(concatenate(forwards[:ahead], alternate(*turns)))
    return Schedule.from_rows(Placement.linear(p), m, rows)


def _mario_bubble(shape: Shape) -> float:
    p, m = shape.ranks, shape.microbatches
    return max(3 * (p - 1), m + 3 * (p - 2)) if p > 1 else 0


mario = Strategy(
    name="mario",
    title="1F1B with all activations recomputed, in the time that ranks wait for gradients",
    placement="linear",
    shapes="any p, m",
    bubble=Formula(
        "of the last rank: max((p-1)(F+B), mR + (p-2)(F+B)); of others (p-2)(F+B) if m > 3, R = F; p = 1: 0",
        _mario_bubble,
    ),
    memory=Formula("1, and the inputs of min(3(p-1) + 1, m)", lambda shape: 1),
    paper="Liu et al., Mario: Near Zero-cost Activation Checkpointing, PPoPP 2025",
    build=build_mario,
    aliases=("checkpointed-1f1b",),
    recomputes=True,
)

FAMILY = (one_f_one_b, eager_1f1b, one_f_one_b_overlap, kfkb, mario)
