"""Precedence between jobs of different microbatches: by dependencies, by the order of each kind, and by memory.

Jobs of a kind and stage run in the order of their microbatches. So whatever holds between two kinds of job holds for all
microbatches alike: "this kind of microbatch i comes before that kind of microbatch i + d", for a *shift* d of 0 or more.
Shifts add up along a chain, and the least of them says which pairs of jobs are in a known order.

Memory limits give shifts too. As long as I has not begun on a stage for microbatch i, all from i on hold that stage, and
every stage of its rank that comes before it on their way, as soon as they have entered it. So when F begins on a stage for
microbatch j, those of i to j - 1 hold what they passed of both, and j holds all of its way: where that is over the limit,
the I was before. The same for W with the part that only it frees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeplan.model import Ints, Kind

Class = tuple[Kind, int]
"""A kind of job on a stage."""

NEVER = 2**30
"""A shift that no two microbatches are apart."""


class Shift(NamedTuple):
    """``first`` of microbatch i comes before ``second`` of microbatch i + ``by``."""

    first: Class
    second: Class
    by: int


def shifts_of_limit(
    stages: Sequence[int], at_forward: Mapping[int, int], until_weight: Mapping[int, int], limit: int, backward: Kind
) -> Iterator[Shift]:
    """Yield the shifts that a rank's limit forces.

    Parameters
    ----------
    stages
        The rank's stages of one copy of the model, in order.
    at_forward, until_weight
        What a forward takes on each of them, and the part of it that only W frees; for stages whose Ws run in order.
    backward
        The kind that hands its result on.
    """
    way = dict(zip(stages, np.cumsum([at_forward[stage] for stage in stages]).tolist(), strict=True))
    for entered in stages:
        # Room that the microbatches before leave, when this one has entered the stage and holds all of its way.
        room = limit - way[entered]
        for left in stages:
            yield from _shift((backward, left), entered, room, way[min(left, entered)])
            if left <= entered and left in until_weight:
                yield from _shift((Kind.W, left), entered, room, until_weight[left])


def _shift(first: Class, entered: int, room: int, size: int) -> Iterator[Shift]:
    if size > 0:
        yield Shift(first, (Kind.F, entered), room // size + 1)


def least_shifts(count: int, shifts: Sequence[tuple[int, int, int]]) -> Ints:
    """Return the least shift between any two classes along all chains, shape (count, count); ``NEVER`` where none."""
    least = np.full((count, count), NEVER, np.int64)
    for first, second, by in shifts:
        least[first, second] = min(least[first, second], by)
    # Shortest paths between all pairs (Floyd 1962, Warshall 1962).
    for through in range(count):
        np.minimum(least, least[:, through, None] + least[None, through], out=least)
    return np.minimum(least, NEVER)
