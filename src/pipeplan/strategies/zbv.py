"""ZB-V: zero bubble on a V, in the memory of 1F1B."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy


def build_zbv(shape: Shape) -> Schedule:
    """Two chunks per rank on a V: the last stage is on the first rank, so its backward starts without waiting.

    Every rank alternates between F, I and W of its two chunks, and all ranks hold equally much.

    Two ranks, four microbatches::

        rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3 .
        rank 1 | .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3

    With F = I = W per chunk and m >= 2p - 1, idle time is (p - 1)/2, none of it between a rank's first op and its last;
    with any m it is max(p - 1, 4p - 2 - 2m)/2. The peak is min(p, m) activations. Any shape is valid: fewer than 2p - 1
    microbatches run like the first ones of a step of 2p - 1.

    Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), the ZB-V schedule. PyTorch's ZBVZeroBubble is the same
    order.
    """
    rows = [_row(rank, shape.ranks, shape.microbatches) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.v(shape.ranks), shape.microbatches, rows)


def _row(rank: int, ranks: int, microbatches: int) -> Columns:
    """Return one rank's row: three phrases of warm-up, the steady part, three phrases of cool-down.

    The lengths are those for at least 2p - 1 microbatches. Each phrase takes the microbatches in order, so with fewer
    of them a phrase ends early and leaves the others in place.
    """
    behind = ranks - rank
    first = 2 * behind - 1
    # down, up: the number of Is and Ws of chunks 0 and 1 before the last forward.
    step = max(microbatches, 2 * ranks - 1)
    down, up = step - ranks, step - rank
    f0, i0, w0 = _chunk(rank, microbatches)
    f1, i1, w1 = _chunk(2 * ranks - 1 - rank, microbatches)
    return concatenate(
        f0[:first],
        alternate(f1[:rank], f0[first : first + rank]),
        alternate(f1[rank:ranks], i1[:behind], w1[:behind]),
        alternate(f0[first + rank :], i0[:down], w0[:down], f1[ranks:], i1[behind:up], w1[behind:up]),
        alternate(i0[down : down + rank], i1[up:]),
        alternate(i0[down + rank :], w0[down:up]),
        w1[up:],
        w0[up:],
    )


def _chunk(stage: int, microbatches: int) -> tuple[Columns, Columns, Columns]:
    microbatch = np.arange(microbatches)
    return ops(Kind.F, stage, microbatch), ops(Kind.I, stage, microbatch), ops(Kind.W, stage, microbatch)


def _idle(shape: Shape) -> float:
    return max(shape.ranks - 1, 4 * shape.ranks - 2 - 2 * shape.microbatches) / 2


zbv = Strategy(
    name="zbv",
    title="zero bubble on a V, in the memory of 1F1B",
    placement="v",
    shapes="any p, m; two chunks per rank",
    bubble=Formula("max(p-1, 4p-2-2m)/2 of the makespan, 0 within the span if m >= 2p-1", _idle),
    memory=Formula("min(p, m)", lambda shape: min(shape.ranks, shape.microbatches)),
    paper="Qi et al., Zero Bubble Pipeline Parallelism (2024), arXiv:2401.10241",
    build=build_zbv,
    chunks=2,
    aliases=("ZBVZeroBubble",),
)

FAMILY = (zbv,)
