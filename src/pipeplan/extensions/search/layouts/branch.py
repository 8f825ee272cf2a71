"""Branch and bound over layouts, stage by stage, on a graph of the runs of layers that each stage can still have.

A layout is a path through a graph with a node for each stage and first layer, and an arc for each run of layers and choice.
Every cut is a length of the arcs, and so is every peak of a rank. For each of these lengths, a prefix of a layout is bounded
by its own length and the shortest path from there to the end (dynamic programming). An arc is dropped if all paths over it
are too long in one of the lengths. The cuts are those of Benders' decomposition (1962), the search is Land and Doig's
(1960).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.search.layouts.problem import Deadline, Laid, LayoutProblem, Numbers, with_curves
from pipeplan.extensions.search.layouts.stages import BYTES, FEATURES, TIMES
from pipeplan.model import Bools, Floats, tolerances

ROWS_OF_RANK = 4
"""Maximum number of memory rows of a rank that bound arcs; the other rows are checked when a layout is complete."""


@dataclass(frozen=True, slots=True, eq=False)
class StageArcs:
    """Arcs of one stage, sorted by first layer; arrays of shape (arcs,), features of shape (arcs, 7)."""

    first: Numbers
    stop: Numbers
    choice: Numbers
    features: Floats

    def keep(self, chosen: Bools | Numbers) -> StageArcs:
        """Return only the chosen arcs, in the order of their numbers if these are chosen."""
        return StageArcs(self.first[chosen], self.stop[chosen], self.choice[chosen], self.features[chosen])

    def at(self, first: int) -> slice:
        """Return the range of the arcs that begin at a layer."""
        begin, end = np.searchsorted(self.first, (first, first + 1)).tolist()
        return slice(begin, end)


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Lengths of arcs: sums of weighted features of stages, and of functions of their runs; without pairs, of no runs.

    Shapes (rows, stages, 7) and (rows, stages, runs).
    """

    weights: Floats
    curves: Floats

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: slice) -> Lengths:
        return Lengths(self.weights[rows], self.curves[rows])

    def and_cuts(self, problem: LayoutProblem, since: int) -> Lengths:
        """Return these lengths and those of the problem's cuts from the ``since``-th on."""
        cuts = np.zeros((len(problem.constants) - since, problem.stages, FEATURES))
        cuts[:, :, TIMES] = problem.counts[since:]
        return Lengths(np.concatenate((self.weights, cuts)), np.concatenate((self.curves, problem.curves[since:])))

    def of_stage(self, stage: int, features: Floats) -> Floats:
        """Return the lengths of a stage with features of shape (arcs, features); shape (arcs, rows)."""
        lengths = features[:, :FEATURES] @ self.weights[:, stage].T
        return with_curves(lengths, self.curves[:, stage, None], features[:, None])

    def of_first(self, features: Floats) -> Floats:
        """Return the lengths of the first stages together, with features of shape (stages, features); shape (rows,)."""
        stages = len(features)
        lengths = np.tensordot(features[:, :FEATURES], self.weights[:, :stages], axes=((0, 1), (1, 2)))
        return with_curves(lengths, self.curves[:, :stages], features)


def limit_rows(problem: LayoutProblem, below: float) -> tuple[Lengths, Floats]:
    """Return lengths with upper limits, the memory of each rank and then the cuts, and the limits, shape (rows,)."""
    peaks, stages = problem.peaks, problem.stages
    bounded = _fullest(problem)
    held = np.zeros((len(bounded), stages, FEATURES))
    held[:, :, BYTES] = peaks.rows[bounded]
    most = np.concatenate((peaks.limits[peaks.rank][bounded], below - problem.constants))
    none = np.zeros((len(bounded), *problem.curves.shape[1:]))
    return Lengths(held, none).and_cuts(problem, 0), most


def _fullest(problem: LayoutProblem) -> Numbers:
    """Return the rows of each rank with a limit that are largest in the last simulated layout."""
    peaks = problem.peaks
    # Memory of every row in the last simulated layout; per rank, the ROWS_OF_RANK largest under a finite limit.
    held = np.tensordot(peaks.rows, problem.of(list(problem.simulated)[-1])[:, BYTES], axes=((1, 2), (0, 1)))
    order = np.lexsort((-held, peaks.rank))
    place = np.arange(len(order)) - np.searchsorted(peaks.rank, peaks.rank[order])
    fullest: Numbers = np.sort(order[(place < ROWS_OF_RANK) & np.isfinite(peaks.limits[peaks.rank[order]])])
    return fullest


