"""Layouts worth a search: the best for the order of a schedule, and those whose quick bound is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pipeplan.costs import Layout
from pipeplan.extensions.search.joint.least import LeastBounds
from pipeplan.extensions.search.joint.space import LayoutSpace
from pipeplan.extensions.search.layouts.best import layout_problem
from pipeplan.extensions.search.layouts.best import search as best_of_order
from pipeplan.extensions.search.layouts.problem import (
    Deadline,
    Laid,
    LayoutProblem,
    Numbers,
    bounds_of,
    counts_of,
    descend,
    shifted,
)
from pipeplan.extensions.search.layouts.stages import RankPeaks
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Bools, Floats, Kind, Schedule, tolerances

EVENNESS = 1e-3
"""Weight of the unevenness of stages beside the bound of a layout."""

MOST_KICKS = 4
"""Number of layers, beyond the first, that move at random at most."""

MOST_STEPS = 200
"""Maximum number of steps of a descent over quick bounds."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """Layouts of a space that are worth a search.

    Attributes
    ----------
    space
        The layouts.
    least
        Their bounds.
    """

    space: LayoutSpace
    least: LeastBounds

    def for_order(self, schedule: Schedule, deadline: Deadline, start: Layout | None = None) -> Layout | None:
        """Return the best layout found for the order of a schedule; None if there is none that fits.

        Parameters
        ----------
        start
            Layout to descend from; None: the planner's own starts, then branch and bound.
        """
        problem = self._of_order(schedule)
        if problem is None:
            return None
        try:
            if start is None:
                counts = best_of_order(problem, deadline).layout
            else:
                problem.restrict(problem.makespan_alone(self._laid(start)))
                counts = descend(problem, self._laid(start), deadline).counts
        except PipeplanError:
            return None
        return self._whole(counts)

    def near(self, schedule: Schedule, layout: Layout, below: float) -> list[Layout]:
        """Return layouts that differ by one layer of two stages, the most promising for an order first.

        Only those whose quick bound is ``below`` a value.
        """
        neighbours = _moved(bounds_of(layout))
        neighbours = neighbours[self.space.possible(neighbours)]
        neighbours = neighbours[self.space.excess(neighbours) <= 0]
        values = self.least.quick(neighbours)
        neighbours, values = neighbours[values < below], values[values < below]
        layouts = [counts_of(bounds) for bounds in neighbours]
        problem = self._of_order(schedule)
        if problem is not None and layouts:
            # The longest path of the order, and those through all the work of a rank, bound its makespan on any layout.
            problem.makespan(self._laid(layout))
            problem.probe_ranks(self._laid(layout))
            features = np.stack([problem.of(self._laid(one)) for one in layouts])
            values = np.maximum(values, problem.least(features))
        return [layouts[number] for number in np.argsort(values, kind="stable")]

    def _of_order(self, schedule: Schedule) -> LayoutProblem | None:
        """Return the planner's layout problem for an order; None if it has ops that the planner does not know."""
        tables = self.space.tables
        if tables is None or any(schedule.has(kind) for kind in (Kind.R, Kind.OFFLOAD, Kind.SEND_F)):
            return None
        costs, limits = self.space.example.costs, self.space.limits
        in_bytes = limits is not None and not limits.in_activations
        peaks = RankPeaks(schedule, limits.values.tolist() if limits and in_bytes else None)
        return layout_problem((schedule, costs.transfer.time(), costs.overhead), tables, peaks, self.space.pairs)

    def _laid(self, layout: Layout) -> Laid:
        return Laid(self._with_ends(layout, -1), (0,) * len(layout))

    def _whole(self, counts: Sequence[int]) -> Layout | None:
        """Return the layout with the layers at both ends; None if a stage would take no time."""
        layout = self._with_ends(counts, 1)
        return layout if bool(self.space.possible(bounds_of(layout)[None])[0]) else None

    def _with_ends(self, counts: Sequence[int], times: int) -> Layout:
        """Return the layout with the layers that are fixed to its ends added, or taken away if ``times`` is -1."""
        assert self.space.tables is not None
        parts, layout = self.space.tables.parts, list(counts)
        layout[0] += times * len(parts.start)
        layout[-1] += times * len(parts.end)
        return tuple(layout)

    def least_bound(self, start: Layout) -> Layout:
        """Return a local optimum of the quick bounds from a layout: within the limits first, then fast, then even."""
        bounds = bounds_of(start)
        for wide in (False, True):
            for _ in range(MOST_STEPS):
                best = self._score(bounds[None])[0]
                neighbours = _moved(bounds, None if wide else self._slowest(bounds))
                neighbours = neighbours[self.space.possible(neighbours)]
                scores = self._score(neighbours) if len(neighbours) else np.array([np.inf])
                number = int(scores.argmin())
                if not scores[number] < best * (1 - tolerances.ROUNDING):
                    break
                bounds = neighbours[number]
        return counts_of(bounds)

    def other(self, layout: Layout, random: np.random.Generator) -> Layout:
        """Return a local optimum of the quick bounds from a layout in which some layers, chosen at random, have moved."""
        bounds = bounds_of(layout)
        for _ in range(int(random.integers(2, 2 + MOST_KICKS))):
            neighbours = _moved(bounds)
            neighbours = neighbours[self.space.possible(neighbours)]
            if len(neighbours):
                bounds = neighbours[random.integers(len(neighbours))]
        return self.least_bound(counts_of(bounds))

    @property
    def one_stage_each(self) -> tuple[Layout, ...]:
        """The layout of the least quick bound if every rank has one stage, where it fits; else none."""
        if not self.least.has_one_stage_each:
            return ()
        bounds = self.least.one_stage_each[1]
        fits = self.space.possible(bounds[None])[0] and self.space.excess(bounds[None])[0] <= 0
        return (counts_of(bounds),) if fits else ()

    def _slowest(self, bounds: Numbers) -> Bools:
        """Return the mask of the stages that a layout's largest quick bound is on."""
        terms = self.least.terms
        slowest = int(self.least.of(bounds[None])[0].argmax())
        return np.asarray((terms.work[:, slowest] > 0).any(axis=0), np.bool_)

    def _score(self, bounds: Numbers) -> Floats:
        sums = self.space.sums[:, :3].sum(axis=1)
        times = sums[bounds[:, 1:]] - sums[bounds[:, :-1]]
        uneven = np.sqrt((times**2).mean(axis=1)) / times.mean(axis=1)
        quick = self.least.quick(bounds)
        scores: Floats = np.where(np.isfinite(quick), quick, 1e300) * (1 + EVENNESS * uneven)
        over = self.space.excess(bounds)
        if over.any():
            assert self.space.limits is not None
            scores = np.where(over > 0, scores * (1e3 + 1e3 * over / self.space.limits.values.max()), scores)
        return scores

    def all(self) -> Numbers:
        """Return the positions of all allowed layouts; for spaces of few layouts."""
        start, end = self.space.ends
        layers, stages = len(self.space.layers), self.space.stages
        if stages == 1:
            return np.array([[0, layers]], np.intp)
        inner = combinations(range(start, layers - end + 1), stages - 1)
        bounds = np.array([(0, *middle, layers) for middle in inner], np.intp).reshape(-1, stages + 1)
        return bounds[self.space.possible(bounds)]


def _moved(bounds: Numbers, stages: Bools | None = None) -> Numbers:
    """Return the bounds after moving one layer from any stage to any other, and all stages between by one.

    With a mask of ``stages``, only moves that begin or end on one of them.
    """
    pairs = ~np.eye(len(bounds) - 1, dtype=np.bool_)
    if stages is not None:
        pairs &= stages[:, None] | stages[None, :]
    return shifted(bounds, *np.nonzero(pairs))
