"""Chimera: bidirectional pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Ints, Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require_two_directions


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


def _bubble(shape: Shape) -> float:
    earlier, last = divmod(shape.microbatches - 1, shape.ranks)
    return (shape.ranks - 2) * (earlier + 2) + shape.ranks - (last + 1)


chimera = Strategy(
    name="chimera",
    title="bidirectional pipelines over two copies of the model",
    placement="bidirectional",
    shapes="p even, m even",
    bubble=Formula("at most (p-2)(ceil(m/p)+1) + p-k with k microbatches in the last unit; exact for k = p", _bubble),
    memory=Formula("min(m, p)", lambda shape: min(shape.microbatches, shape.ranks)),
    paper="Li and Hoefler, Chimera, SC 2021, arXiv 2107.06925",
    build=build_chimera,
    requires=lambda shape: require_two_directions(shape, "chimera"),
)

FAMILY = (chimera,)


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
