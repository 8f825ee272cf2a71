"""Branch and bound over layouts, stage by stage: complete but for the time it is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.model import Floats, tolerances
from pipeplan.planner.layout.arcs import Arcs
from pipeplan.planner.layout.laid import LaidLayer
from pipeplan.planner.layout.problem import Deadline, Laid, LayoutProblem
from pipeplan.planner.layout.stages import TIMES


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