class Arcs:
    """Remaining arcs and the shortest paths over them.

    Parameters
    ----------
    problem
        Layout problem with its cuts so far.
    below
        Makespan that a layout must stay below to be of interest.
    deadline
        Time after which no more arcs are dropped.

    Attributes
    ----------
    rows, most
        The :func:`limit_rows`.
    """

    def __init__(self, problem: LayoutProblem, below: float, deadline: Deadline) -> None:
        self.problem = problem
        self.rows, self.most = limit_rows(problem, below)
        self.stages = [possible(problem, stage, below) for stage in range(problem.stages)]
        self._eliminate(deadline)

    @property
    def empty(self) -> bool:
        """True if no layout remains."""
        return any(not len(stage.first) for stage in self.stages)

    def _eliminate(self, deadline: Deadline) -> None:
        """Drop arcs on no path within a row's limit: first by the newest rows, those of the ranks, then by all."""
        some = slice(max(len(self.most) - self.problem.order.schedule.ranks, 0), None)
        # Dropping arcs lengthens the shortest paths, so each set of rows is used twice.
        for rows in (some, some, slice(None), slice(None)):
            if self.empty or deadline.passed():
                return
            chosen, most = self.rows[rows], self.most[rows]
            lengths = self._lengths(chosen)
            from_start = self._shortest_from_start(lengths)
            to_end = self._shortest_to_end(lengths)
            for number, stage in enumerate(self.stages):
                ways = from_start[number][stage.first] + lengths[number] + to_end[number + 1][stage.stop]
                self.stages[number] = stage.keep((ways <= most).all(axis=1))

    def _lengths(self, rows: Lengths) -> list[Floats]:
        """Return the lengths of each stage's arcs, arrays of shape (arcs, rows)."""
        return [rows.of_stage(number, stage.features) for number, stage in enumerate(self.stages)]

    def shortest_to_end(self, rows: Lengths) -> Floats:
        """Return the shortest paths by stage, first layer and row; shape (stages + 1, layers + 1, rows)."""
        return self._shortest_to_end(self._lengths(rows))

    def _shortest_to_end(self, lengths: list[Floats]) -> Floats:
        # Dynamic program backwards: the best of all arcs from a layer, each with the best way from where it stops.
        shortest = np.full((self.problem.stages + 1, self.problem.layers + 1, lengths[0].shape[1]), np.inf)
        shortest[-1, -1] = 0.0
        for number in reversed(range(self.problem.stages)):
            stage = self.stages[number]
            least_by(stage.first, lengths[number] + shortest[number + 1][stage.stop], shortest[number])
        return shortest

    def _shortest_from_start(self, lengths: list[Floats]) -> Floats:
        shortest = np.full((self.problem.stages + 1, self.problem.layers + 1, lengths[0].shape[1]), np.inf)
        shortest[0, 0] = 0.0
        for number, stage in enumerate(self.stages):
            order = np.argsort(stage.stop, kind="stable")
            least_by(stage.stop[order], (lengths[number] + shortest[number][stage.first])[order], shortest[number + 1])
        return shortest


def least_by(keys: Numbers, values: Floats, into: Floats) -> None:
    """Write the minimum of the values of each key to ``into``; keys are sorted."""
    if len(keys):
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        into[keys[starts]] = np.minimum.reduceat(values, starts, axis=0)


