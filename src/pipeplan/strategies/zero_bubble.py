"""Zero bubble with one chunk a rank: backward is split, and its weight half fills what used to be idle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeplan.model import Columns, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy

Work = tuple[Columns, Columns, Columns]
"""A rank's Fs, Is and Ws, each in the order of microbatches."""

Row = Callable[[Work, int, int], Columns]
"""A rank's row from its work, its number and the number of ranks."""


def build_zb_h1(shape: Shape) -> Schedule:
    """1F1B with the backward split: the gradient is handed on at once, and the weight backwards lag behind.

    Each rank lets so many Ws wait that it holds as much as the first rank does; in the cool-down they stand where 1F1B is
    idle.

    Three ranks, four microbatches::

        rank 0 | 0F0 0F1 0F2 .   .   0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
        rank 1 | .   1F0 1F1 .   1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
        rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

    Idle time is (p - 1)(F + I - W) where m >= p and W is neither more than F nor more than I; with F = I = W it is p - 1,
    and 1 more for each microbatch that is missing to p. The peak is min(p, m) activations. Any shape is valid.

    Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
    """
    return _linear(shape, zb_h1_row)


def build_zb_h2(shape: Shape) -> Schedule:
    """ZB-H1 with twice the warm-up, so that the first backward comes before a rank has run out of forwards.

    The ranks then work without a pause from their first op to their last, which pays where the optimizer step needs no
    barrier between the ranks.

    Three ranks, five microbatches::

        rank 0 | 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 .   .
        rank 1 | .   1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4 .
        rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4

    With fewer microbatches than 2p - 1 the first ranks run out of forwards before their first backward comes; there each
    I is followed by its W at once, as the Is of the last rank come no faster while that one still does forwards.

    The longest span is m(F + I + W) + (p - 1)(F + I - 2W + 2c), c being a transfer, where m >= 2p - 1, W <= F, and neither
    2W nor 2c is more than F + I. With F = I = W it is 2m + max(m, 2p - 1), and the makespan that of ZB-H1,
    2m + max(m, p) + p - 1: no order is shorter in either. The peak is min(2p - 1, m) activations. Any shape is valid.

    Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
    """
    return _linear(shape, zb_h2_row)


def zb_h1_row(work: Work, rank: int, ranks: int) -> Columns:
    """Fs as many as ranks behind; F and I in turn, with a W each from F p - 1 on; I and W in turn; the Ws left."""
    forwards, inputs, weights = work
    warm_up = ranks - 1 - rank
    before_weights = forwards[warm_up : ranks - 1]
    return concatenate(
        forwards[:warm_up],
        alternate(before_weights, inputs[: len(before_weights)]),
        alternate(forwards[ranks - 1 :], inputs[len(before_weights) :], weights),
    )


def zb_h2_row(work: Work, rank: int, ranks: int) -> Columns:
    """Fs twice as many as ranks behind, and one; I and F in turn, with a W between from F 2p - 1 on; the Ws left."""
    forwards, inputs, weights = work
    warm_up = 2 * (ranks - 1 - rank) + 1
    before_weights = forwards[warm_up : 2 * ranks - 1]
    return concatenate(
        forwards[:warm_up],
        alternate(inputs[: len(before_weights)], before_weights),
        alternate(inputs[len(before_weights) :], weights, forwards[2 * ranks - 1 :]),
    )


def _linear(shape: Shape, row: Row) -> Schedule:
    microbatch = np.arange(shape.microbatches)
    rows = []
    for rank in range(shape.ranks):
        work = ops(Kind.F, rank, microbatch), ops(Kind.I, rank, microbatch), ops(Kind.W, rank, microbatch)
        rows.append(row(work, rank, shape.ranks))
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


def _idle(shape: Shape) -> float:
    return shape.ranks - 1 + max(shape.ranks - shape.microbatches, 0)


zb_h1 = Strategy(
    name="zb-h1",
    title="1F1B with split backward, in the memory of 1F1B",
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
    bubble=Formula("p-1 + max(p-m, 0) to the makespan, (p-1)(F+I-2W) + max(2p-1-m, 0) within the span", _idle),
    memory=Formula("min(2p-1, m)", lambda shape: min(2 * shape.ranks - 1, shape.microbatches)),
    paper="Qi et al., Zero Bubble Pipeline Parallelism (2024), arXiv:2401.10241",
    build=build_zb_h2,
    aliases=("ZB-H2",),
)

FAMILY = (zb_h1, zb_h2)
