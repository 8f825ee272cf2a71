"""Descent over layouts: to the best neighbour that no simulated layout's path rules out, until all neighbours are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeplan.model import tolerances
from pipeplan.planner.layout.problem import Laid, LayoutProblem, Numbers, counts_of

MOST_NEIGHBOURS = 20_000
"""Looked at in one step, in a few tenths of a second."""


def descend(problem: LayoutProblem, laid: Laid, out_of_time: Callable[[], bool]) -> Laid:
    """The layout that this one leads to: no neighbour of it is better. It fits, or is as little over the limits as it gets.

    A neighbour has one layer on another stage, with everything between them moved up, or does something else on the stages
    concerned. Most are never simulated: paths of other layouts already take longer than the best one.
    """
    while not out_of_time():
        better = _better_neighbour(problem, laid, out_of_time)
        if better is None:
            return laid
        laid = better
    return laid


def _better_neighbour(problem: LayoutProblem, laid: Laid, out_of_time: Callable[[], bool]) -> Laid | None:
    bounds, choices = neighbours(problem, laid)
    features = problem.features(bounds, choices)
    possible = np.isfinite(features).all(axis=(1, 2))
    bounds, choices, features = bounds[possible], choices[possible], features[possible]
    if not len(features):
        return None
    over = problem.peaks.over(features)
    now = float(problem.peaks.over(problem.of(laid)))
    if now > 0:
        if over.min() >= now * (1 - tolerances.ROUNDING):
            return None
        return Laid(counts_of(bounds[over.argmin()]), tuple(choices[over.argmin()].tolist()))
    best = problem.makespan(laid) * (1 - tolerances.ROUNDING)
    fitting = over <= 0
    bounds, choices, features = bounds[fitting], choices[fitting], features[fitting]
    least, known = problem.least(features), len(problem.constants)
    while len(least) and not out_of_time():
        nearest = int(least.argmin())
        if least[nearest] >= best:
            return None
        other = Laid(counts_of(bounds[nearest]), tuple(choices[nearest].tolist()))
        found = problem.makespan(other)
        if found < best:
            return other
        least = np.maximum(least, problem.least(features, since=known))
        least[nearest] = np.inf
        known = len(problem.constants)
    return None


def neighbours(problem: LayoutProblem, laid: Laid) -> tuple[Numbers, Numbers]:
    """Bounds and choices of every neighbour: shapes (neighbours, stages + 1) and (neighbours, stages)."""
    stages, options = problem.stages, len(problem.tables.choices)
    bounds, choices = laid.bounds, np.array(laid.choices, np.intp)
    giving, taking = np.nonzero(~np.eye(stages, dtype=np.bool_))
    reach = max(int(MOST_NEIGHBOURS / stages / options**2 / 2), 1)
    near = np.abs(giving - taking) <= reach
    giving, taking = giving[near], taking[near]
    at = np.arange(stages + 1)
    giving, taking = giving[np.diff(bounds)[giving] > 0], taking[np.diff(bounds)[giving] > 0]
    moved = bounds + ((at > taking[:, None]).astype(np.intp) - (at > giving[:, None]))
    moved_choices = np.broadcast_to(choices, (len(moved), stages))
    if options > 1:
        chosen = np.repeat(moved_choices[:, None], options**2, axis=1)
        first, second = np.divmod(np.arange(options**2), options)
        rows = np.arange(len(moved))[:, None]
        columns = np.arange(options**2)
        chosen[rows, columns, giving[:, None]] = first
        chosen[rows, columns, taking[:, None]] = second
        still = np.repeat(np.broadcast_to(bounds, moved.shape)[:, None], options**2, axis=1).reshape(-1, stages + 1)
        moved = np.concatenate((still, np.repeat(moved[:, None], options**2, axis=1).reshape(-1, stages + 1)))
        moved_choices = np.concatenate((chosen.reshape(-1, stages),) * 2)
    return moved, moved_choices
