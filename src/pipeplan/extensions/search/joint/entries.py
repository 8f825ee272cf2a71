"""Layouts under search: what is known of each layout of a placement and of each placement, and what an answer says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

import numpy as np

from pipeplan.costs import Layout
from pipeplan.extensions.search import (
    PlacementTried,
    Problem,
    Published,
    PublishedEntry,
    SearchResult,
    fixed_orders,
)
from pipeplan.extensions.search.joint.proposals import Proposals
from pipeplan.extensions.search.joint.space import LayoutSpace
from pipeplan.foundation.readable import memory_text, size_text
from pipeplan.model import Schedule, counted
from pipeplan.simulation import Bound

NONE_FITS = 1.5
"""Estimated value of a layout on which no published order fits, relative to its bound."""

TRIED = 4
"""Number of published orders of a placement, the best ones, that are timed on each of its layouts."""


@dataclass(eq=False)
class LayoutEntry:
    """One layout of a placement.

    Attributes
    ----------
    branch, layout
        What it is.
    bound
        The best lower bound of its schedules: a quick one until its problem is made.
    problem
        Its problem; None before it is needed.
    value, start
        Objective of the best order tried on it, and that order; infinite before.
    published
        The best published order with its defaults on it; None if none was tried or fits.
    moved
        True if the order comes from the search of another layout.
    result, searches
        The result of its searches, None before, and their number.
    """

    branch: Branch
    layout: Layout
    bound: Bound
    problem: Problem | None = None
    value: float = np.inf
    start: tuple[Schedule, ...] = ()
    published: PublishedEntry | None = None
    moved: bool = False
    result: SearchResult | None = None
    searches: int = 0

    @property
    def promise(self) -> float:
        """Estimate of what a search finds: between the best known value and the bound, and nearer to it with each search."""
        best = self.judged if self.searches else min(self.value, NONE_FITS * self.bound.value)
        return best - 0.5 ** (1 + self.searches) * (best - self.bound.value)

    @property
    def published_value(self) -> float:
        """The value of its best published order; infinite without any."""
        return np.inf if self.published is None else self.published.value

    @property
    def judged(self) -> float:
        """The value of its search."""
        return np.inf if self.result is None else self.result.value


@dataclass(eq=False)
class Branch:
    """One placement.

    Attributes
    ----------
    space, proposals
        Its layouts, and what proposes them.
    least
        Lower bound over all its layouts.
    orders
        Published orders of the placement.
    complete
        True if all layouts are among the entries, except for those that exceed a limit.
    opened
        True if the planner's layouts are among the entries.
    entries
        The layouts so far.
    """

    space: LayoutSpace
    proposals: Proposals
    least: Bound
    orders: tuple[Schedule, ...] = ()
    complete: bool = False
    opened: bool = False
    entries: dict[Layout, LayoutEntry] = field(default_factory=dict)

    @property
    def bound(self) -> Bound:
        """The best lower bound over all its layouts."""
        if not self.complete:
            return self.least
        bounds = (entry.bound for entry in self.entries.values())
        least = min(bounds, key=attrgetter("value"), default=Bound(np.inf, "no layout fits"))
        return max(least, self.least, key=attrgetter("value"))

    @property
    def promise(self) -> float:
        """Estimate of what a search finds: between the best published order on a layout and the bound."""
        return min((entry.promise for entry in self.entries.values()), default=np.inf)

    @property
    def published(self) -> PublishedEntry | None:
        """The best published order on any of its layouts."""
        tried = [entry.published for entry in self.entries.values() if entry.published is not None]
        return min(tried, key=attrgetter("value"), default=None)

    @property
    def best(self) -> LayoutEntry | None:
        """The entry with the best search result; None before the first."""
        searched = [entry for entry in self.entries.values() if entry.result is not None]
        return min(searched, key=attrgetter("judged"), default=None)


def best_orders(space: LayoutSpace) -> tuple[tuple[Schedule, ...], int]:
    """Return the best published orders on the balanced layout, and the number of orders timed.

    Those that fit come first, then those that need the least memory.
    """
    ranked = []
    for number, (name, schedule) in enumerate(fixed_orders(space.example)):
        simulation = space.example.simulated(schedule)
        over = space.over(simulation.memory)
        ranked.append((over, space.example.value(simulation.timeline), number, schedule.renamed(name)))
    # Of schedules that are alike, such as those of a default and of the same group size, only the first.
    different = {(over, value): schedule for over, value, _, schedule in sorted(ranked, reverse=True)}
    return tuple(different[key] for key in sorted(different))[:TRIED], len(ranked)


def nothing_fits(branches: Sequence[Branch]) -> str:
    """Return why no layout fits, with the least limit of the layouts that were tried."""
    needs: list[tuple[float, Branch]] = []
    for branch in branches:
        layout = branch.proposals.least_bound(branch.space.balanced())
        free = branch.space.problem_of(layout)
        assert branch.space.limits is not None
        unlimited = replace(branch.space.limits, values=np.full_like(branch.space.limits.values, np.inf))
        needs.append((float(replace(free, limits=unlimited).least_limit.max()), branch))
    least, branch = min(needs, key=itemgetter(0))
    space, limits = branch.space, branch.space.limits
    assert limits is not None
    needed = memory_text(least, in_activations=True) if limits.in_activations else size_text(least, up=True)
    return (
        f"found no layout of {counted(len(space.layers), 'layer')} on {counted(space.placement.ranks, 'rank')} that has "
        f"room for one microbatch: the best one needs {needed} on its fullest rank, and the limit is "
        f"{memory_text(float(limits.values.max()), in_activations=limits.in_activations)}"
    )


def placements_tried(branches: Sequence[Branch]) -> tuple[PlacementTried, ...]:
    """Return the bound, the best value and its layout for each placement of which some layout fits."""
    return tuple(
        PlacementTried(
            branch.space.placement,
            branch.bound.value,
            None if best is None else best.judged,
            layout=None if best is None else best.layout,
        )
        for branch in branches
        if np.isfinite(branch.bound.value)
        for best in (branch.best,)
    )


def published_beside(entry: LayoutEntry) -> Published | None:
    """Return the best published order on the placement of an entry, on whichever of its layouts."""
    assert entry.result is not None
    results = [other.result for other in entry.branch.entries.values() if other.result is not None]
    compared = [result for result in results if result.published is not None]
    own = min(compared, key=lambda result: result.published.value if result.published else np.inf, default=entry.result)
    timed = entry.branch.published
    if timed is not None and (own.published is None or timed.value < own.published.value):
        return Published(timed.schedule.name, timed.value)
    return own.published
