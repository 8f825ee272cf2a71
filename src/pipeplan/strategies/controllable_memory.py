"""V-Min and V-Half: two chunks per rank on a V, in a third and in half of the memory of 1F1B.

Both repeat a *building block*: the four ops F0, F1, I1, I0 of a microbatch (forwards of chunks 0 and 1, input backwards
of chunks 1 and 0) at fixed offsets on each rank, every 6 units of time, with F = I = W = 1. The time between the first
and the last of them on a rank determines its memory. The Ws run in the units that the block leaves free.

Repeating the block alone leaves holes in the warm-up and the cool-down. In the schedule, every rank runs in each unit of
time the first of these ops that can run:

1. the op that the block has due next; if a forward finds the memory full, the oldest pending W runs first;
2. in the warm-up: the next forward of either chunk, if room remains for all forwards that are due before it; room that
   Ws free during the warm-up is reserved for forwards that are due;
3. in the warm-up, and after the last forward: the next backward of either chunk;
4. the oldest pending W.

The warm-up of a rank ends with its first backward. For V-Min, whose microbatches return on every rank at full speed, it
ends with the first backward of chunk 0.

It cannot deadlock: of all ops due next, the earliest has nothing to wait for, and the block stays within the capacity.
"""

from __future__ import annotations

import numpy as np

from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, ops, source_of
from pipeplan.strategies.building_block_kernel import BlockRows, RepeatedBlock, run_block
from pipeplan.strategies.protocol import Formula, Shape, Strategy

INTERVAL = 6
"""Units of time between the blocks of two microbatches: F, I and W of two chunks."""

_OPS = 4
_WEIGHT = 4
_RUN_BLOCK = Kernel(run_block)

Block = Ints
"""Units of time of F0, F1, I1 and I0 of microbatch 0 on each rank, shape (ranks, 4)."""


def build_v_min(shape: Shape) -> Schedule:
    """A microbatch passes the V as fast as possible: F0, F1, I1 and I0 of all ranks follow each other directly.

    Each rank then holds a microbatch for the shortest time, and needs about a third of the memory of 1F1B.

    Three ranks, three microbatches::

        rank 0 | 0F0 0F1 .   .   .   5F0 5I0 5F1 5W0 0F2 5I1 0I0 5W1 0W0 .   5F2 5I2 0I1 5W2 0W1 .   0I2 0W2
        rank 1 | .   1F0 1F1 .   4F0 .   4F1 4I0 4W0 .   1I0 1F2 4I1 1W0 4F2 4W1 1I1 4I2 1W1 4W2 1I2 1W2 .
        rank 2 | .   .   2F0 3F0 2F1 3F1 .   .   3I0 2I0 3W0 2W0 2F2 3F2 3I1 2I1 3W1 2W1 3I2 2I2 3W2 2W2 .

    With F = I = W, idle time is at most (4p - 5)/2, exactly so for one microbatch. The peak is min((p + 4)//3, m)
    activations. Any shape is valid.

    Source: Qi et al., Pipeline Parallelism with Controllable Memory (2024), the V-Min block.
    """
    return _repeat(_v_min_block(shape.ranks), _v_min_peak(shape.ranks), shape, turn=3)


def build_v_half(shape: Shape) -> Schedule:
    """Forwards of chunk 0 and backwards of chunk 1 move down the V at half speed, and return at full speed.

    Ranks wait less for each other than with V-Min, and need half of the memory of 1F1B.

    Three ranks, three microbatches::

        rank 0 | 0F0 0F1 0F2 .   .   5F0 5I0 5W0 5F1 5I1 5W1 0I0 0W0 .   .   5F2 5I2 0I1 5W2 0W1 .   0I2 0W2
        rank 1 | .   1F0 1F1 .   4F0 .   4F1 4I0 4W0 1F2 1I0 4I1 1W0 4W1 4F2 .   1I1 4I2 1W1 4W2 1I2 1W2 .
        rank 2 | .   .   2F0 3F0 2F1 3F1 .   .   3I0 2I0 3W0 2F2 2W0 3F2 3I1 2I1 3W1 2W1 3I2 2I2 3W2 2W2 .

    With F = I = W, idle time is at most max(3p - 4, 4p - 3 - 2m)/2, exactly so for one microbatch. The peak is
    min((p + 2)//2, m) activations. Any shape is valid.

    Source: Qi et al., Pipeline Parallelism with Controllable Memory (2024), the V-Half block.
    """
    return _repeat(_v_half_block(shape.ranks), _v_half_peak(shape.ranks), shape, turn=2)


def _v_min_block(p: int) -> Block:
    # The delay keeps the four ops of a rank in different units of the interval.
    rank, delay = np.arange(p), 2 if p % 3 == 0 else 0
    return np.stack((rank, 2 * p - 1 - rank, 2 * p + delay + rank, 4 * p + delay - 1 - rank), axis=1)


