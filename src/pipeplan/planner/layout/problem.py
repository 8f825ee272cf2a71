"""Layouts of one problem: what each takes and holds, and what those that were simulated say about all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Bools, Floats
from pipeplan.planner.layout.order import GraphPath, OrderGraph
from pipeplan.planner.layout.stages import TIMES, RankPeaks, StageTables

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time by a clock, in seconds."""

    end: float
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = monotonic) -> Deadline:
        """Return the deadline so many seconds from now."""
        return cls(clock() + seconds, clock)

    def passed(self) -> bool:
        """Whether it is later."""
        return self.clock() >= self.end

    def part(self, share: float) -> Deadline:
        """An earlier one: after this share of the time that is left."""
        now = self.clock()
        return Deadline(now + share * max(self.end - now, 0.0), self.clock)


Numbers = NDArray[np.intp]

MOST_CUTS = 160
"""Maximum number of cuts that are kept: each is evaluated for every neighbour and arc."""

PROBE = 1000.0
"""Factor on the longest op with which the longest path has every op of a rank."""

_JUDGES = 32
"""Layouts, the last simulated, for which cuts must say much in order to be kept."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A layout with what its stages do.

    Attributes
    ----------
    counts
        Transformer layers on each stage.
    choices
        What each stage does: positions in the tables' choices.
    """

    counts: tuple[int, ...]
    choices: tuple[int, ...]

    @property
    def bounds(self) -> Numbers:
        """First layer of every stage, and one past the last of all; shape (stages + 1,)."""
        return np.array([*accumulate(self.counts, initial=0)], np.intp)


@dataclass(eq=False)
class LayoutProblem:
    """The search for a layout with the order of a schedule.

    Attributes
    ----------
    order
        Whose makespan is to be least.
    tables
        What stages take and hold.
    peaks
        What ranks may.
    cuts
        Paths that some layout's makespan was, in the order in which they were found.
    """

    order: OrderGraph
    tables: StageTables
    peaks: RankPeaks
    counts: Floats = field(init=False)
    constants: Floats = field(init=False)
    simulated: dict[Laid, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = np.zeros((0, self.stages, 3))
        self.constants = np.zeros(0)
        of_stages = [self.tables.of_stage(stage, self.stages) for stage in range(self.stages)]
        self._of_role = np.stack([of_stages[0], of_stages[len(of_stages) // 2], of_stages[-1]])
        self._takes: Floats = self._of_role[..., TIMES].sum(axis=-1)
        self._exists: Bools = np.isfinite(self._takes)
        self._role = np.ones(self.stages, np.intp)
        self._role[0], self._role[-1] = 0, 2

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.order.schedule.stages

    @property
    def layers(self) -> int:
        """Number of layers that are laid out."""
        return self.tables.layers

    def of_stage(self, stage: int) -> Floats:
        """The table of a stage."""
        table: Floats = self._of_role[self._role[stage]]
        return table

    def exists(self, stage: int) -> Bools:
        """Return the possible entries of a stage's table."""
        found: Bools = self._exists[self._role[stage]]
        return found

    def takes(self, stage: int) -> Floats:
        """F, I and W together, of every entry of its table."""
        found: Floats = self._takes[self._role[stage]]
        return found

    def features(self, bounds: Numbers, choices: Numbers) -> Floats:
        """Return the features of stages, shape (..., stages, 7), for bounds (..., stages + 1) and choices (..., stages)."""
        found: Floats = self._of_role[self._role, choices, bounds[..., :-1], bounds[..., 1:]]
        return found

    def of(self, laid: Laid) -> Floats:
        """The features of one layout."""
        return self.features(laid.bounds, np.array(laid.choices, np.intp))

    def makespan(self, laid: Laid) -> float:
        """Simulated, once; the path that it is of is kept as a cut."""
        if laid not in self.simulated:
            found, path = self.order.path(self.of(laid)[:, TIMES])
            self.simulated[laid] = found
            self.add(path)
        return self.simulated[laid]

    def add(self, path: GraphPath) -> None:
        """Keep a path as a cut."""
        self.counts = np.concatenate((self.counts, path.counts[None]))
        self.constants = np.append(self.constants, path.constant)

    def thin(self) -> None:
        """Drop cuts where there are too many: those that say least about the layouts that were simulated last."""
        if len(self.constants) <= MOST_CUTS:
            return
        times = np.stack([self.of(laid)[:, TIMES] for laid in list(self.simulated)[-_JUDGES:]])
        says = np.einsum("ksf,lsf->kl", self.counts, times) + self.constants[:, None]
        kept = np.sort(np.argsort(-(says / says.max(axis=0)).max(axis=1), kind="stable")[: MOST_CUTS // 2])
        self.counts, self.constants = self.counts[kept], self.constants[kept]

    def least(self, features: Floats, since: int = 0) -> Floats:
        """Return the lower bound of layouts with these features by the cuts from the ``since``-th on; shape (...)."""
        shape = features.shape[:-2]
        times = features[..., TIMES].reshape(-1, self.stages * 3)
        cuts = self.counts[since:].reshape(-1, self.stages * 3)
        most: Floats = (times @ cuts.T + self.constants[since:]).max(axis=-1, initial=0.0).reshape(shape)
        return most

    def fits(self, laid: Laid) -> bool:
        """Whether every rank stays within its limit."""
        return bool(self.peaks.over(self.of(laid)) <= 0)

    def probe_ranks(self, laid: Laid) -> None:
        """Add for each rank a path of all of its work: the longest one where its ops take much longer than all others.

        Whatever times a path was found with, it is one for all.
        """
        times = self.of(laid)[:, TIMES]
        for here in self.peaks.holds:
            self.add(self.order.path(np.where(here[:, None], PROBE * times.max(), times))[1])


def counts_of(bounds: Numbers) -> tuple[int, ...]:
    """Layers of each stage."""
    return tuple(int(stop - first) for first, stop in pairwise(bounds.tolist()))
