"""How many tasks make a batch: as many as take about as long as a batch should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

MOST = 2000
"""Tasks of a batch."""

_GROWTH = 4
"""A batch is at most so many times the one before: one quick task says little of the next."""

_WEIGHT = 0.5
"""Of the last batch in the mean time of a task."""


class BatchSize:
    """Follows the time that tasks take.

    Attributes
    ----------
    now
        Tasks of the next batch.
    """

    def __init__(self) -> None:
        self.now = 1
        self._mean: float | None = None

    def learn(self, tasks: int, seconds: float, target: float) -> None:
        """A batch of so many tasks took so many seconds, and should have taken ``target``."""
        last = seconds / tasks
        self._mean = last if self._mean is None else (1 - _WEIGHT) * self._mean + _WEIGHT * last
        fitting = int(target / self._mean) if self._mean > 0 else MOST
        self.now = max(1, min(fitting, _GROWTH * self.now, MOST))


def in_equal_parts(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    """At most so many parts that differ by one at most, none of them empty."""
    parts = min(most, len(items))
    for number in range(parts):
        yield items[number * len(items) // parts : (number + 1) * len(items) // parts]
