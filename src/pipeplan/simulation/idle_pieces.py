"""Reasons of idle time, and pieces of idle time in columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Floats, Ints


class Reason(IntEnum):
    """Reason why a rank idles. Reports use the names with ``-`` instead of ``_``."""

    START_UP = 0
    """nothing could have arrived yet"""
    COMPUTE = 1
    """waits for an op on another rank"""
    TRANSFER = 2
    """waits for a message that is under way"""
    IMBALANCE = 3
    """waits because an op of a slower stage takes longer than the mean"""
    MEMORY = 4
    """had a forward to do that did not fit under the memory limit"""
    DRAIN = 5
    """has done all its work"""
    OVERHEAD = 6
    """is between ops: the gap before one, or what a message takes from its rank"""
    OFFLOAD = 7
    """waits for a copy to the host, which frees its memory"""
    RELOAD = 8
    """waits for a copy back from the host"""

    @property
    def key(self) -> str:
        """Name of the reason in reports, such as ``start-up``."""
        return self.name.lower().replace("_", "-")


Piece = tuple[int, float, float, int, int]
"""Rank, start, end, the code of the reason, and the cause."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of idle time in columns of equal length, by rank and time.

    Attributes
    ----------
    rank, start, end
        Rank and times of each piece.
    reason
        Codes of :class:`Reason`; in the stretches of a gap also -1, if the chain that leads to an op determines the reasons.
    cause
        The op that ran on another rank or whose result was under way, or the copy; in the stretches of a gap, the op that
        the rank waits for. A position in the timeline's compute ops and copies
        (:func:`~pipeplan.simulation.chain.timed_only`); -1 for none.
    """

    rank: NDArray[np.int32]
    start: Floats
    end: Floats
    reason: NDArray[np.int8]
    cause: Ints

    def __len__(self) -> int:
        return len(self.rank)


def pieces_of(pieces: Iterable[Piece]) -> Pieces:
    """Return pieces as columns, in their order."""
    rank, start, end = array("i"), array("d"), array("d")
    reason, cause = array("b"), array("q")
    for piece in pieces:
        rank.append(piece[0])
        start.append(piece[1])
        end.append(piece[2])
        reason.append(piece[3])
        cause.append(piece[4])
    return Pieces(
        rank=np.array(rank, np.int32),
        start=np.array(start, np.float64),
        end=np.array(end, np.float64),
        reason=np.array(reason, np.int8),
        cause=np.array(cause, np.int64),
    )
