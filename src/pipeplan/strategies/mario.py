"""Mario: 1F1B that recomputes all activations while ranks wait."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.one_f_one_b import one_forward_one_backward
from pipeplan.strategies.protocol import Formula, Shape, Strategy


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
    rows = [
        _row(ops(Kind.F, rank, microbatch), ops(Kind.R, rank, microbatch), ops(Kind.B, rank, microbatch), p - 1 - rank)
        for rank in range(p)
    ]
    return Schedule.from_rows(Placement.linear(p), m, rows)


def _row(forwards: Columns, recomputations: Columns, backwards: Columns, behind: int) -> Columns:
    """Return the row of a rank with ``behind`` ranks behind it."""
    if not behind:
        return one_forward_one_backward(forwards, backwards, 0)
    ahead = 3 * behind
    return concatenate(forwards[:ahead], alternate(forwards[ahead:], recomputations, backwards))


def _bubble(shape: Shape) -> float:
    p, m = shape.ranks, shape.microbatches
    return max(3 * (p - 1), m + 3 * (p - 2)) if p > 1 else 0


mario = Strategy(
    name="mario",
    title="1F1B with all activations recomputed, in the time that ranks wait for gradients",
    placement="linear",
    shapes="any p, m",
    bubble=Formula(
        "of the last rank: max((p-1)(F+B), mR + (p-2)(F+B)); of others (p-2)(F+B) if m > 3, R = F; p = 1: 0", _bubble
    ),
    memory=Formula("1, and the inputs of min(3(p-1) + 1, m)", lambda shape: 1),
    paper="Liu et al., Mario: Near Zero-cost Activation Checkpointing, PPoPP 2025",
    build=build_mario,
    aliases=("checkpointed-1f1b",),
    recomputes=True,
)

FAMILY = (mario,)
