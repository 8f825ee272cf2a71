"""1F1B (one forward, one backward), also with an eager warm-up, and with forward and backward overlapped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, ops, overlap
from pipeplan.strategies.protocol import Formula, Shape, Strategy

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

FAMILY = (one_f_one_b, eager_1f1b, one_f_one_b_overlap)
