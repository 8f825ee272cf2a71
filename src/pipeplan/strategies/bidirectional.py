"""Pipelines in both directions over two copies of the model: Chimera, and BitPipe on a V."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Ints, Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require, require_two_directions


def build_chimera(shape: Shape) -> Schedule:
    """Two pipelines in opposite directions, over two copies of the model, fill each other's bubbles.

    The first half of the microbatches runs down from rank 0, the second half up from rank p - 1. In slots of one forward
    or backward, the two directions use slots of different parity on every rank, so they merge without conflict.

    Four ranks, four microbatches, F = B = 1::

        rank 0 | 0F0 0F1 .   3F2 3B2 3F3 3B3 0B0 .   0B1
        rank 1 | .   1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1 .
        rank 2 | .   1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3 .
        rank 3 | 0F2 0F3 .   3F0 3B0 3F1 3B1 0B2 .   0B3

    Units of p microbatches, p/2 per direction, follow each other directly: the first forwards of a unit fill the last
    bubbles of the unit before. The last unit may be smaller.

    Idle time is p - 2 for F = B and any number of whole units. A longer backward leaves bubbles where units meet, which
    the paper calls intermediate: (p - 2)(m/p + 1) for B = 2F, and at most p - k more with k < p microbatches in the last
    unit. The peak is min(p, m) activations, and every rank holds the parameters of two stages. Valid for even p and m.

    Source: Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines (2021),
    section 3, with its direct concatenation for more microbatches than ranks.
    """
    ranks, microbatches = shape.ranks, shape.microbatches
    unit, place = np.divmod(np.arange(microbatches) % (microbatches // 2), ranks // 2)
    return round_trips(Placement.bidirectional(ranks), 2 * ranks * unit + 2 * place)


def _chimera_bubble(shape: Shape) -> float:
    earlier, last = divmod(shape.microbatches - 1, shape.ranks)
    return (shape.ranks - 2) * (earlier + 2) + shape.ranks - (last + 1)


chimera = Strategy(
    name="chimera",
    title="bidirectional pipelines over two copies of the model",
    placement="bidirectional",
    shapes="p even, m even",
    bubble=Formula(
        "at most (p-2)(ceil(m/p)+1) + p-k with k microbatches in the last unit; exact for k = p", _chimera_bubble
    ),
    memory=Formula("min(m, p)", lambda shape: min(shape.microbatches, shape.ranks)),
    paper="Li and Hoefler, Chimera, SC 2021, arXiv 2107.06925",
    build=build_chimera,
    requires=lambda shape: require_two_directions(shape, "chimera"),
)


def round_trips(placement: Placement, entry: Ints) -> Schedule:
    """Return the schedule in which each microbatch passes all S stages in S slots and returns in the next S slots.

    Stage s runs the forward of microbatch i in slot ``entry[i] + s`` and its full backward in slot
    ``entry[i] + 2S - 1 - s``; every rank runs its ops in the order of their slots. The entries must be such that no rank
    has two ops in one slot. Then the slots are the times of the schedule with F = B = 1, and it cannot deadlock.

    Parameters
    ----------
    placement
        Placement of the stages, for each copy of the model.
    entry
        Slot in which each microbatch enters, shape (microbatches,).
    """
    stage = np.arange(placement.stages)[:, None]
    return in_slots(placement, entry + stage, entry + 2 * placement.stages - 1 - stage)


def in_slots(placement: Placement, forward: NDArray[Any], backward: NDArray[Any]) -> Schedule:
    """Return the schedule whose ranks run their forwards and full backwards in the order of their slots.

    Parameters
    ----------
    placement
        Placement of the stages, for each copy of the model.
    forward, backward
        Slots of the ops, shape (stages, microbatches).
    """
    stages, microbatches = forward.shape
    stage, microbatch = np.repeat(np.arange(stages), microbatches), np.tile(np.arange(microbatches), stages)
    columns = concatenate(ops(Kind.F, stage, microbatch), ops(Kind.B, stage, microbatch))
    rank = placement.ranks_of(columns.stage, columns.microbatch, microbatches)
    offsets = np.cumsum([0, *np.bincount(rank, minlength=placement.ranks)], dtype=np.int64)
    slot = np.concatenate([forward.ravel(), backward.ravel()])
    return Schedule(placement, microbatches, columns[np.lexsort((slot, rank))], offsets)


DIRECT = "direct"
"""Variant without early forwards."""


def build_bitpipe(shape: Shape) -> Schedule:
    """Chimera with two chunks per rank on a V: a microbatch turns on the last rank, and returns to where it entered.

    Each of two copies of the model runs half of the microbatches, one from rank 0, one from rank p - 1. In slots of one
    forward or backward, a microbatch enters in every second slot, passes its 2p stages, and returns the same way. The ops
    of the two directions are in slots of different parity on every rank, so they merge without conflict.

    Four ranks, four microbatches, F = B = 1::

        rank 0 | 0F0 0F1 .   3F2 4F2 3F3 4F3 7F0 7B0 7F1 7B1 4B2 3B2 4B3 3B3 0B0 .   0B1
        rank 1 | .   1F0 2F2 1F1 2F3 5F2 6F0 5F3 6F1 6B0 5B2 6B1 5B3 2B2 1B0 2B3 1B1 .
        rank 2 | .   1F2 2F0 1F3 2F1 5F0 6F2 5F1 6F3 6B2 5B0 6B3 5B1 2B0 1B2 2B1 1B3 .
        rank 3 | 0F2 0F3 .   3F0 4F0 3F1 4F1 7F2 7B2 7F3 7B3 4B0 3B0 4B1 3B1 0B2 .   0B3

    Units of p microbatches follow each other directly. If a backward takes twice as long as a forward, the first ranks of
    each direction wait for two forwards between the last backwards of a unit. With *early forwarding*, the default
    variant, two forwards of the next unit run there, where the variant ``direct`` runs one.

    For u units, idle time is (p - 2)F/2 if F = B, and for B = 2F it is (p - 2)(u + 1)F/2 (``direct``), and (u - 1)F/2
    less with early forwarding on four ranks or more. For one unit the bubble is (p - 2)/(4p - 2) of all time, or (p -
    2)/(3m + p - 2) with m = p, as in the paper. The peak is p activations, and every rank holds the parameters of four
    stages, twice what it holds otherwise. Valid for even p and multiples m of p.

    Source: Wu, Chen and Yu, BitPipe: Bidirectional Interleaved Pipeline Parallelism for Accelerating Large Models Training
    (2024); the orders are those of the figures in the authors' repository, for more than four ranks pipeplan's extension.

    Raises
    ------
    ShapeError
        If p is odd, or m is not a multiple of p.
    """
    p, m = shape.ranks, shape.microbatches
    stages, half = 2 * p, p // 2
    unit, place = np.divmod(np.arange(m) % (m // 2), half)
    stage = np.arange(stages)[:, None]
    begin = 2 * stages * unit + stage
    forward, backward = begin + 2.0 * place, 2 * stages * (unit + 1) - 1 - stage + 2.0 * place
    if shape.variant != DIRECT:
        # On stage s, backward s + i of a unit would directly precede forward i of the next one. Between backwards s + i
        # and s + i + 1, forwards 2i and 2i + 1 run instead.
        pair, second = np.divmod(place, 2)
        early = (unit > 0) & (pair < half - 1 - stage)
        forward = np.where(early, begin - 1 + 2 * pair + (second + 1) / 3, forward)
    return in_slots(Placement.bidirectional_v(p), forward, backward)


def _require_units(shape: Shape) -> None:
    require_two_directions(shape, "bitpipe")
    require(
        shape.microbatches % shape.ranks == 0,
        "bitpipe",
        f"needs a multiple of {shape.ranks} microbatches, one per rank, not {shape.microbatches}",
        field="microbatches",
    )


def _bitpipe_bubble(shape: Shape) -> float:
    units = shape.microbatches // shape.ranks
    early = (units - 1) / 2 if shape.variant != DIRECT and shape.ranks > 2 else 0
    return (shape.ranks - 2) * (units + 1) / 2 - early


bitpipe = Strategy(
    name="bitpipe",
    title="bidirectional interleaved pipelines on a V, over two copies of the model",
    placement="bidirectional-v",
    shapes="p even, m a multiple of p",
    bubble=Formula(
        "(p-2)(u+1)F/2 - (u-1)F/2 for u = m/p units and B = 2F; direct, or p = 2: (p-2)(u+1)F/2", _bitpipe_bubble
    ),
    memory=Formula("p", lambda shape: shape.ranks),
    paper="Wu, Chen and Yu, BitPipe (2024), arXiv:2410.19367",
    build=build_bitpipe,
    requires=_require_units,
    chunks=2,
    variants=("early-forwarding", DIRECT),
    aliases=("BitPipe",),
)

FAMILY = (chimera, bitpipe)
