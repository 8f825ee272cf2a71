"""Budgets in counted work: a loaded machine, or another number of workers, gives the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

BOUNDED, ESTIMATED = 0.002, 0.02
"""Nominal seconds of bounding one frame, and of one estimate: three times as long as on an idle core, because up to three
trainers share the budget."""


@dataclass(slots=True)
class Work:
    """Work of a search in nominal seconds, and its limit."""

    limit: float = inf
    done: float = 0.0

    def add(self, *, bounded: int = 0, estimated: int = 0) -> None:
        """Count frames that were bounded, and estimates."""
        self.done += BOUNDED * bounded + ESTIMATED * estimated

    @property
    def over(self) -> bool:
        """True if the limit is reached."""
        return self.done >= self.limit
