"""GPipe with the backwards in the opposite order: the activations that came last are used first."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies import Formula, Shape, Strategy


def build_lifo(shape: Shape) -> Schedule:
    """Every rank runs the forwards of all microbatches, then the backwards of all, the last one first.

    Two ranks, two microbatches::

        rank 0 | 0F0 0F1 .   .   .   0B1 --  0B0 --
        rank 1 | .   1F0 1F1 1B1 --  1B0 --  .   .
    """
    microbatch = np.arange(shape.microbatches)
    rows = [
        concatenate(ops(Kind.F, rank, microbatch), ops(Kind.B, rank, microbatch[::-1])) for rank in range(shape.ranks)
    ]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


LIFO = Strategy(
    name="lifo",
    title="all forwards, then all backwards, the last one first",
    placement="linear",
    shapes="any p, m",
    bubble=Formula("(p-1)(F+B)", lambda shape: 3 * (shape.ranks - 1)),
    memory=Formula("m", lambda shape: shape.microbatches),
    paper="an example of pipeplan's documentation",
    build=build_lifo,
)
