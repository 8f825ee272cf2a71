"""The type of a move of the annealing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeplan.extensions.search.kernels.arrays import Apply, Propose, Undo
from pipeplan.foundation.errors import InputError

if TYPE_CHECKING:
    from pipeplan.extensions.search.candidate import Encoder


def always(_: Encoder) -> bool:
    """Return true: for moves that can improve every problem."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A small change of a candidate, as three functions that are written like kernels.

    Attributes
    ----------
    name
        Description in a few words.
    weight
        Weight with which it is drawn, relative to those of the others; at least 0.
    propose
        Takes the flat problem, the reach, the decisions, a place, the change to fill in and the random numbers. It draws
        what is to be done at that place into ``change.terms``, and changes nothing else.
    apply
        Takes the flat problem, the decisions and the change. It changes the decisions and returns true, or returns false if
        there was nothing to change.
    undo
        Takes the same after ``apply`` has returned true, and leaves the decisions as they were before.
    can_gain
        Function that returns true if it can improve anything on the problem of an encoder; otherwise it is never drawn.
    number
        Its number in ``numbered_kernel``; None for a move from outside, whose functions are compiled at its first use.

    Raises
    ------
    InputError
        For a weight below 0.
    """

    name: str
    weight: int
    propose: Propose
    apply: Apply
    undo: Undo
    can_gain: Callable[[Encoder], bool] = always
    number: int | None = None

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise InputError(f"move {self.name}: the weight must be at least 0, not {self.weight}")


def moves_for(encoder: Encoder, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    """Return the moves that can improve something on a problem."""
    return tuple(move for move in moves if move.weight > 0 and move.can_gain(encoder))
