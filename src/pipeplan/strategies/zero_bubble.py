"""Zero bubble with one chunk per rank (ZB-H1, ZB-H2) and on a V (ZB-V): weight backwards fill idle time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy

Work = tuple[Columns, Columns, Columns]
"""Fs, Is and Ws of a stage, each in the order of microbatches."""

Row = Callable[[Work, int, int], Columns]
"""Function from a rank's work, its number and the number of ranks to its row."""


def build_zb_h1(shape: Shape) -> Schedule:
    """1F1B with split backwards: the input gradient is sent on at once, and the weight backwards follow later.

    Each rank delays Ws until it holds as much as the first rank; in the cool-down they fill the idle time of 1F1B.

    Three ranks, four microbatches::

        rank 0 | 0F0 0F1 0F2 .   .   0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
        rank 1 | .   1F0 1F1 .   1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
        rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

    Idle time is (p - 1)(F + I - W) if m >= p, W <= F and W <= I. With F = I = W it is p - 1 + max(p - m, 0). The peak is
    min(p, m) activations. Any shape is valid.

    Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
    """
    return _linear(shape, zb_h1_row)


def build_zb_h2(shape: Shape) -> Schedule:
    """ZB-H1 with twice the warm-up, so that the first backward arrives before a rank has run out of forwards.

    The ranks then work without a pause from their first op to their last, which pays off if the optimizer step needs no
    barrier between the ranks.

    Three ranks, five microbatches::

        rank 0 | 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 .   .
        rank 1 | .   1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4 .
        rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4

    With fewer microbatches than 2p - 1, the first ranks run out of forwards before their first backward arrives. There each
    I is directly followed by its W, because the Is of the last rank arrive no faster while that rank still runs forwards.

    The longest span is m(F + I + W) + (p - 1)(F + I - 2W + 2c) for transfers of c, if m >= 2p - 1, W <= F, 2W <= F + I and
    2c <= F + I. With F = I = W it is 2m + max(m, 2p - 1), and the makespan is that of ZB-H1, 2m + max(m, p) + p - 1; both
    are optimal. The peak is min(2p - 1, m) activations. Any shape is valid.

    Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
    """
    return _linear(shape, zb_h2_row)


def zb_h1_row(work: Work, rank: int, ranks: int) -> Columns:
    """Return the row of ZB-H1.

    One F per rank after this one; F and I in turn, with a W each from F number p - 1 on; I and W in turn; the remaining
    Ws.
    """
    forwards, inputs, weights = work
    warm_up = ranks - 1 - rank
    before_weights = forwards[warm_up : ranks - 1]
    return concatenate(
        forwards[:warm_up],
        alternate(before_weights, inputs[: len(before_weights)]),
        alternate(forwards[ranks - 1 :], inputs[len(before_weights) :], weights),
    )


def zb_h2_row(work: Work, rank: int, ranks: int) -> Columns:
    """Return the row of ZB-H2.

    One F and two more per rank after this one; I and F in turn, with a W between from F number 2p - 1 on; the remaining
    Ws.
    """
    forwards, inputs, weights = work
    warm_up = 2 * (ranks - 1 - rank) + 1
    before_weights = forwards[warm_up : 2 * ranks - 1]
    return concatenate(
        forwards[:warm_up],
        alternate(inputs[: len(before_weights)], before_weights),
        alternate(inputs[len(before_weights) :], weights, forwards[2 * ranks - 1 :]),
    )


def _linear(shape: Shape, row: Row) -> Schedule:
    rows = [row(_work(rank, shape.microbatches), rank, shape.ranks) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


def _idle(shape: Shape) -> float:
    return shape.ranks - 1 + max(shape.ranks - shape.microbatches, 0)


zb_h1 = Strategy(
    name="zb-h1",
    title="1F1B with split backwards, in the memory of 1F1B",
    placement="linear",
    shapes="any p, m",
    bubble=Formula("(p-1)(F+I-W) + max(p-m, 0)", _idle),
    memory=Formula("min(p, m)", lambda shape: min(shape.ranks, shape.microbatches)),
    paper="Qi et al., Zero Bubble Pipeline Parallelism (2024), arXiv:2401.10241",
    build=build_zb_h1,
    aliases=("ZB-H1", "zb1p", "ZB1P"),
)

zb_h2 = Strategy(
    name="zb-h2",
    title="no idle time within any rank's span, in twice the memory of 1F1B",
    placement="linear",
    shapes="any p, m",
    bubble=Formula("p-1 + max(p-m, 0) of the makespan, (p-1)(F+I-2W) + max(2p-1-m, 0) within the span", _idle),
    memory=Formula("min(2p-1, m)", lambda shape: min(2 * shape.ranks - 1, shape.microbatches)),
    paper="Qi et al., Zero Bubble Pipeline Parallelism (2024), arXiv:2401.10241",
    build=build_zb_h2,
    aliases=("ZB-H2",),
)


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
    rows = [_zbv_row(rank, shape.ranks, shape.microbatches) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.v(shape.ranks), shape.microbatches, rows)


def _zbv_row(rank: int, ranks: int, microbatches: int) -> Columns:
    """Return one rank's row: three phrases of warm-up, the steady part, three phrases of cool-down.

    The lengths are those for at least 2p - 1 microbatches. Each phrase takes the microbatches in order, so with fewer
    of them a phrase ends early and leaves the others in place.
    """
    behind = ranks - rank
    first = 2 * behind - 1
    # down, up: the number of Is and Ws of chunks 0 and 1 before the last forward.
    step = max(microbatches, 2 * ranks - 1)
    down, up = step - ranks, step - rank
    f0, i0, w0 = _work(rank, microbatches)
    f1, i1, w1 = _work(2 * ranks - 1 - rank, microbatches)
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


def _work(stage: int, microbatches: int) -> Work:
    microbatch = np.arange(microbatches)
    return ops(Kind.F, stage, microbatch), ops(Kind.I, stage, microbatch), ops(Kind.W, stage, microbatch)


def _zbv_idle(shape: Shape) -> float:
    return max(shape.ranks - 1, 4 * shape.ranks - 2 - 2 * shape.microbatches) / 2


zbv = Strategy(
    name="zbv",
    title="zero bubble on a V, in the memory of 1F1B",
    placement="v",
    shapes="any p, m; two chunks per rank",
    bubble=Formula("max(p-1, 4p-2-2m)/2 of the makespan, 0 within the span if m >= 2p-1", _zbv_idle),
    memory=Formula("min(p, m)", lambda shape: min(shape.ranks, shape.microbatches)),
    paper="Qi et al., Zero Bubble Pipeline Parallelism (2024), arXiv:2401.10241",
    build=build_zbv,
    chunks=2,
    aliases=("ZBVZeroBubble",),
)

FAMILY = (zb_h1, zb_h2, zbv)