def possible(problem: LayoutProblem, stage: int, below: float) -> StageArcs:
    """Return the runs of layers that a stage can have by itself: fast enough, and within its ranks' memory."""
    layers, stages = problem.layers, problem.stages
    parts, placement = problem.tables.parts, problem.order.schedule.placement
    # Every stage but those of the embedding and the head needs a layer, so stages before and after reserve one each.
    at = np.arange(layers + 1)
    least_before = max(stage - bool(parts.start), 0)
    least_behind = max(stages - 1 - stage - bool(parts.end), 0)
    first = (at >= least_before) & ((at == 0) | (stage > 0))
    stop = (layers - at >= least_behind) & ((at == layers) | (stage < stages - 1))
    microbatches = problem.order.schedule.microbatches // placement.copies
    table, exists, takes = problem.of_stage(stage)
    allowed = exists & first[:, None] & stop
    allowed &= microbatches * (takes + _beside(problem, stage)) <= below
    number, begin, end = np.nonzero(allowed)
    features = table[number, begin, end]
    fits = _fits_alone(problem, stage, features)
    arcs = StageArcs(begin[fits], end[fits], number[fits], features[fits])
    holds = problem.peaks.holds
    arcs = arcs.keep(np.lexsort((arcs.choice, arcs.stop, arcs.first)))
    # A pair can be longer with ops that are shorter.
    if problem.pairs is not None:
        return arcs
    return _undominated(arcs, alone=bool((holds[holds[:, stage]].sum(axis=1) == 1).all()))


def _beside(problem: LayoutProblem, stage: int) -> float:
    """Return a lower bound on the time of the other stages of a stage's rank for one microbatch."""
    placement = problem.order.schedule.placement
    least = problem.least_layer
    others = [other for other in placement.stages_on(placement.rank_of[0][stage]) if other != stage]
    return least * sum(0 < other < problem.stages - 1 for other in others)


def _fits_alone(problem: LayoutProblem, stage: int, features: Floats) -> NDArray[np.bool_]:
    peaks = problem.peaks
    rows = peaks.holds[peaks.rank, stage]
    held = features[:, BYTES] @ peaks.rows[rows, stage].T
    fits: NDArray[np.bool_] = (held <= peaks.limits[peaks.rank[rows]]).all(axis=1)
    return fits


