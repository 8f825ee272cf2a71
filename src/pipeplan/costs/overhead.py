"""What ranks lose besides their ops and transfers: gaps between ops, what messages take from them, the end of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.errors import CostError
from pipeplan.model import Bools, Floats, Kind, Placement, require_range


@dataclass(frozen=True, slots=True)
class Overhead:
    """What ranks lose, in the unit of the times; nothing where nobody says.

    Attributes
    ----------
    op_gap
        Before every op, once what it waits for is there: launching its kernels, and what the framework does in between.
    message_time
        What a message to or from another rank takes from the rank at either end.
    step_time
        What a step adds behind its last op: the optimizer, its barrier, the reduction over data-parallel ranks.

    Raises
    ------
    CostError
        For a time that is negative, not finite, or too large to compute with.
    """

    op_gap: float = 0.0
    message_time: float = 0.0
    step_time: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value, words = getattr(self, name), name.replace("_", " ")
            if not 0 <= value < np.inf:
                raise CostError(f"{words} must be at least 0 and finite, not {value}", field=name)
            require_range(words, value, field=name)

    @property
    def between_ops(self) -> bool:
        """Whether anything is lost between ops."""
        return self.op_gap > 0 or self.message_time > 0


def messages_sent(placement: Placement) -> Floats:
    """How many messages to another rank an op of each kind sends on each stage, shape (kinds, stages).

    Of a model with several copies, those that it sends in any of them.
    """
    after, before = _crossings(placement)
    return _by_kind(after, before)


def messages_received(placement: Placement) -> Floats:
    """How many messages from another rank an op of each kind receives on each stage, shape (kinds, stages).

    Of a model with several copies, those that it receives in any of them.
    """
    after, before = _crossings(placement)
    return _by_kind(before, after)


def _crossings(placement: Placement) -> tuple[Bools, Bools]:
    """By stage, whether the next one is on another rank, and whether the previous one is."""
    crosses = placement.crosses.any(axis=0)
    return np.append(crosses, False), np.append(False, crosses)


def _by_kind(forward: Bools, backward: Bools) -> Floats:
    table = np.zeros((len(Kind), len(forward)))
    table[Kind.F] = forward
    table[[Kind.B, Kind.I]] = backward
    return table


def message_times(overhead: Overhead, placement: Placement) -> Floats:
    """Return what the messages of an op of each kind on each stage take from its rank, shape (kinds, stages)."""
    return overhead.message_time * (messages_sent(placement) + messages_received(placement))
