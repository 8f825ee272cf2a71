"""Where the search for a layout starts: even splits, balanced stages, splits by chunks, each led down to where it ends."""

from __future__ import annotations

import numpy as np

from pipeplan.planner.layout.balanced import balanced
from pipeplan.planner.layout.climb import descend
from pipeplan.planner.layout.deadline import Deadline
from pipeplan.planner.layout.even import chunkwise_splits, even_splits
from pipeplan.planner.layout.problem import Laid, LayoutProblem
from pipeplan.planner.layout.stages import TIMES

DESCENT = 0.3
"""Of the time that is left, for the descent from each start."""


def start_of(problem: LayoutProblem, even: Laid | None, deadline: Deadline) -> Laid:
    """Where branching starts: the best that descents come to from an even split, balanced stages, and splits by chunks."""
    starts = best_evens(problem) or [_thriftiest_even(problem)]
    if (level := balanced(problem)) is not None:
        starts.append(level)
    if even and problem.order.schedule.placement.chunks > 1:
        starts.append(_best_chunkwise(problem, even, deadline.part(DESCENT)))
    starts = sorted((_eased(problem, start) for start in starts), key=lambda laid: _rank(problem, laid))
    tried = starts[: 2 if problem.order.schedule.placement.chunks > 1 else 1]
    found = [descend(problem, start, deadline.part(DESCENT)) for start in tried]
    fitting = [laid for laid in (*found, *([even] if even else [])) if problem.fits(laid)]
    return min(fitting or found, key=problem.makespan)


def best_evens(problem: LayoutProblem) -> list[Laid]:
    """The best of the even splits that fit with one choice everywhere, two of different layers at most, the better first."""
    fitting = sorted((laid for laid in _evens(problem) if problem.fits(laid)), key=problem.makespan)
    different = {laid.counts: laid for laid in reversed(fitting)}
    return sorted(different.values(), key=problem.makespan)[:2]


def _rank(problem: LayoutProblem, laid: Laid) -> tuple[float, float]:
    """What is less is better: bytes over the limits, then time."""
    return float(problem.peaks.over(problem.of(laid))), problem.makespan(laid)


def _eased(problem: LayoutProblem, laid: Laid) -> Laid:
    """A layout that fits with the fastest choice on each stage, one after the other, with which it still fits."""
    if not problem.fits(laid):
        return laid
    for stage in range(problem.stages):
        now = float(problem.of(laid)[stage, TIMES].sum())
        others = []
        for choice in range(len(problem.tables.choices)):
            other = Laid(laid.counts, (*laid.choices[:stage], choice, *laid.choices[stage + 1 :]))
            takes = float(problem.of(other)[stage, TIMES].sum())
            if takes < now:
                others.append((takes, choice, other))
        laid = next((other for _, _, other in sorted(others, key=lambda each: each[:2]) if problem.fits(other)), laid)
    return laid


def _evens(problem: LayoutProblem) -> list[Laid]:
    parts, stages = problem.tables.parts, problem.stages
    splits = even_splits(problem.layers, stages, bare_first=bool(parts.start), bare_last=bool(parts.end))
    whole = [number for number, choice in enumerate(problem.tables.choices) if choice.layers is None]
    return [Laid(split, (choice,) * stages) for split in splits for choice in whole]


def _best_chunkwise(problem: LayoutProblem, even: Laid, deadline: Deadline) -> Laid:
    """The best of the splits by chunks that fit with what the even one does, as far as time goes."""
    best = even
    for split in chunkwise_splits(problem.layers, problem.order.schedule.placement):
        if deadline.passed():
            break
        laid = Laid(split, even.choices)
        if min(split[1:-1], default=1) > 0 and np.isfinite(problem.of(laid)).all() and problem.fits(laid):
            best = min(best, laid, key=problem.makespan)
    return best


def _thriftiest_even(problem: LayoutProblem) -> Laid:
    return min(_evens(problem), key=lambda laid: float(problem.peaks.over(problem.of(laid))))
