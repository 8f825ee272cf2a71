"""The budget of a search over layouts: what is spent, and the parts of it for each search and each layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from pipeplan.extensions.search import Effort, SearchResult
from pipeplan.extensions.search.layouts.problem import Deadline, WorkClock

SECONDS_OF_LAYOUT = 0.5
"""Most seconds for the best layout for one order."""

SHARE_OF_LAYOUTS = 0.15
"""Share of the seconds for the planner's layouts of all placements."""

SHORTEST = 0.3
"""Least seconds of a search."""

SECONDS_AN_OP = 1e-3
"""Seconds of a search per op of the step from which on it does more than to try published schedules."""

FEWEST = 500
"""Least evaluations of a search."""


@dataclass(eq=False)
class Spending:
    """Seconds and evaluations that are spent.

    Attributes
    ----------
    effort
        The budget of everything together.
    ops
        Number of ops of a step on the placement of the fewest stages.
    layouts
        Number of planner's layouts, over all placements.
    seconds, evaluations
        What is spent.
    """

    effort: Effort
    ops: int
    layouts: int
    seconds: float = 0.0
    evaluations: int = 0

    def add(self, result: SearchResult) -> None:
        """Add what a search has spent."""
        self.seconds += result.seconds
        self.evaluations += result.evaluations

    @contextmanager
    def own_time(self) -> Iterator[None]:
        """Count the seconds within the context, which no search counts."""
        begin = monotonic()
        try:
            yield
        finally:
            self.seconds += monotonic() - begin

    @property
    def left(self) -> Effort:
        """The budget that is left."""
        return replace(
            self.effort,
            seconds=None if self.effort.seconds is None else max(self.effort.seconds - self.seconds, 0.0),
            evaluations=None if self.effort.evaluations is None else max(self.effort.evaluations - self.evaluations, 0),
        )

    @property
    def spent(self) -> float:
        """Share of the budget that is spent."""
        shares = [0.0]
        for used, whole in ((self.seconds, self.effort.seconds), (self.evaluations, self.effort.evaluations)):
            if whole is not None:
                shares.append(used / whole if whole else 1.0)
        return min(max(shares), 1.0)

    @property
    def shortest(self) -> float:
        """Least seconds of a search that is worth it."""
        return max(SHORTEST, SECONDS_AN_OP * self.ops)

    def part(self, share: float) -> Effort:
        """Return a share of the rest of the budget, and no less than a search needs."""
        left = self.left
        return replace(
            left,
            seconds=None if left.seconds is None else min(max(share * left.seconds, self.shortest), left.seconds),
            evaluations=None
            if left.evaluations is None
            else min(max(int(share * left.evaluations), FEWEST), left.evaluations),
        )

    def deadline(self) -> Deadline:
        """Return the deadline of a layout for an order: by a clock that counts work where the answer must repeat."""
        share = SHARE_OF_LAYOUTS / self.layouts
        seconds = np.inf if self.effort.seconds is None else share * self.effort.seconds
        clock = monotonic if self.effort.evaluations is None else WorkClock()
        return Deadline.after(min(SECONDS_OF_LAYOUT, seconds), clock)

    def searches_within(self, share: float) -> int:
        """Return how many searches that are worth it the budget allows until this share of it is spent."""
        left = max(share - self.spent, 0.0)
        numbers = []
        if self.effort.seconds is not None:
            numbers.append(left * self.effort.seconds / self.shortest)
        if self.effort.evaluations is not None:
            numbers.append(left * self.effort.evaluations / FEWEST)
        return int(min(numbers))
