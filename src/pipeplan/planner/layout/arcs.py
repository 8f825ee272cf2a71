"""Runs of layers that a stage can still have in a layout better than the best one known.

A layout is a way through a graph: a node for each stage and first layer, an arc for each run of layers and what they do.
Every cut is a length of the arcs, and so is everything that a rank holds. What a prefix of a layout comes to at least is its
own length and the shortest way from there to the end, by dynamic programming, for each of them; an arc all of whose ways are
too long for one of them is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Bools, Floats
from pipeplan.planner.layout.laid import LaidLayer
from pipeplan.planner.layout.problem import Deadline, LayoutProblem, Numbers
from pipeplan.planner.layout.stages import BYTES, FEATURES, TIMES

ROWS_OF_RANK = 4
"""Of what a rank holds at once; the others are looked at where a layout is whole."""


@dataclass(frozen=True, slots=True, eq=False)
class StageArcs:
    """The arcs of one stage, by first layer; arrays of shape (arcs,), features of shape (arcs, 7)."""

    first: Numbers
    stop: Numbers
    choice: Numbers
    features: Floats

    def keep(self, chosen: Bools) -> StageArcs:
        """Only the chosen ones."""
        return StageArcs(self.first[chosen], self.stop[chosen], self.choice[chosen], self.features[chosen])

    def at(self, first: int) -> slice:
        """Return the arcs that begin at a layer."""
        begin, end = np.searchsorted(self.first, (first, first + 1)).tolist()
        return slice(begin, end)


class LimitRows:
    """Lengths of arcs that must not be passed: the cuts, and what each rank may hold.

    Attributes
    ----------
    weights
        What each feature of a stage counts, shape (rows, stages, 7).
    most
        What a layout may come to, shape (rows,).
    """

    def __init__(self, problem: LayoutProblem, below: float) -> None:
        peaks, stages = problem.peaks, problem.stages
        bounded = _fullest(problem)
        held = np.zeros((len(bounded), stages, FEATURES))
        held[:, :, BYTES] = peaks.rows[bounded]
        cuts = np.zeros((len(problem.constants), stages, FEATURES))
        cuts[:, :, TIMES] = problem.counts
        self.weights: Floats = np.concatenate((held, cuts))
        self.most: Floats = np.concatenate((peaks.limits[peaks.rank][bounded], below - problem.constants))

    def __len__(self) -> int:
        return len(self.most)


def _fullest(problem: LayoutProblem) -> Numbers:
    """Return, of each rank's rows under a limit, those that the last simulated layout makes largest."""
    peaks = problem.peaks
    held = np.tensordot(peaks.rows, problem.of(list(problem.simulated)[-1])[:, BYTES], axes=((1, 2), (0, 1)))
    order = np.lexsort((-held, peaks.rank))
    place = np.arange(len(order)) - np.searchsorted(peaks.rank, peaks.rank[order])
    fullest: Numbers = np.sort(order[(place < ROWS_OF_RANK) & np.isfinite(peaks.limits[peaks.rank[order]])])
    return fullest


class Arcs:
    """The arcs that are left, and the shortest ways over them.

    Parameters
    ----------
    problem
        With some cuts.
    below
        What a layout's makespan must stay below to be of interest.
    deadline
        After which no more arcs are dropped.
    """

    def __init__(self, problem: LayoutProblem, below: float, deadline: Deadline) -> None:
        self.problem = problem
        self.rows = LimitRows(problem, below)
        self.stages = [possible(problem, stage, below) for stage in range(problem.stages)]
        self._eliminate(deadline)

    @property
    def empty(self) -> bool:
        """Whether no layout is left."""
        return any(not len(stage.first) for stage in self.stages)

    @property
    def count(self) -> int:
        """Return the number of arcs that are left."""
        return sum(len(stage.first) for stage in self.stages)

    def _eliminate(self, deadline: Deadline) -> None:
        """Drop arcs without a way for some row: by the last rows first, those of the ranks, then by all."""
        some = slice(max(len(self.rows) - self.problem.order.schedule.ranks, 0), None)
        for rows in (some, some, slice(None), slice(None)):
            if self.empty or deadline.passed():
                return
            weights, most = self.rows.weights[rows], self.rows.most[rows]
            lengths = [self.lengths(number, weights) for number in range(self.problem.stages)]
            from_start = self._shortest_from_start(lengths)
            to_end = self._shortest_to_end(lengths)
            for number, stage in enumerate(self.stages):
                ways = from_start[number][stage.first] + lengths[number] + to_end[number + 1][stage.stop]
                self.stages[number] = stage.keep((ways <= most).all(axis=1))

    def lengths(self, stage: int, weights: Floats) -> Floats:
        """Return the lengths of a stage's arcs by rows of weights, shape (arcs, rows)."""
        found: Floats = self.stages[stage].features @ weights[:, stage].T
        return found

    def shortest_to_end(self, weights: Floats) -> Floats:
        """Return the shortest ways by stage, first layer and row of weights, shape (stages + 1, layers + 1, rows)."""
        return self._shortest_to_end([self.lengths(number, weights) for number in range(self.problem.stages)])

    def _shortest_to_end(self, lengths: list[Floats]) -> Floats:
        found = np.full((self.problem.stages + 1, self.problem.layers + 1, lengths[0].shape[1]), np.inf)
        found[-1, -1] = 0.0
        for number in reversed(range(self.problem.stages)):
            stage = self.stages[number]
            least_by(stage.first, lengths[number] + found[number + 1][stage.stop], found[number])
        return found

    def _shortest_from_start(self, lengths: list[Floats]) -> Floats:
        found = np.full((self.problem.stages + 1, self.problem.layers + 1, lengths[0].shape[1]), np.inf)
        found[0, 0] = 0.0
        for number, stage in enumerate(self.stages):
            order = np.argsort(stage.stop, kind="stable")
            least_by(stage.stop[order], (lengths[number] + found[number][stage.first])[order], found[number + 1])
        return found


