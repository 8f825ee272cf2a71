"""The answer of a search, and its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeplan.extensions.search.problem import Problem
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule, Timeline, tolerances
from pipeplan.simulation import Bound, Simulation
from pipeplan.strategies import STRATEGIES


@dataclass(frozen=True, slots=True)
class Improvement:
    """A new best value of the objective, its engine, and the evaluations and seconds spent until then."""

    value: float
    found_by: str
    evaluations: int
    seconds: float


class Published(Record, frozen=True, forbid_unknown_fields=False):
    """The name of a published schedule of a problem's placement that is within its limits, and its objective."""

    name: str
    value: float

    def beats(self, other: Published | None, chunks: int) -> bool:
        """Return true if its objective is smaller; of equals, a schedule with its default chunks and groups wins."""
        if other is None or abs(self.value - other.value) > tolerances.ROUNDING * other.value:
            return other is None or self.value < other.value
        return self._is_default(chunks) and not other._is_default(chunks)

    def _is_default(self, chunks: int) -> bool:
        """Return true if a strategy makes the schedule of this name with its default chunks and groups."""
        return self.name in STRATEGIES and STRATEGIES[self.name].chunks == chunks


def is_as_published(name: str) -> bool:
    """Return true if a start of this name is a strategy's schedule with its defaults: no other variant, group or limit."""
    return name.removesuffix(ALL_RECOMPUTED) in STRATEGIES


ALL_RECOMPUTED = ", all recomputed"
"""End of the name of a published schedule with all activations recomputed."""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """Progress of a search.

    Attributes
    ----------
    value, bound
        The best objective so far and the lower bound.
    found_by
        Name of the engine that found the best.
    evaluations, seconds
        Evaluations and seconds spent.
    share
        Share of the budget that is spent, from 0 to 1.
    best
        Makes the best schedule so far.
    published
        The best published schedule within the limits; None while none is known.
    """

    value: float
    bound: float
    found_by: str
    evaluations: int
    seconds: float
    share: float
    best: Callable[[], Schedule]
    published: Published | None = None

    @property
    def optimality_gap(self) -> float:
        """``value / bound - 1``."""
        return self.value / self.bound - 1


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best schedule of a search, and its quality.

    Attributes
    ----------
    problem
        The question.
    simulation
        The schedule with its times and memory.
    bound
        A lower bound on the objective of any schedule of the problem.
    found_by
        The engine that found it, and what it started from.
    evaluations, seconds
        Evaluations and seconds that the search spent.
    history
        Every improvement, the first one first.
    interrupted
        True if the user stopped it before its budget was spent.
    published
        The best published schedule of this placement within the limits, as it is published; None where none fits.
    every_published
        True if all of them were tried: a search that is stopped, or soon proves something optimal, has not.
    """

    problem: Problem
    simulation: Simulation
    bound: Bound
    found_by: str
    evaluations: int
    seconds: float
    history: tuple[Improvement, ...]
    interrupted: bool = False
    published: Published | None = None
    every_published: bool = False

    @property
    def schedule(self) -> Schedule:
        """Best schedule."""
        return self.simulation.schedule

    @property
    def timeline(self) -> Timeline:
        """Timeline of the schedule."""
        return self.simulation.timeline

    @property
    def value(self) -> float:
        """Objective of the schedule."""
        return self.problem.value(self.timeline)

    @property
    def optimality_gap(self) -> float:
        """Largest possible excess over the optimum, as a share: ``value / bound - 1``."""
        return self.bound.gap_of(self.value)

    @property
    def optimal(self) -> bool:
        """True if the bound proves that no schedule is better.

        Of spans it is proven for schedules whose ops start as soon as they can.
        """
        return self.value <= self.bound.value * (1 + tolerances.ROUNDING)
