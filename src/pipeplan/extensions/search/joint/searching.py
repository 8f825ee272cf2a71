"""The search over layouts, placements and orders together.

Every placement has a bound over all its layouts, and every layout one over all its orders, so what cannot be better than the
best schedule is never searched. The rest alternates::

    order of ops  ->  longest path  ->  layers move to where it is shorter  ->  order of ops on the new layout  ->  ...

The first layouts of a placement are the balanced one, the planner's for the published orders, and those that a descent over
quick bounds leads to. Of a placement with few layouts all are candidates, the most promising first; once none is left that
can be better, the answer is optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

import numpy as np

from pipeplan.costs import Layout
from pipeplan.extensions.search import (
    ENGINES,
    EVERYTHING_UP_TO,
    BestPlacement,
    Effort,
    Engine,
    Proving,
    PublishedEntry,
    SearchProgress,
    SearchResult,
    Turn,
    driven_by_costs,
    engines_going_on,
    is_as_published,
    search,
    searched_here,
    together,
    value_as_is,
)
from pipeplan.extensions.search.joint.entries import (
    Branch,
    LayoutEntry,
    best_orders,
    nothing_fits,
    placements_tried,
    published_beside,
)
from pipeplan.extensions.search.joint.least import LeastBounds
from pipeplan.extensions.search.joint.proposals import Proposals
from pipeplan.extensions.search.joint.space import LayoutSpace
from pipeplan.extensions.search.joint.spending import Spending
from pipeplan.extensions.search.layouts.problem import counts_of
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Schedule, tolerances
from pipeplan.simulation import Bound

FEW_LAYOUTS = 3_000
"""Number of layouts of a placement up to which all of them are candidates."""

OPENING = 0.4
"""Share of the budget for the first search of every placement."""

ORDERS = 2
"""Number of published orders of a placement for which the planner's layout is determined."""

STEP = 0.12
"""Share of the rest of the budget for the next layout."""

LAST = 0.3
"""Share of the budget for the order on the best layout at the end."""

MOST_PROVEN = 400
"""Maximum number of ops of a step on which a search tries to prove its result; larger proofs cost more than they tell."""

MOST_KICKED = 40
"""Maximum number of layouts made at random, one after the other, until one may improve the best schedule."""

MOST_NEAR = 12
"""Maximum number of neighbors of the best layout on which its order is timed."""


def joint_search(
    spaces: Sequence[LayoutSpace],
    effort: Effort,
    *,
    seed: int = 0,
    progress: Callable[[SearchProgress], None] | None = None,
) -> BestPlacement:
    """Return the best schedule over all layouts of several placements, with a lower bound over all of them.

    Parameters
    ----------
    spaces
        At least one; each of another placement.
    effort
        The budget of everything together. With evaluations alone, the same seed leads to the same answer.
    seed, progress
        As in :func:`~pipeplan.extensions.search.search`.

    Raises
    ------
    InfeasibleError
        If no layout was found that fits the memory limits, or the user stops the search before there is a schedule.
    """
    return _JointSearch(spaces, effort, seed, progress).run()


class _StoppedEarly(Exception):
    """The user has stopped a search before it found anything."""


