"""Hanayo: wave pipelines."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Placement, Schedule
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require
from pipeplan.strategies.slots import round_trips


def build_hanayo(shape: Shape) -> Schedule:
    """Chimera's flow in both directions without its second copy: the stages run down and up the ranks, w times.

    Every microbatch takes both ways itself. The ways down use slots of one parity on every rank, the ways up those of the
    other, so that they merge without conflict.

    Three ranks, one wave (two chunks a rank), three microbatches, F = B = 1::

        rank 0 | 0F0 0F1 0F2 .   .   5F0 5B0 5F1 5B1 5F2 5B2 0B0 .   0B1 .   0B2
        rank 1 | .   1F0 1F1 .   4F0 1F2 4F1 4B0 4F2 4B1 1B0 4B2 1B1 .   1B2 .
        rank 2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3B0 2B0 3B1 2B1 3B2 2B2 .   .

    The paper lists actions for one unit of p microbatches; the rule here carries Chimera's over to the wave. In a unit a
    microbatch enters in every second slot, moves on by one of the S = 2wp stages a slot, and comes back the same way; on
    all ranks ops run in the order of their slots. Units follow each other 2S slots apart, and the last may be smaller.

    Idle time is (p - 1)/w for F = B and whole units, however many. A longer backward leaves bubbles where units meet:
    (p - 1)(m/p + 1)/w for B = 2F, and at most (3 - 2/w)(p - k) more with k < p microbatches in the last unit. The peak is
    min(p, m) activations. Valid for any p and m with an even number of chunks.

    Source: Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model Training Efficiency
    (2023).

    Raises
    ------
    ShapeError
        For an odd number of chunks.
    """
    require(
        shape.chunks % 2 == 0,
        "hanayo",
        f"needs two chunks a rank for each wave, not {shape.chunks} in all",
        field="chunks",
    )
    placement = Placement.wave(shape.ranks, shape.chunks)
    unit, place = np.divmod(np.arange(shape.microbatches), shape.ranks)
    return round_trips(placement, 2 * placement.stages * unit + 2 * place)


def _bubble(shape: Shape) -> float:
    earlier, last = divmod(shape.microbatches - 1, shape.ranks)
    waves = shape.chunks / 2
    return (shape.ranks - 1) * (earlier + 2) / waves + (3 - 2 / waves) * (shape.ranks - (last + 1))


hanayo = Strategy(
    name="hanayo",
    title="waves: the stages run down and up the ranks several times",
    placement="wave",
    accepts="any p and m, chunks even (two a wave)",
    bubble=Formula(
        "at most (p-1)(ceil(m/p)+1)/w + (3-2/w)(p-k), w = v/2 waves, k microbatches in the last unit; exact for k = p",
        _bubble,
    ),
    memory=Formula("min(m, p)", lambda shape: min(shape.microbatches, shape.ranks)),
    paper="Liu et al., Hanayo, SC 2023, arXiv 2308.15762",
    build=build_hanayo,
    chunks=2,
    fixed_chunks=False,
)

FAMILY = (hanayo,)