def least_by(keys: Numbers, values: Floats, into: Floats) -> None:
    """The least of the values of each key; keys are sorted."""
    if len(keys):
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        into[keys[starts]] = np.minimum.reduceat(values, starts, axis=0)


def possible(problem: LayoutProblem, stage: int, below: float) -> StageArcs:
    """The runs that a stage can have by itself: it runs all microbatches, and its ranks hold it."""
    layers, stages = problem.layers, problem.stages
    parts, placement = problem.tables.parts, problem.order.schedule.placement
    at = np.arange(layers + 1)
    least_before = max(stage - bool(parts.start), 0)
    least_behind = max(stages - 1 - stage - bool(parts.end), 0)
    first = (at >= least_before) & ((at == 0) | (stage > 0))
    stop = (layers - at >= least_behind) & ((at == layers) | (stage < stages - 1))
    each = problem.order.schedule.microbatches // placement.copies
    allowed = problem.exists(stage) & first[:, None] & stop
    allowed &= each * (problem.takes(stage) + _beside(problem, stage)) <= below
    number, begin, end = np.nonzero(allowed)
    features = problem.of_stage(stage)[number, begin, end]
    fits = _fits_alone(problem, stage, features)
    arcs = StageArcs(begin[fits], end[fits], number[fits], features[fits])
    return _sorted_undominated(arcs, alone=_alone(problem, stage))


def _beside(problem: LayoutProblem, stage: int) -> float:
    """Return the least time of the other stages of a rank for one microbatch of one copy."""
    placement, least = problem.order.schedule.placement, min(_shortest(layer) for layer in problem.tables.parts.middle)
    others = [other for other in placement.stages_on(placement.rank_of[0][stage]) if other != stage]
    return least * sum(0 < other < problem.stages - 1 for other in others)


def _shortest(layer: LaidLayer) -> float:
    return min(option.time for option in layer.options)


def _alone(problem: LayoutProblem, stage: int) -> bool:
    holds = problem.peaks.holds
    return bool((holds[holds[:, stage]].sum(axis=1) == 1).all())


def _fits_alone(problem: LayoutProblem, stage: int, features: Floats) -> NDArray[np.bool_]:
    peaks = problem.peaks
    rows = peaks.holds[peaks.rank, stage]
    held = features[:, BYTES] @ peaks.rows[rows, stage].T
    fits: NDArray[np.bool_] = (held <= peaks.limits[peaks.rank[rows]]).all(axis=1)
    return fits


def _sorted_undominated(arcs: StageArcs, *, alone: bool) -> StageArcs:
    """By first layer, without those that another choice for the same layers equals or beats in everything.

    Where a stage is alone on its rank and fits, only its times matter.
    """
    order = np.lexsort((arcs.choice, arcs.stop, arcs.first))
    arcs = arcs.keep(order)  # type: ignore[arg-type]
    matter = arcs.features[:, TIMES] if alone else arcs.features
    kept = np.ones(len(arcs.first), np.bool_)
    run = arcs.first * (int(arcs.stop.max(initial=0)) + 1) + arcs.stop
    for apart in range(1, len(np.unique(arcs.choice))):
        same = run[apart:] == run[:-apart]
        earlier, later = matter[:-apart], matter[apart:]
        kept[apart:] &= ~(same & (earlier <= later).all(axis=1))
        kept[:-apart] &= ~(same & (later <= earlier).all(axis=1) & (later < earlier).any(axis=1))
    return arcs.keep(kept)
