"""How many layers the ranks can take together before a step takes longer: a bound that no single cut gives.

Of ranks that take layers of one length, one must take as many as the mean rounded up; a cut, or any mixture of cuts, bounds
a step by the mean alone. So for each rank, by a path that its work makes up, it is counted how many layers bring it to which
makespan; the makespan at which all ranks together can take all layers is a bound.
"""

from __future__ import annotations

import numpy as np

from pipeplan.model import Floats
from pipeplan.planner.layout.laid import LaidLayer
from pipeplan.planner.layout.problem import LayoutProblem


class Capacity:
    """What is the same for all bounds with the cuts of one moment.

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
        """What a layout takes at least whose stages before ``stage`` are known, and have the layers before ``first``.

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
    """The least that F, I and W of a layer take, whatever it does."""
    times = [(option.forward, option.backward_input, option.backward_weight) for option in layer.options]
    least: Floats = np.array(times).min(axis=0)
    return least


def _sum(layers: tuple[LaidLayer, ...]) -> Floats:
    total: Floats = np.array([_least(layer) for layer in layers]).sum(axis=0) if layers else np.zeros(3)
    return total
