"""Branch and bound over layouts"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Bools, Floats, tolerances
from pipeplan.planner.layout.problem import Deadline, Laid, LayoutProblem, Numbers
from pipeplan.planner.layout.stages import BYTES, FEATURES, TIMES, LaidLayer

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


class Capacity:
    """What all bounds with the same cuts share.

    Attributes
    ----------
    cuts
        For each rank, the cut that all of its stages make most of; empty where ranks hold several copies of the model, whose
        stages are then bound to each other.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        stages, parts = problem.stages, problem.tables.parts
        holds = problem.peaks.holds
        of_stages = problem.counts.sum(axis=2)
        of_ranks = np.stack([of_stages[:, here].min(axis=1) for here in holds])
        one_copy = problem.order.schedule.placement.copies == 1 and len(problem.counts)
        self.cuts = of_ranks.argmax(axis=1) if one_copy else np.zeros(0, np.intp)
        counts = problem.counts[self.cuts]
        self._constants = problem.constants[self.cuts]
        # By the first stage that is left: the least that a layer counts on any stage left, and on the rank's own.
        self._anywhere = np.minimum.accumulate(counts[:, ::-1], axis=1)[:, ::-1]
        own = np.where(holds[: len(self.cuts), :, None], counts, np.inf)
        self._own = np.minimum.accumulate(own[:, ::-1], axis=1)[:, ::-1]
        self._layers = np.array([_least(layer) for layer in parts.middle])
        self._start = counts[:, 0] @ _sum(parts.start)
        self._end = counts[:, stages - 1] @ _sum(parts.end)

    def bound(self, stage: int, first: int, lengths: Floats) -> float:
        """Return a lower bound on layouts whose stages before ``stage`` are known and have the layers before ``first``.

        Parameters
        ----------
        lengths
            Of those stages by every cut.
        """
        if not len(self.cuts):
            return 0.0
        left = self._layers[first:]
        known = lengths[self.cuts] if stage else self._start
        fixed = known + self._constants + self._end + self._anywhere[:, stage] @ left.sum(axis=0)
        least = float(fixed.max())
        if not len(left):
            return least
        free = np.isfinite(self._own[:, stage, 0])
        more = np.sort((self._own - self._anywhere)[free, stage] @ left.T, axis=1)
        makespans = (fixed[free, None] + np.cumsum(more, axis=1)).ravel()
        if len(makespans) < len(left):
            return np.inf
        return max(least, float(np.partition(makespans, len(left) - 1)[len(left) - 1]))


def _least(layer: LaidLayer) -> Floats:
    """Return the least times of F, I and W of a layer over its options."""
    times = [(option.forward, option.backward_input, option.backward_weight) for option in layer.options]
    least: Floats = np.array(times).min(axis=0)
    return least


def _sum(layers: tuple[LaidLayer, ...]) -> Floats:
    total: Floats = np.array([_least(layer) for layer in layers]).sum(axis=0) if layers else np.zeros(3)
    return total


@dataclass(frozen=True, slots=True)
class BranchedLayouts:
    """The result of branching.

    Attributes
    ----------
    better
        A layout better than the best one known; None where none was found.
    bound
        What no layout's makespan is below; the one to beat where all were looked at.
    complete
        Whether all were looked at, so that none is better than the best one known.
    """

    better: Laid | None
    bound: float
    complete: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """The layers and choices of the first stages, their length by each row known then, and a lower bound."""

    layers: tuple[int, ...]
    choices: tuple[int, ...]
    stop: int
    length: Floats
    bound: float