class _JointSearch:
    """State of the search."""

    def __init__(
        self,
        spaces: Sequence[LayoutSpace],
        effort: Effort,
        seed: int,
        progress: Callable[[SearchProgress], None] | None,
    ) -> None:
        least = min(spaces, key=lambda space: space.stages)
        ops = 3 * least.stages * least.example.microbatches
        self.budget = Spending(effort, ops, ORDERS * len(spaces))
        self.results: list[SearchResult] = []
        self.bound = Bound(0.0, "")
        self.branches: list[Branch] = []
        self._best: LayoutEntry | None = None
        self._progress = progress
        self._random = np.random.default_rng(seed)
        report = None if progress is None else self._report
        self._searcher = searched_here(seed=seed, workers=effort.workers, effort=effort, progress=report)
        with self.budget.own_time():
            for space in spaces:
                bounds = LeastBounds(space)
                self.branches.append(Branch(space, Proposals(space, bounds), bounds.least))

    def run(self) -> BestPlacement:
        """Search until the budget is spent, nothing can be better, or the user stops it."""
        stopped = False
        try:
            self._open()
            self._alternate()
        except (KeyboardInterrupt, _StoppedEarly):
            stopped = True
        self._take_untouched()
        if self._best is None:
            raise InfeasibleError("the search was stopped before it found a schedule: allow more time")
        return self._answer(stopped=stopped)

    def _take_untouched(self) -> None:
        """Take the best order that was only timed on a layout, if it is better than all that was searched."""
        entries = [entry for branch in self.branches for entry in branch.entries.values() if entry.start]
        entry = min(entries, key=attrgetter("value"), default=None)
        if entry is None or entry.problem is None or not entry.value < self._least_value:
            return
        entry.result = search(entry.problem, evaluations=0, start=entry.start, engines=(), compared=True)
        self.results.append(entry.result)
        self._best = entry

    # What is known.

    @property
    def _least_value(self) -> float:
        return np.inf if self._best is None else self._best.judged

    def _can_win(self, bound: Bound) -> bool:
        return bound.value < self._least_value * (1 - tolerances.ROUNDING)

    # The opening.

    def _open(self) -> None:
        """Search the most promising layout of the most promising placements, as many as the budget is enough for."""
        with self.budget.own_time():
            for branch in self.branches:
                self._enter_first(branch)
        order = sorted((branch for branch in self.branches if branch.entries), key=attrgetter("promise"))
        number = 0
        while number < len(order) and (not self.results or self.budget.spent < OPENING):
            left = min(len(order) - number, self.budget.searches_within(OPENING))
            if (entry := self._opened(order[number])) is not None:
                share = max(OPENING - self.budget.spent, 0.0) / max(1 - self.budget.spent, 1e-9)
                self._search(entry, self.budget.part(share / max(left, 1)))
            number += 1
        if not self.results:  # one microbatch alone exceeds a limit on every layout
            raise InfeasibleError(nothing_fits(self.branches), field="memory_limit")

    def _enter_first(self, branch: Branch) -> None:
        """Enter the balanced layout of a placement and that of a small bound; of few layouts all."""
        space, proposals = branch.space, branch.proposals
        level = space.balanced()
        if space.limits is not None and space.limits.in_activations and space.problem(level) is None:
            branch.complete = True  # every layout has the same activations
            return
        if space.count <= FEW_LAYOUTS:
            branch.complete = True
            bounds = proposals.all()
            bounds = bounds[space.excess(bounds) <= 0]
            for at, quick in zip(bounds, proposals.least.quick(bounds).tolist(), strict=True):
                bound = max(Bound(quick, "the least bound of all layouts"), branch.least, key=attrgetter("value"))
                branch.entries[counts_of(at)] = LayoutEntry(branch, counts_of(at), bound)
        branch.orders, tried = best_orders(space)
        self.budget.evaluations += tried
        for layout in dict.fromkeys((level, proposals.least_bound(level), *proposals.one_stage_each)):
            self._enter(branch, layout)
        known = [entry for entry in branch.entries.values() if entry.problem is not None]
        if known:
            self._try_made_from_costs(min(known, key=lambda entry: entry.bound.value))

    def _opened(self, branch: Branch) -> LayoutEntry | None:
        """Enter the planner's layouts of a placement for its best published orders; return the most promising layout."""
        if not branch.opened:
            branch.opened = True
            with self.budget.own_time():
                for schedule in branch.orders[:ORDERS]:
                    layout = branch.proposals.for_order(schedule, self.budget.deadline())
                    entry = self._enter(branch, layout)
                    if entry is not None:
                        self._try_made_from_costs(entry)
                        self._enter(branch, branch.proposals.least_bound(entry.layout))
        return self._next(branch)

    # Entries.

    def _enter(self, branch: Branch, layout: Layout | None, *, published: bool = True) -> LayoutEntry | None:
        """Return the entry of a layout with its problem; None if the limits rule it out, or it is no layout.

        With ``published``, the best published orders are timed on it.
        """
        if layout is None:
            return None
        entry = branch.entries.get(layout)
        if entry is None:
            entry = LayoutEntry(branch, layout, branch.least)
        if entry.problem is None:
            problem = branch.space.problem(layout)
            if problem is None:
                branch.entries.pop(layout, None)
                return None
            entry.problem = problem
            entry.bound = max(problem.bound, entry.bound, key=attrgetter("value"))
            branch.entries[layout] = entry
            if published and not problem.is_judged and self._can_win(entry.bound):
                self._try(entry, branch.orders)
        return entry

    def _try_made_from_costs(self, entry: LayoutEntry) -> None:
        """Note a published order that depends on costs, on a layout of a shape for which it takes little time."""
        problem = entry.problem
        assert problem is not None
        if not problem.is_judged and problem.placement.ranks * problem.microbatches <= EVERYTHING_UP_TO:
            driven = islice(driven_by_costs(problem, activations_a_rank=()), 1)
            self._try(entry, (schedule.renamed(name) for name, schedule in driven))

    def _try(self, entry: LayoutEntry, orders: Iterable[Schedule], *, published: bool = True) -> None:
        """Note the best of some orders on a layout, ``published`` ones or those of another layout's search."""
        assert entry.problem is not None
        for schedule in orders:
            self.budget.evaluations += 1
            value = value_as_is(schedule, entry.problem)
            if published and is_as_published(schedule.name) and value < entry.published_value:
                entry.published = PublishedEntry(entry.problem, schedule, value)
            if value < entry.value:
                entry.value, entry.start = value, (schedule,)

    def _next(self, branch: Branch) -> LayoutEntry | None:
        """Return the most promising layout of a placement that was not searched; None if none can win."""
        while True:
            entries = [
                entry for entry in branch.entries.values() if entry.result is None and self._can_win(entry.bound)
            ]
            if not entries:
                return None
            known = [entry for entry in entries if entry.problem is not None]
            if branch.complete or not known:
                entry = min(entries, key=lambda entry: (entry.bound.value, entry.value))
            else:  # a search ends between the best published order and the bound
                entry = min(known, key=attrgetter("promise"))
            if entry.problem is not None:
                return entry
            self._enter(branch, entry.layout)

    def _search(self, entry: LayoutEntry, effort: Effort) -> None:
        """Search the orders of a layout, and go on from its last result."""
        assert entry.problem is not None
        self.bound = self._bound()
        before = entry.result
        start = entry.start
        if before is not None:
            start = (before.schedule.renamed(before.found_by.rsplit(" from ", 1)[-1]),)
        again = entry.moved or before is not None
        # In turns: building blocks, windows and annealing; annealing alone, hotter, and with other steps.
        engines: Sequence[Engine] = engines_going_on(entry.searches) if again else ENGINES
        if 3 * entry.problem.placement.stages * entry.problem.microbatches > MOST_PROVEN:
            engines = [engine for engine in engines if not isinstance(engine, Proving)]
        try:
            result = self._searcher(Turn(entry.problem, start, effort, again, engines))
        except InfeasibleError as error:
            raise _StoppedEarly from error
        self.results.append(result)
        self.budget.add(result)
        entry.searches += 1
        entry.result = result if before is None else together(before, result)
        entry.bound = max(entry.result.bound, entry.bound, key=attrgetter("value"))
        if entry.judged < self._least_value:
            self._best = entry
        if result.interrupted:
            raise KeyboardInterrupt

    # The alternation.

    def _alternate(self) -> None:
        """Search the layout of the most promise, next to which layers move, until the budget is spent."""
        moved: set[tuple[int, Layout]] = set()
        while self.budget.spent < 1:
            best = self._best
            assert best is not None
            last = self.budget.spent >= 1 - LAST
            key = (self.branches.index(best.branch), best.layout)
            if not last and key not in moved:
                moved.add(key)
                with self.budget.own_time():
                    self._move(best)
            entry = best if last and self._may_improve(best) else self._most_promising()
            if entry is None:
                with self.budget.own_time():
                    entry = self._another()
                if entry is None:
                    return
            self._search(entry, self.budget.part(1.0 if last else STEP * (1 + entry.searches)))

    def _another(self) -> LayoutEntry | None:
        """Return a layout that is not among the entries yet and may improve the best schedule; None if none is found."""
        branches = [branch for branch in self.branches if not branch.complete and self._can_win(branch.least)]
        for _ in range(MOST_KICKED if branches else 0):
            branch = branches[int(self._random.integers(len(branches)))]
            known = sorted(branch.entries.values(), key=lambda entry: entry.bound.value)[:MOST_NEAR]
            if not known:
                continue
            start = known[int(self._random.integers(len(known)))].layout
            layout = branch.proposals.other(start, self._random)
            self.budget.evaluations += 1
            if layout not in branch.entries:
                entry = self._enter(branch, layout)
                if entry is not None and self._may_improve(entry):
                    return entry
        return None

    def _may_improve(self, entry: LayoutEntry) -> bool:
        """Return whether a search of an entry may find a better schedule than the best one."""
        return self._can_win(entry.bound) and not (entry.result is not None and entry.result.optimal)

    def _most_promising(self) -> LayoutEntry | None:
        """Return the entry of the most promise of all that may improve the best schedule; None if there is none."""
        for branch in sorted(self.branches, key=attrgetter("promise")):
            if not branch.opened and self._can_win(branch.bound):
                candidates = [entry for other in self.branches for entry in other.entries.values()]
                promises = [entry.promise for entry in candidates if self._may_improve(entry)]
                if branch.promise <= min(promises, default=np.inf):
                    self._opened(branch)
        while True:
            candidates = [entry for branch in self.branches for entry in branch.entries.values()]
            entry = min(filter(self._may_improve, candidates), key=self._promise, default=None)
            if entry is None or entry.problem is not None:
                return entry
            self._enter(entry.branch, entry.layout)

    def _promise(self, entry: LayoutEntry) -> float:
        """Return the promise of an entry.

        Pairs have no exact solver, whose proof would end the searches of one layout. So every other layout has its turn: the
        best schedule on it is not expected to be worse than the best one so far.
        """
        if entry.searches or not entry.branch.proposals.least.paired:
            return entry.promise
        return min(entry.promise, (self._least_value + entry.bound.value) / 2)

    def _move(self, best: LayoutEntry) -> None:
        """Enter layouts next to the best one on which its order is nearly as good or better.

        The order is timed on the layouts that its longest path makes promising.
        """
        branch, result = best.branch, best.result
        assert result is not None
        schedule = result.schedule.renamed(result.found_by.rsplit(" from ", 1)[-1])
        layouts = [branch.proposals.for_order(schedule, self.budget.deadline(), best.layout)]
        layouts += branch.proposals.near(schedule, best.layout, self._least_value)[:MOST_NEAR]
        for layout in dict.fromkeys(layouts):
            known = None if layout is None else branch.entries.get(layout)
            if known is not None and known.result is not None:
                continue
            entry = self._enter(branch, layout, published=False)
            if entry is not None and self._can_win(entry.bound):
                self._try(entry, (schedule,), published=False)
                entry.moved = entry.start == (schedule,)

    # The answer.

    def _bound(self) -> Bound:
        """Return the best lower bound over all placements and layouts."""
        least = min((branch.bound for branch in self.branches), key=attrgetter("value"))
        value = self._least_value
        return least if least.value < value else Bound(value, "no layout of any placement has a smaller bound")

    def _report(self, news: SearchProgress) -> None:
        assert self._progress is not None
        self._progress(replace(news, bound=min(self.bound.value, news.value)))

    def _answer(self, *, stopped: bool) -> BestPlacement:
        entry = self._best
        assert entry is not None
        assert entry.result is not None
        best = entry.result
        whole = replace(
            best,
            published=published_beside(entry),
            bound=self._bound(),
            evaluations=self.budget.evaluations,
            seconds=self.budget.seconds,
            interrupted=stopped or any(result.interrupted for result in self.results),
        )
        published = tuple(branch.published for branch in self.branches if branch.published is not None)
        return BestPlacement(whole, placements_tried(self.branches), entry.layout, published)
