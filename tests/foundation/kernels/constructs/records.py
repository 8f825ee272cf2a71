"""Records and constants that the constructs import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeplan.model import Bools, Floats, Ints, Ints32

LARGEST = 9_000_000_000
RATE: float = 0.125
BELOW = -7
ALWAYS = True
FIRST, SECOND, THIRD = range(3)


class Inner(NamedTuple):
    """A record within a record; one of its names is a word of C."""

    ints: Ints
    double: Floats
    step: int


class Rows(NamedTuple):
    """Rows of every type, numbers of every type, and a record."""

    ints: Ints
    inner: Inner
    floats: Floats
    small: Ints32
    flags: Bools
    number: int
    share: float
    is_open: bool


Change = Callable[[int, Ints], int]
"""Function from outside."""


class Changes(NamedTuple):
    """A row of functions from outside."""

    functions: Sequence[Change]
