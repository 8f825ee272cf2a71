"""All forwards, then all backwards: GPipe, and looped BFS, its form with several chunks per rank."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy


def build_gpipe(shape: Shape) -> Schedule:
    """Every rank runs the forwards of all microbatches, then all backwards in the same order.

    This is the simplest order, but each rank holds the activations of all microbatches.

    Three ranks, three microbatches::

        rank 0 | 0F0 0F1 0F2 .   .   .   .   .   .   0B0 --  0B1 --  0B2 --
        rank 1 | .   1F0 1F1 1F2 .   .   .   1B0 --  1B1 --  1B2 --  .   .
        rank 2 | .   .   2F0 2F1 2F2 2B0 --  2B1 --  2B2 --  .   .   .   .

    Idle time is (p - 1)(F + B), the peak m activations. Any shape is valid.

    Source: Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism (2019), section 2.
    """
    microbatch = np.arange(shape.microbatches)
    rows = [concatenate(ops(Kind.F, rank, microbatch), ops(Kind.B, rank, microbatch)) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.linear(shape.ranks), shape.microbatches, rows)


def build_looped_bfs(shape: Shape) -> Schedule:
    """Each chunk runs the forwards of all microbatches before the next chunk starts; backwards run in exact reverse.

    Each stage runs once for forwards and once for backwards, so a sharded stage is gathered only twice per step.

    Two ranks with two chunks, two microbatches::

        rank 0 | 0F0 0F1 2F0 2F1 .   .   .   2B1 --  2B0 --  0B1 --  0B0 --
        rank 1 | .   1F0 1F1 3F0 3F1 3B1 --  3B0 --  1B1 --  1B0 --  .   .

    Idle time is (p - 1)(F + B)/v, plus (v - 1)(p - m)(F + B)/v with fewer microbatches than ranks, because each chunk then
    waits for the previous one to return. The peak is m activations. Any shape is valid.

    Source: Lamy-Poirier, Breadth-First Pipeline Parallelism (2022), section 4.
    """
    chunk, microbatch = np.divmod(np.arange(shape.chunks * shape.microbatches), shape.microbatches)
    stage = chunk * shape.ranks
    rows = [
        concatenate(ops(Kind.F, stage + rank, microbatch), ops(Kind.B, stage[::-1] + rank, microbatch[::-1]))
        for rank in range(shape.ranks)
    ]
    return Schedule.from_rows(Placement.loop(shape.ranks, shape.chunks), shape.microbatches, rows)


def _looped_idle(shape: Shape) -> float:
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    return 3 * (p - 1 + (v - 1) * max(p - m, 0)) / v


gpipe = Strategy(
    name="gpipe",
    title="all forwards, then all backwards",
    placement="linear",
    shapes="any p, m",
    bubble=Formula("(p-1)(F+B)", lambda shape: 3 * (shape.ranks - 1)),
    memory=Formula("m", lambda shape: shape.microbatches),
    paper="Huang et al., GPipe (2019), arXiv:1811.06965",
    build=build_gpipe,
    aliases=("GPipe",),
)

looped_bfs = Strategy(
    name="looped-bfs",
    title="all forwards, chunk by chunk, then all backwards",
    placement="loop",
    shapes="any p, m, v",
    bubble=Formula("(p-1 + (v-1) max(p-m, 0))(F+B)/v", _looped_idle),
    memory=Formula("m", lambda shape: shape.microbatches),
    paper="Lamy-Poirier, Breadth-First Pipeline Parallelism (2022), arXiv:2211.05953",
    build=build_looped_bfs,
    chunks=2,
    fixed_chunks=False,
    aliases=("LoopedBFS",),
)

FAMILY = (gpipe, looped_bfs)
