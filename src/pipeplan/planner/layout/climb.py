"""Local search over layouts, led by the paths of those that were simulated: most neighbours need no simulation.

A neighbour has one layer on another stage, with everything between the two moved up, or does something else on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.model import Floats, tolerances
from pipeplan.planner.layout.deadline import Deadline
from pipeplan.planner.layout.problem import Laid, LayoutProblem, Numbers, counts_of

MOST_NEIGHBOURS = 8_000
"""Looked at in one step, in about a tenth of a second."""

TRIED = 3
"""Neighbours simulated before a walk goes on to the best of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Layouts with their features, shape (neighbours, stages, 7), and what ranks are over their limits together."""

    bounds: Numbers
    choices: Numbers
    features: Floats
    over: Floats

    def laid(self, number: int) -> Laid:
        """One of them."""
        return Laid(counts_of(self.bounds[number]), tuple(self.choices[number].tolist()))


def descend(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid:
    """The layout that this one leads to: no neighbour of it is better. One that does not fit leads towards one that does."""
    while not deadline.passed:
        problem.thin()
        better = _fitter(problem, laid) if not problem.fits(laid) else _faster(problem, laid, deadline)
        if better is None:
            return laid
        laid = better
    return laid


def walk(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid:
    """The best layout on a walk that goes on to the best of a few promising neighbours, be they better or not.

    It never comes back to a layout, and ends where nothing new may be better than the best one met.
    """
    best = laid
    while not deadline.passed:
        problem.thin()
        near = _near(problem, laid)
        least = np.where(near.over <= 0, problem.least(near.features), np.inf)
        tried: list[Laid] = []
        for number in np.argsort(least).tolist():
            if len(tried) == TRIED or not least[number] < np.inf or deadline.passed:
                break
            other = near.laid(number)
            if other not in problem.simulated:
                problem.makespan(other)
                tried.append(other)
        if not tried:
            return best
        laid = min(tried, key=problem.makespan)
        best = min(best, laid, key=problem.makespan)
    return best


def _fitter(problem: LayoutProblem, laid: Laid) -> Laid | None:
    near = _near(problem, laid)
    now = float(problem.peaks.over(problem.of(laid)))
    if not len(near.over) or near.over.min() >= now * (1 - tolerances.ROUNDING):
        return None
    return near.laid(int(near.over.argmin()))


def _faster(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid | None:
    near = _near(problem, laid)
    best = problem.makespan(laid) * (1 - tolerances.ROUNDING)
    least, known = np.where(near.over <= 0, problem.least(near.features), np.inf), len(problem.constants)
    while len(least) and not deadline.passed:
        nearest = int(least.argmin())
        if least[nearest] >= best:
            return None
        other = near.laid(nearest)
        if problem.makespan(other) < best:
            return other
        open_ones = least < best
        open_ones[nearest] = False
        fresh = np.full(len(least), np.inf)
        fresh[open_ones] = problem.least(near.features[open_ones], since=known)
        least, known = np.maximum(least, fresh), len(problem.constants)
    return None


def _near(problem: LayoutProblem, laid: Laid) -> Neighbours:
    """Every neighbour that there can be."""
    bounds, choices = _moves(problem, laid)
    features = problem.features(bounds, choices)
    possible = np.isfinite(features).all(axis=(1, 2))
    bounds, choices, features = bounds[possible], choices[possible], features[possible]
    return Neighbours(bounds, choices, features, problem.peaks.over(features))


def _moves(problem: LayoutProblem, laid: Laid) -> tuple[Numbers, Numbers]:
    """Bounds and choices after each move: shapes (moves, stages + 1) and (moves, stages)."""
    stages, options = problem.stages, len(problem.tables.choices)
    bounds, choices = laid.bounds, np.array(laid.choices, np.intp)
    giving, taking = np.nonzero(~np.eye(stages, dtype=np.bool_))
    reach = max(int(MOST_NEIGHBOURS / stages / options**2 / 2), 1)
    chosen = (np.abs(giving - taking) <= reach) & (np.diff(bounds)[giving] > 0)
    giving, taking = giving[chosen], taking[chosen]
    at = np.arange(stages + 1)
    moved = bounds + ((at > taking[:, None]).astype(np.intp) - (at > giving[:, None]))
    same = np.broadcast_to(choices, (len(moved), stages))
    if options == 1:
        return moved, same
    first, second = np.divmod(np.arange(options**2), options)
    changed = np.repeat(same[:, None], options**2, axis=1)
    rows, columns = np.arange(len(moved))[:, None], np.arange(options**2)
    changed[rows, columns, giving[:, None]] = first
    changed[rows, columns, taking[:, None]] = second
    changed = changed.reshape(-1, stages)
    still = np.broadcast_to(bounds, (len(changed), stages + 1))
    return np.concatenate((still, np.repeat(moved, options**2, axis=0))), np.concatenate((changed, changed))
