"""Pieces of idle time in columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Floats, Ints

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
        Codes of :class:`~pipeplan.model.Reason`; in the stretches of a gap also -1, if the chain that leads to an
        op determines the reasons.
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
