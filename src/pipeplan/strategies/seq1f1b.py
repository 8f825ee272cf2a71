"""1F1B over slices of each microbatch's sequence."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Kind, Placement, Schedule, ops
from pipeplan.strategies.one_f_one_b import one_forward_one_backward
from pipeplan.strategies.protocol import Formula, Shape, Strategy


def build_seq1f1b(shape: Shape) -> Schedule:
    """1F1B whose unit of work is one of k slices of a microbatch's sequence; backwards take the slices in reverse.

    Causal attention needs only earlier slices, so forwards run in order and backwards in reverse. Rank r runs
    p - 1 - r + k - 1 forwards first, because the first backward is that of a microbatch's last slice.

    Two ranks, two microbatches of two slices (``0F1.1`` is slice 1 of microbatch 1), in units of half a microbatch::

        rank 0 | 0F0   0F0.1 0F1   .     .     0B0.1 --    0F1.1 0B0   --    .     0B1.1 --    0B1   --
        rank 1 | .     1F0   1F0.1 1B0.1 --    1F1   1B0   --    1F1.1 1B1.1 --    1B1   --    .     .

    Idle time is (p - 1)(F + B)/k if slices take equally long, the peak min(p + k - 1, mk)/k activations. Any shape is
    valid.

    Source: Sun et al., Seq1F1B: Efficient Sequence-Level Pipeline Parallelism (2024), section 3.
    """
    p, m, k = shape.ranks, shape.microbatches, shape.slices
    microbatch, part = np.divmod(np.arange(m * k), k)
    rows = [
        one_forward_one_backward(
            ops(Kind.F, rank, microbatch, part), ops(Kind.B, rank, microbatch, k - 1 - part), p - 1 - rank + k - 1
        )
        for rank in range(p)
    ]
    return Schedule.from_rows(Placement.linear(p), m, rows, slices=k)


def _peak(shape: Shape) -> float:
    p, m, k = shape.ranks, shape.microbatches, shape.slices
    return min(p + k - 1, m * k) / k


seq1f1b = Strategy(
    name="seq1f1b",
    title="1F1B over slices of the sequence",
    placement="linear",
    shapes="any p, m, k",
    bubble=Formula("(p-1)(F+B)/k for k slices", lambda shape: 3 * (shape.ranks - 1) / shape.slices),
    memory=Formula("min(p+k-1, mk)/k for k slices", _peak),
    paper="Sun et al., Seq1F1B (2024), arXiv:2406.03488",
    build=build_seq1f1b,
    slices=2,
    aliases=("Seq1F1B",),
)

FAMILY = (seq1f1b,)