def _v_half_block(p: int) -> Block:
    rank, delay = np.arange(p), 3 if p % 2 == 0 else 0
    return np.stack(
        (2 * rank, 3 * p - 2 - rank, 3 * p + delay + 2 * rank - 1, 6 * p + delay - 2 - rank),
        axis=1,
    )


def _v_min_peak(ranks: int) -> int:
    return (ranks + 4) // 3


def _v_half_peak(ranks: int) -> int:
    return (ranks + 2) // 2


def _repeat(block: Block, peak: int, shape: Shape, *, turn: int) -> Schedule:
    """Return the block repeated for every microbatch, within ``peak`` activations of two chunks each.

    ``turn`` is the op number that ends the warm-up of a rank: 2 for a backward of chunk 1, 3 for one of chunk 0.
    """
    ranks, microbatches = shape.ranks, shape.microbatches
    placement = Placement.v(ranks)
    row = INTERVAL * microbatches
    written = BlockRows(
        order=np.zeros(ranks * row, np.int64),
        length=np.zeros(ranks, np.int64),
        done=np.zeros(_OPS * ranks, np.int64),
        taken=np.zeros(ranks, np.int64),
        awake=np.zeros(2 * ranks, np.int64),
        woken=np.zeros(ranks, np.int64),
    )
    sources = _sources(placement).ravel()
    repeated = RepeatedBlock(block.ravel(), sources, _waiting(sources), INTERVAL, 2 * peak, turn, microbatches)
    _RUN_BLOCK((repeated,), (written,))
    rows = [_ops_of_numbers(numbers, rank, shape) for rank, numbers in enumerate(written.order.reshape(ranks, row))]
    return Schedule.from_rows(placement, microbatches, rows)


def _sources(placement: Placement) -> Ints:
    """Return the op that each rank's F0, F1, I1, I0 waits for, as 4 * rank + op number; -1: none. Shape (ranks, 4)."""
    ranks, stages = placement.ranks, placement.stages
    source = np.full((ranks, _OPS), -1, np.int64)
    for rank in range(ranks):
        first, last = placement.stages_on(rank)
        for number, (kind, stage) in enumerate(((Kind.F, first), (Kind.F, last), (Kind.I, last), (Kind.I, first))):
            if (needed := source_of(kind, stage, stages)) is not None:
                there, chunk = placement.rank_of[0][needed[1]], placement.chunk_of[0][needed[1]]
                source[rank, number] = _OPS * there + (chunk if needed[0] is Kind.F else 3 - chunk)
    return source


def _waiting(sources: Ints) -> Ints:
    """Return the inverse of the sources: the op that waits for each op, -1 for none."""
    waiting = np.full(len(sources), -1, np.int64)
    waits = np.flatnonzero(sources >= 0)
    waiting[sources[waits]] = waits
    return waiting


def _ops_of_numbers(numbers: Ints, rank: int, shape: Shape) -> Columns:
    """Return a rank's ops from their numbers. The ops of one number take the microbatches in order, and Ws follow the Is."""
    first, last = rank, 2 * shape.ranks - 1 - rank
    kind = np.array([Kind.F, Kind.F, Kind.I, Kind.I, Kind.W])[numbers]
    stage = np.array([first, last, last, first, -1])[numbers]
    microbatch = np.empty_like(numbers)
    for number in range(_OPS):
        microbatch[numbers == number] = np.arange(shape.microbatches)
    weights, inputs = kind == Kind.W, kind == Kind.I
    stage[weights], microbatch[weights] = stage[inputs], microbatch[inputs]
    return ops(kind, stage, microbatch)


v_min = Strategy(
    name="v-min",
    title="V-shaped, in about a third of the memory of 1F1B",
    placement="v",
    shapes="any p, m; two chunks per rank",
    bubble=Formula("at most max(4p-5, 0)/2", lambda shape: max(4 * shape.ranks - 5, 0) / 2),
    memory=Formula("min((p+4)//3, m)", lambda shape: min(_v_min_peak(shape.ranks), shape.microbatches)),
    paper="Qi et al., Pipeline Parallelism with Controllable Memory (2024), arXiv:2405.15362",
    build=build_v_min,
    chunks=2,
    aliases=("V-Min",),
)

v_half = Strategy(
    name="v-half",
    title="V-shaped, in about half of the memory of 1F1B",
    placement="v",
    shapes="any p, m; two chunks per rank",
    bubble=Formula(
        "at most max(3p-4, 4p-3-2m, 0)/2",
        lambda shape: max(3 * shape.ranks - 4, 4 * shape.ranks - 3 - 2 * shape.microbatches, 0) / 2,
    ),
    memory=Formula("min((p+2)//2, m)", lambda shape: min(_v_half_peak(shape.ranks), shape.microbatches)),
    paper="Qi et al., Pipeline Parallelism with Controllable Memory (2024), arXiv:2405.15362",
    build=build_v_half,
    chunks=2,
    aliases=("V-Half",),
)

FAMILY = (v_min, v_half)
