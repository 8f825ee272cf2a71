"""Local search over layouts, led by the paths of those that were simulated: most neighbours need no simulation.

A neighbour has one layer on another stage, with everything between the two moved up, or does something else on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.model import Floats, tolerances
from pipeplan.planner.layout.problem import Deadline, Laid, LayoutProblem, Numbers, counts_of

MOST_STAGES = 200_000
"""Of all neighbours looked at in one step, in about a tenth of a second."""

BATCH = 128
"""Neighbours whose memory is looked at together: the most promising, as it is not needed of the others."""

TRIED = 3
"""Neighbours simulated before a walk goes on to the best of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Layouts with their features, shape (neighbours, stages, 7)."""

    bounds: Numbers
    choices: Numbers
    features: Floats

    def laid(self, number: int) -> Laid:
        """Return one of the neighbours."""
        return Laid(counts_of(self.bounds[number]), tuple(self.choices[number].tolist()))


def descend(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid:
    """The layout that this one leads to: no neighbour of it is better. One that does not fit leads towards one that does."""
    while not deadline.passed():
        problem.thin()
        better = _better(problem, laid, deadline, wide=False) or _better(problem, laid, deadline, wide=True)
        if better is None:
            return laid
        laid = better
    return laid


def _better(problem: LayoutProblem, laid: Laid, deadline: Deadline, *, wide: bool) -> Laid | None:
    if not problem.fits(laid):
        return _fitter(problem, laid, wide=wide)
    return _faster(problem, laid, deadline, wide=wide)


def walk(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid:
    """The best layout on a walk that goes on to the best of a few promising neighbours, be they better or not.

    It never comes back to a layout, and ends where there is none that it has not been at.
    """
    best = laid
    while not deadline.passed():
        problem.thin()
        near = _near(problem, laid, wide=True)
        fitting = _Fitting(problem, near)
        tried: list[Laid] = []
        while len(tried) < TRIED and not deadline.passed():
            number = fitting.next()
            if number is None:
                break
            fitting.drop(number)
            other = near.laid(number)
            if other not in problem.simulated:
                problem.makespan(other)
                tried.append(other)
        if not tried:
            return best
        laid = min(tried, key=problem.makespan)
        best = min(best, laid, key=problem.makespan)
    return best


def _fitter(problem: LayoutProblem, laid: Laid, *, wide: bool) -> Laid | None:
    """Return the neighbour that is least over the limits, if it is less so than the layout."""
    near = _near(problem, laid, wide=wide)
    now = float(problem.peaks.over(problem.of(laid)))
    if not len(near.features):
        return None
    parts = np.array_split(near.features, -(-len(near.features) // BATCH))
    over = np.concatenate([problem.peaks.over(part) for part in parts])
    return near.laid(int(over.argmin())) if over.min() < now * (1 - tolerances.ROUNDING) else None


def _faster(problem: LayoutProblem, laid: Laid, deadline: Deadline, *, wide: bool) -> Laid | None:
    near = _near(problem, laid, wide=wide)
    best = problem.makespan(laid) * (1 - tolerances.ROUNDING)
    fitting = _Fitting(problem, near)
    while not deadline.passed():
        number = fitting.next(best)
        if number is None:
            return None
        other = near.laid(number)
        if problem.makespan(other) < best:
            return other
        fitting.drop(number)
    return None


class _Fitting:
    """The neighbours that fit, sorted by their lower bound."""

    def __init__(self, problem: LayoutProblem, near: Neighbours) -> None:
        self.problem, self.near = problem, near
        self.least = problem.least(near.features)
        self.known = len(problem.constants)
        self.fits = np.zeros(len(self.least), np.bool_)

    def next(self, below: float = np.inf) -> int | None:
        """The first one, if it can take less than ``below``."""
        self._learn(below)
        while len(self.least):
            number = int(self.least.argmin())
            if not self.least[number] < below:
                return None
            if self.fits[number]:
                return number
            self._look(below)
        return None

    def drop(self, number: int) -> None:
        """Leave one out from now on."""
        self.least[number] = np.inf

    def _learn(self, below: float) -> None:
        """Raise the bounds by the cuts that were found since."""
        if self.known < len(self.problem.constants):
            left = np.flatnonzero(self.least < below)
            fresh = self.problem.least(self.near.features[left], since=self.known)
            self.least[left] = np.maximum(self.least[left], fresh)
            self.known = len(self.problem.constants)

    def _look(self, below: float) -> None:
        unknown = np.flatnonzero((self.least < below) & ~self.fits)
        first = unknown[np.argsort(self.least[unknown], kind="stable")[:BATCH]]
        self.fits[first] = self.problem.peaks.over(self.near.features[first]) <= 0
        self.least[first[~self.fits[first]]] = np.inf


def _near(problem: LayoutProblem, laid: Laid, *, wide: bool) -> Neighbours:
    """Return the possible neighbours; ``wide`` adds those that move a layer and choose anew on both stages."""
    bounds, choices = _moves(problem, laid, wide=wide)
    features = problem.features(bounds, choices)
    possible = np.isfinite(features).all(axis=(1, 2))
    bounds, choices, features = bounds[possible], choices[possible], features[possible]
    return Neighbours(bounds, choices, features)


def _moves(problem: LayoutProblem, laid: Laid, *, wide: bool) -> tuple[Numbers, Numbers]:
    """Return bounds and choices after each move: shapes (moves, stages + 1) and (moves, stages)."""
    stages, options = problem.stages, len(problem.tables.choices)
    bounds, choices = laid.bounds, np.array(laid.choices, np.intp)
    most = MOST_STAGES // stages
    giving, taking = _pairs(stages, most)
    moved = [(_shifted(bounds, giving, taking), np.broadcast_to(choices, (len(giving), stages)))]
    if options > 1:
        stage, choice = map(np.ravel, np.indices((stages, options)))
        moved.append((_still(bounds, len(stage)), _chosen(choices, stage, choice)))
        swapped = _chosen(_chosen(choices, giving, choices[taking]), taking, choices[giving])
        moved.append((_still(bounds, len(giving)), swapped))
    if options > 1 and wide:
        near, far = _pairs(stages, most // options**2)
        pair, first, second = map(np.ravel, np.indices((len(near), options, options)))
        both = _chosen(_chosen(choices, near[pair], first), far[pair], second)
        moved.append((_shifted(bounds, near, far)[pair], both))
    return np.concatenate([move[0] for move in moved]), np.concatenate([move[1] for move in moved])


def _pairs(stages: int, most: int) -> tuple[Numbers, Numbers]:
    """Return pairs of different stages, only the nearest ones where there are too many."""
    one, other = np.nonzero(~np.eye(stages, dtype=np.bool_))
    near = np.abs(one - other) <= max(most // (2 * stages), 1)
    return one[near], other[near]


def _shifted(bounds: Numbers, giving: Numbers, taking: Numbers) -> Numbers:
    """Return bounds with a layer less on a stage and one more on another, a row per pair; unchanged with none to give."""
    at = np.arange(len(bounds))
    shift = (at > taking[:, None]).astype(np.intp) - (at > giving[:, None])
    return bounds + shift * (np.diff(bounds)[giving] > 0)[:, None]


def _still(bounds: Numbers, times: int) -> Numbers:
    return np.broadcast_to(bounds, (times, len(bounds)))


def _chosen(choices: Numbers, stage: Numbers, choice: Numbers) -> Numbers:
    """Return choices with another one on a stage, a row each; ``choices`` is one row, or one for each."""
    changed = np.array(np.broadcast_to(choices, (len(stage), choices.shape[-1])))
    changed[np.arange(len(stage)), stage] = choice
    return changed