class LayoutBranching:
    """The tree of layouts that can be better than the best one known.

    Parameters
    ----------
    problem
        With some cuts; layouts at leaves are simulated and add theirs.
    best
        The makespan to beat.
    deadline
        When to end.
    """

    def __init__(self, problem: LayoutProblem, best: float, deadline: Deadline) -> None:
        self.problem, self.best = problem, best
        self.below = best * (1 - tolerances.ROUNDING)
        self.deadline = deadline
        self.capacity = Capacity(problem)
        self.arcs = Arcs(problem, self.below, deadline)
        self.held = len(self.arcs.rows) - len(problem.constants)
        self.weights = self.arcs.rows.weights
        self.most = self.arcs.rows.most

    def run(self) -> BranchedLayouts:
        """Look at all, the most promising first, until one is better or time is up."""
        if self.arcs.empty:
            return BranchedLayouts(None, self.best, complete=True)
        if self.deadline.passed():
            return BranchedLayouts(None, min(self.best, self.capacity.bound(0, 0, np.zeros(0))))
        self.to_end = self.arcs.shortest_to_end(self.weights)
        root = _Node((), (), 0, np.zeros(len(self.weights)), self._root_bound())
        open_nodes = [root]
        while open_nodes:
            if self.deadline.passed():
                return BranchedLayouts(None, min(self.best, *(node.bound for node in open_nodes)))
            node = open_nodes.pop()
            if node.bound >= self.below or self._capacity(node) >= self.below:
                continue
            if len(node.layers) < self.problem.stages:
                open_nodes += self._children(node)
                continue
            laid = Laid(node.layers, node.choices)
            if self.problem.fits(laid) and self.problem.makespan(laid) < self.below:
                return BranchedLayouts(laid, min([node.bound, *(other.bound for other in open_nodes)]))
            self._learn()
        return BranchedLayouts(None, self.best, complete=True)

    def _root_bound(self) -> float:
        cuts = self.to_end[0, 0, self.held :] + self.problem.constants
        return max(float(cuts.max(initial=0.0)), self.capacity.bound(0, 0, np.zeros(0)))

    def _capacity(self, node: _Node) -> float:
        if len(node.layers) == self.problem.stages:
            return 0.0
        return self.capacity.bound(len(node.layers), node.stop, node.length[self.held :])

    def _learn(self) -> None:
        """Take over the cuts that were found since."""
        known = len(self.weights) - self.held
        counts = self.problem.counts[known:]
        if not len(counts):
            return
        fresh = np.zeros((len(counts), *self.weights.shape[1:]))
        fresh[:, :, TIMES] = counts
        self.weights = np.concatenate((self.weights, fresh))
        self.most = np.concatenate((self.most, self.below - self.problem.constants[known:]))
        self.to_end = np.concatenate((self.to_end, self.arcs.shortest_to_end(fresh)), axis=2)

    def _children(self, node: _Node) -> list[_Node]:
        """Return the children that are not ruled out, the most promising last."""
        number = len(node.layers)
        stage = self.arcs.stages[number]
        here = stage.at(node.stop)
        stops, choices = stage.stop[here], stage.choice[here]
        lengths = self._length(node) + stage.features[here] @ self.weights[:, number].T
        least = lengths + self.to_end[number + 1][stops]
        slack = self.most - least
        bounds = self.below - slack[:, self.held :].min(axis=1, initial=np.inf)
        possible = np.flatnonzero((slack >= 0).all(axis=1))
        order = possible[np.argsort(-bounds[possible], kind="stable")]
        found = []
        for child in order.tolist():
            bound = max(float(bounds[child]), node.bound)
            found.append(
                _Node(
                    (*node.layers, int(stops[child]) - node.stop),
                    (*node.choices, int(choices[child])),
                    int(stops[child]),
                    lengths[child],
                    bound,
                )
            )
        return found

    def _length(self, node: _Node) -> Floats:
        """Return the length of a node's stages by every row, with the rows learnt since the node was made."""
        known = len(node.length)
        if known == len(self.weights):
            return node.length
        bounds = np.array([0, *np.cumsum(node.layers)], np.intp)
        done = len(node.layers)
        padded = np.concatenate((bounds, np.full(self.problem.stages - done, bounds[-1])))
        choices = np.array([*node.choices, *(0,) * (self.problem.stages - done)], np.intp)
        features = self.problem.features(padded, choices)[:done]
        further = np.tensordot(features, self.weights[known:, :done], axes=((0, 1), (1, 2)))
        return np.concatenate((node.length, further))
