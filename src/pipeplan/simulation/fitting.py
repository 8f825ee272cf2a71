"""The most work on things that fit into a space together: a fractional knapsack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from pipeplan.model import tolerances

Thing = tuple[float, float, float]
"""Something that can be held: its size, the work on it, how many of it there are at most."""


def by_worth(things: Iterable[Thing]) -> tuple[Thing, ...]:
    """Those with work on them, the most work for its size first."""
    kept = [thing for thing in things if thing[1] * thing[2] > 0]
    return tuple(sorted(kept, key=_worth, reverse=True))


def _worth(thing: Thing) -> float:
    size, work, _ = thing
    return work / size if size > 0 else inf


def most_work(things: Sequence[Thing], space: float) -> float:
    """The most work on things, sorted by worth, which fit into a space together; parts of them included."""
    total = 0.0
    for size, work, count in things:
        if size * count > space:
            return total + max(space, 0.0) / size * work
        total += work * count
        space -= size * count
    return total


def unit_of(*sizes: float) -> float:
    """The one size of all that is not empty; 0 where there are several, or none."""
    filled = {size for size in sizes if size > 0}
    return filled.pop() if len(filled) == 1 else 0.0


def filled(space: float, unit: float) -> float:
    """The part of a space that things of this size can fill; all of it where they are of several sizes."""
    space *= 1 + tolerances.MEMORY
    return int(space / unit) * unit if unit > 0 and space < inf else space