def _undominated(arcs: StageArcs, *, alone: bool) -> StageArcs:
    """Return sorted arcs without those that another choice for the same layers equals or beats.

    If a stage is alone on its rank and fits, only its times are compared; otherwise also its bytes.
    """
    # Arcs of one run of layers are adjacent; each is compared with those up to ``apart`` places away.
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
    """Bounds on prefixes of layouts by the work that the remaining layers add to each rank.

    Attributes
    ----------
    cuts
        For each rank, the cut that counts its stages most; empty if ranks hold several copies of the model, whose stages are
        not independent.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        stages, parts = problem.stages, problem.tables.parts
        holds = problem.peaks.holds
        of_stages = problem.linear.sum(axis=2)
        of_ranks = np.stack([of_stages[:, here].min(axis=1) for here in holds])
        one_copy = problem.order.schedule.placement.copies == 1 and len(problem.counts)
        self.cuts = of_ranks.argmax(axis=1) if one_copy else np.zeros(0, np.intp)
        counts = problem.linear[self.cuts]
        self._constants = problem.constants[self.cuts]
        # By first remaining stage: the least weight of a layer on any remaining stage, and on the rank's own stages.
        self._anywhere = np.minimum.accumulate(counts[:, ::-1], axis=1)[:, ::-1]
        own = np.where(holds[: len(self.cuts), :, None], counts, np.inf)
        self._own = np.minimum.accumulate(own[:, ::-1], axis=1)[:, ::-1]
        self._layers = np.array([problem.least_of(layer) for layer in parts.middle])
        none = np.zeros(counts.shape[-1])
        self._start = counts[:, 0] @ sum(map(problem.least_of, parts.start), none)
        self._end = counts[:, stages - 1] @ sum(map(problem.least_of, parts.end), none)

    def bound(self, stage: int, first: int, lengths: Floats) -> float:
        """Return a lower bound on layouts whose stages before ``stage`` are fixed and hold the layers before ``first``.

        Parameters
        ----------
        lengths
            Length of the fixed stages by every cut.
        """
        if not len(self.cuts):
            return 0.0
        left = self._layers[first:]
        length = lengths[self.cuts] if stage else self._start
        fixed = length + self._constants + self._end + self._anywhere[:, stage] @ left.sum(axis=0)
        least = float(fixed.max())
        if not len(left):
            return least
        free = np.isfinite(self._own[:, stage, 0])
        more = np.sort((self._own - self._anywhere)[free, stage] @ left.T, axis=1)
        # Each rank takes its cheapest layers first; its makespan grows with each. The remaining layers need as many of
        # these places as there are layers, so the bound is the makespan of the last place that they need.
        makespans = (fixed[free, None] + np.cumsum(more, axis=1)).ravel()
        if len(makespans) < len(left):
            return np.inf
        return max(least, float(np.partition(makespans, len(left) - 1)[len(left) - 1]))


@dataclass(frozen=True, slots=True)
class BranchedLayouts:
    """Result of branch and bound.

    Attributes
    ----------
    better
        Layout that beats the best one so far; None if none was found.
    bound
        Lower bound on the makespan of all layouts; the makespan to beat if the search is complete.
    complete
        Whether all layouts were considered, so that none beats the best one so far.
    """

    better: Laid | None
    bound: float
    complete: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """Layers and choices of the first stages, their lengths by the rows known at the time, and a lower bound."""

    layers: tuple[int, ...]
    choices: tuple[int, ...]
    stop: int
    length: Floats
    bound: float


class LayoutBranching:
    """Search tree of the layouts that can beat the best one so far.

    Parameters
    ----------
    problem
        Layout problem with its cuts so far; complete layouts are simulated and add cuts.
    best
        Makespan to beat.
    deadline
        Time at which to stop.
    """

    def __init__(self, problem: LayoutProblem, best: float, deadline: Deadline) -> None:
        self.problem, self.best = problem, best
        self.below = best * (1 - tolerances.ROUNDING)
        self.deadline = deadline
        self.capacity = Capacity(problem)
        self.arcs = Arcs(problem, self.below, deadline)
        self.rows, self.most = self.arcs.rows, self.arcs.most
        self.held = len(self.most) - len(problem.constants)

    def run(self) -> BranchedLayouts:
        """Search the most promising nodes first, until a layout is better, none is left, or time is up."""
        if self.arcs.empty:
            return BranchedLayouts(None, self.best, complete=True)
        if self.deadline.passed():
            return BranchedLayouts(None, min(self.best, self.capacity.bound(0, 0, np.zeros(0))))
        self.to_end = self.arcs.shortest_to_end(self.rows)
        root = _Node((), (), 0, np.zeros(len(self.rows)), self._root_bound())
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
        known = len(self.rows)
        cuts = known - self.held
        if cuts == len(self.problem.constants):
            return
        self.rows = self.rows.and_cuts(self.problem, cuts)
        self.most = np.concatenate((self.most, self.below - self.problem.constants[cuts:]))
        self.to_end = np.concatenate((self.to_end, self.arcs.shortest_to_end(self.rows[known:])), axis=2)

    def _children(self, node: _Node) -> list[_Node]:
        """Return the children that are not ruled out, the most promising last."""
        number = len(node.layers)
        stage = self.arcs.stages[number]
        here = stage.at(node.stop)
        stops, choices = stage.stop[here], stage.choice[here]
        lengths = self._length(node) + self.rows.of_stage(number, stage.features[here])
        least = lengths + self.to_end[number + 1][stops]
        # Slack of each row; for the cuts, the limit minus the slack is a bound on the makespan of the child.
        slack = self.most - least
        bounds = self.below - slack[:, self.held :].min(axis=1, initial=np.inf)
        possible = np.flatnonzero((slack >= 0).all(axis=1))
        order = possible[np.argsort(-bounds[possible], kind="stable")]
        children = []
        for child in order.tolist():
            bound = max(float(bounds[child]), node.bound)
            children.append(
                _Node(
                    (*node.layers, int(stops[child]) - node.stop),
                    (*node.choices, int(choices[child])),
                    int(stops[child]),
                    lengths[child],
                    bound,
                )
            )
        return children

    def _length(self, node: _Node) -> Floats:
        """Return the lengths of a node's stages by every row, including rows added since the node was created."""
        rows = len(node.length)
        if rows == len(self.rows):
            return node.length
        bounds = np.array([0, *np.cumsum(node.layers)], np.intp)
        done = len(node.layers)
        padded = np.concatenate((bounds, np.full(self.problem.stages - done, bounds[-1])))
        choices = np.array([*node.choices, *(0,) * (self.problem.stages - done)], np.intp)
        features = self.problem.features(padded, choices)[:done]
        return np.concatenate((node.length, self.rows[rows:].of_first(features)))
