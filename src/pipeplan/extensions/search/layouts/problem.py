"""Layout problem: costs and memory of layouts, bounds from those simulated so far, and a local search.

The longest path of a simulated layout bounds the makespan of every other layout from below. The local search uses these
bounds (cuts), so most neighbors of a layout need no simulation. A neighbor moves one layer from one stage to another and
shifts everything between them, or changes the choices of stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.search.layouts.order import ALONE, GraphPath, OrderGraph
from pipeplan.extensions.search.layouts.pairs import StagePairs, busier_lane
from pipeplan.extensions.search.layouts.stages import FEATURES, TIMES, LaidLayer, RankPeaks, StageTables
from pipeplan.model import Bools, Floats, tolerances

Clock = Callable[[], float]

CLOCK_STEP = 2e-3
"""Seconds by which :class:`WorkClock` advances at each reading: about the work between two readings on one idle core."""


class WorkClock:
    """Clock that counts work: every reading advances it by the same time, on a loaded machine too."""

    def __init__(self) -> None:
        self._readings = 0

    def __call__(self) -> float:
        """Return the nominal seconds of the work so far."""
        self._readings += 1
        return CLOCK_STEP * self._readings


@dataclass(frozen=True, slots=True)
class Deadline:
    """Point in time by a clock, in seconds."""

    end: float
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = monotonic) -> Deadline:
        """Return the deadline a number of seconds from now."""
        return cls(clock() + seconds, clock)

    def passed(self) -> bool:
        """True if the deadline has passed."""
        return self.clock() >= self.end

    def part(self, share: float) -> Deadline:
        """Return an earlier deadline, after a fraction of the remaining time."""
        now = self.clock()
        return Deadline(now + share * max(self.end - now, 0.0), self.clock)


Numbers = NDArray[np.intp]

MOST_CUTS = 160
"""Maximum number of cuts: each is evaluated for every neighbor and arc."""

PROBE = 1000.0
"""Factor on the longest op that makes the longest path contain every op of a rank."""

MOST_CURVES, FEWEST_CUTS = 4_000_000, 16
"""Maximum number of values of all cuts' curves, and the number of cuts that are kept in any case."""

RUN = FEATURES
"""Feature of a stage that numbers its run of layers, with pairs alone."""

_JUDGES = 32
"""Number of recently simulated layouts whose bounds decide which cuts are kept."""


@dataclass(frozen=True, slots=True)
class Laid:
    """Layout with the choice of each stage.

    Attributes
    ----------
    counts
        Transformer layers of each stage.
    choices
        Choice of each stage: positions in ``StageTables.choices``.
    """

    counts: tuple[int, ...]
    choices: tuple[int, ...]

    @property
    def bounds(self) -> Numbers:
        """The :func:`bounds_of` its stages."""
        return bounds_of(self.counts)


def bounds_of(counts: Sequence[int]) -> Numbers:
    """Return the first layer of every stage, and the end of the last one; shape (stages + 1,)."""
    return np.array([*accumulate(counts, initial=0)], np.intp)


def counts_of(bounds: Numbers) -> tuple[int, ...]:
    """Return the number of layers of each stage."""
    return tuple(np.diff(bounds).tolist())


@dataclass(eq=False)
class LayoutProblem:
    """Layout problem for the op order of a schedule.

    Attributes
    ----------
    order
        Op order whose makespan is minimized.
    tables
        Times and bytes of stages.
    peaks
        Memory limits of ranks.
    pairs
        Times of overlapped pairs; None: they take the sum of their ops.
    cuts
        ``counts``, ``curves``, ``lanes`` and ``constants``: longest paths of simulated layouts, in the order in which they
        were found. ``curves`` has a function of the run of each stage, which bounds its part of the path's pairs, shape
        (cuts, stages, runs); ``lanes`` the number of each stage's :attr:`StagePairs.lanes` that are as long at least.
        Without pairs, the two have no columns.
    """

    order: OrderGraph
    tables: StageTables
    peaks: RankPeaks
    pairs: StagePairs | None = None
    counts: Floats = field(init=False)
    curves: Floats = field(init=False)
    lanes: Floats = field(init=False)
    constants: Floats = field(init=False)
    simulated: dict[Laid, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = np.zeros((0, self.stages, 3))
        self.constants = np.zeros(0)
        of_stages = [self.tables.of_stage(stage, self.stages) for stage in range(self.stages)]
        self._of_role = np.stack([of_stages[0], of_stages[len(of_stages) // 2], of_stages[-1]])
        self._takes: Floats = self._of_role[..., TIMES].sum(axis=-1)
        self._exists: Bools = np.isfinite(self._takes)
        layers = self.tables.parts.middle
        self.least_layer = min(option.time for layer in layers for option in layer.options)
        """Least time of a layer for one microbatch, however its ops are paired."""
        self._role = np.ones(self.stages, np.intp)
        self._role[0], self._role[-1] = 0, 2
        self.curves, self.lanes = np.zeros((0, self.stages, 0)), np.zeros((0, self.stages, 0))
        if self.pairs is not None:
            # The number of each run is one more feature.
            runs = self.pairs.runs
            self._of_role = np.concatenate((self._of_role, runs[..., None]), axis=-1)
            self._takes = np.where(runs >= 0, np.minimum(self._takes, busier_lane(self.pairs.lanes)[runs]), self._takes)
            self.curves = np.zeros((0, self.stages, len(self.pairs.lanes)))
            self.lanes = np.zeros((0, self.stages, 6))
            self.least_layer = min(float(busier_lane(self.pairs.of_options(layer)).min()) for layer in layers)
            self.restrict(np.inf)

    def restrict(self, below: float) -> None:
        """Let cuts hold for layouts of a makespan up to ``below`` alone; on others they are infinite."""
        if self.pairs is None:
            return
        placement = self.order.schedule.placement
        fast = self.order.schedule.microbatches // placement.copies * self._takes <= below * (1 + tolerances.ROUNDING)
        self._functions: dict[tuple[int, ...], Floats] = {}
        self._domains = [
            np.unique(of_role[..., RUN][own]).astype(np.intp)
            for of_role, own in zip(self._of_role, fast & self._exists, strict=True)
        ]

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.order.schedule.stages

    @property
    def layers(self) -> int:
        """Number of layers to lay out."""
        return self.tables.layers

    def of_stage(self, stage: int) -> tuple[Floats, Bools, Floats]:
        """Return the table of a stage; for each entry, whether it is possible, and its least time for one microbatch."""
        role = self._role[stage]
        return self._of_role[role], self._exists[role], self._takes[role]

    def features(self, bounds: Numbers, choices: Numbers) -> Floats:
        """Return the features of stages, shape (..., stages, 7), for bounds (..., stages + 1) and choices (..., stages).

        With pairs, an eighth feature is the number of the run.
        """
        features: Floats = self._of_role[self._role, choices, bounds[..., :-1], bounds[..., 1:]]
        return features

    def of(self, laid: Laid) -> Floats:
        """Return the features of one layout."""
        return self.features(laid.bounds, np.array(laid.choices, np.intp))

    def makespan(self, laid: Laid) -> float:
        """Return the makespan of a layout; the first call simulates it and keeps its longest path as a cut."""
        if laid not in self.simulated:
            features = self.of(laid)
            makespan, path = self.order.path(features[:, TIMES], self._pair_times(features))
            self.simulated[laid] = makespan
            self._add(path, features)
        return self.simulated[laid]

    def makespan_alone(self, laid: Laid) -> float:
        """Return the makespan of a layout without keeping its longest path."""
        features = self.of(laid)
        return self.order.path(features[:, TIMES], self._pair_times(features))[0]

    def _pair_times(self, features: Floats) -> Floats | None:
        """Return the times of the order's pairs, shape (sorts,), for stages with these features, shape (stages, 8)."""
        if self.pairs is None:
            return None
        runs, sorts = features[:, RUN].astype(np.intp), self.order.pairs
        times = np.zeros(len(sorts))
        for kind in np.unique(sorts[:, 0]).tolist():
            own = sorts[:, 0] == kind
            times[own] = self.pairs.times(kind, runs[sorts[own, 1]], runs[sorts[own, 2]])
        return times

    def _add(self, path: GraphPath, features: Floats) -> None:
        """Keep a path as a cut, which bounds pairs best for stages with these features."""
        self.counts = np.concatenate((self.counts, path.counts[None]))
        self.constants = np.append(self.constants, path.constant)
        curves, lanes = np.zeros(self.curves.shape[1:]), np.zeros(self.lanes.shape[1:])
        for sort in np.flatnonzero(path.pairs).tolist():
            assert self.pairs is not None
            kind, forward, backward = self.order.pairs[sort].tolist()
            count, at = float(path.pairs[sort]), (int(features[forward, RUN]), int(features[backward, RUN]))
            of_forward, of_backward = self.pairs.lane(kind, *at)
            lanes[backward, of_backward] += count
            if kind != ALONE:
                lanes[forward, of_forward] += count
            functions = self._functions_of(kind, (forward, backward), at)
            for stage, function in zip((forward, backward), functions, strict=False):
                curves[stage] += count * function
        self.curves = np.concatenate((self.curves, curves[None]))
        self.lanes = np.concatenate((self.lanes, lanes[None]))

    def _functions_of(self, kind: int, stages: tuple[int, int], at: tuple[int, int]) -> Floats:
        """Return the function of a stage paired with itself, shape (1, runs), or those of two stages, shape (2, runs)."""
        assert self.pairs is not None
        roles = self._role[list(stages)].tolist()
        alike = stages[0] == stages[1]
        key = (kind, *roles, *(() if alike else at))
        if key not in self._functions:
            first, second = (self._domains[role] for role in roles)
            own = self.pairs.own(kind, first)[None] if alike else self.pairs.separated(kind, at, (first, second))
            self._functions[key] = own
        return self._functions[key]

    @property
    def linear(self) -> Floats:
        """Number of each stage's times in the cuts, with pairs and their lanes, shape (cuts, stages, 3 or 9)."""
        return np.concatenate((self.counts, self.lanes), axis=2)

    def least_of(self, layer: LaidLayer) -> Floats:
        """Return the least of each time of :attr:`linear` over the options of a layer, shape (3,) or (9,)."""
        times = [(option.forward, option.backward_input, option.backward_weight) for option in layer.options]
        least: Floats = np.array(times).min(axis=0)
        return least if self.pairs is None else np.concatenate((least, self.pairs.of_options(layer).min(axis=0)))

    def thin(self) -> None:
        """Drop the cuts that bound the recently simulated layouts least, if there are too many."""
        most = max(min(MOST_CUTS, MOST_CURVES // max(self.stages * self.curves.shape[-1], 1)), FEWEST_CUTS)
        if len(self.constants) <= most:
            return
        features = np.stack([self.of(laid) for laid in list(self.simulated)[-_JUDGES:]])
        # Bound of each cut on each recent layout; a cut is worth its best ratio to the layout's strongest cut.
        says = np.einsum("ksf,lsf->kl", self.counts, features[..., TIMES]) + self.constants[:, None]
        says = np.nan_to_num(with_curves(says.T, self.curves, features).T, posinf=1.0)
        kept = np.sort(np.argsort(-(says / says.max(axis=0)).max(axis=1), kind="stable")[: most // 2])
        self.counts, self.constants = self.counts[kept], self.constants[kept]
        self.curves, self.lanes = self.curves[kept], self.lanes[kept]

    def least(self, features: Floats, since: int = 0) -> Floats:
        """Return the lower bounds of layouts with these features by the cuts from the ``since``-th on; shape (...)."""
        times = features[..., TIMES].reshape(-1, self.stages * 3)
        cuts = self.counts[since:].reshape(-1, self.stages * 3)
        says = (times @ cuts.T + self.constants[since:]).reshape(*features.shape[:-2], len(cuts))
        most: Floats = with_curves(says, self.curves[since:], features).max(axis=-1, initial=0.0)
        return most

    def fits(self, laid: Laid) -> bool:
        """True if every rank stays within its limit."""
        return bool(self.peaks.over(self.of(laid)) <= 0)

    def probe_ranks(self, laid: Laid) -> None:
        """Add for each rank a cut that counts all of its work: the longest path when its ops are far the longest.

        The longest path for any stage times is a valid path, and therefore a valid cut, for all stage times.
        """
        features = self.of(laid)
        times, pairs = features[:, TIMES], self._pair_times(features)
        for here in self.peaks.holds:
            longest = PROBE * times.max()
            probed = None if pairs is None else np.where(here[self.order.pairs[:, 2]], longest, pairs)
            self._add(self.order.path(np.where(here[:, None], longest, times), probed)[1], features)


def with_curves(sums: Floats, curves: Floats, features: Floats) -> Floats:
    """Return sums, shape (..., cuts), plus functions of runs, (cuts, stages, runs), for features (..., stages, 8)."""
    if not curves.shape[-1]:
        return sums
    runs = features[..., RUN].astype(np.intp)
    more: Floats = sums + np.moveaxis(curves[:, np.arange(curves.shape[1]), runs].sum(axis=-1), 0, -1)
    return more


MOST_STAGES = 200_000
"""Maximum number of stages over all neighbors in one step, which takes about a tenth of a second."""

BATCH = 128
"""Number of neighbors whose memory is checked together; only the most promising need it."""

TRIED = 3
"""Number of neighbors simulated before a walk moves to the best of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Neighboring layouts with their features, shape (neighbors, stages, 7)."""

    bounds: Numbers
    choices: Numbers
    features: Floats

    def laid(self, number: int) -> Laid:
        """Return one of the neighbors."""
        return Laid(counts_of(self.bounds[number]), tuple(self.choices[number].tolist()))


def descend(problem: LayoutProblem, laid: Laid, deadline: Deadline) -> Laid:
    """Return a local optimum: a layout without a better neighbor. A start that does not fit leads towards one that does."""
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
    """Return the best layout on a walk that always moves to the best of a few promising neighbors, even if it is worse.

    The walk never returns to a layout, and ends when every neighbor was visited.
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
    """Return the neighbor that exceeds the limits least, if it does so less than the layout."""
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
    """Neighbors in the order of their lower bounds, restricted to those that fit."""

    def __init__(self, problem: LayoutProblem, near: Neighbours) -> None:
        self.problem, self.near = problem, near
        self.least = problem.least(near.features)
        self.known = len(problem.constants)
        self.fits = np.zeros(len(self.least), np.bool_)

    def next(self, below: float = np.inf) -> int | None:
        """Return the most promising neighbor that fits, if its bound is less than ``below``."""
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
        """Exclude a neighbor."""
        self.least[number] = np.inf

    def _learn(self, below: float) -> None:
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
    """Return the possible neighbors; ``wide`` adds those that move a layer and change the choices of both stages."""
    bounds, choices = _moves(problem, laid, wide=wide)
    features = problem.features(bounds, choices)
    possible = np.isfinite(features).all(axis=(1, 2))
    bounds, choices, features = bounds[possible], choices[possible], features[possible]
    return Neighbours(bounds, choices, features)


def _moves(problem: LayoutProblem, laid: Laid, *, wide: bool) -> tuple[Numbers, Numbers]:
    """Return bounds and choices after each move; shapes (moves, stages + 1) and (moves, stages)."""
    stages, options = problem.stages, len(problem.tables.choices)
    bounds, choices = laid.bounds, np.array(laid.choices, np.intp)
    # Moves: shift one layer between two stages; change one stage's choice; swap the choices of two stages; and, if
    # ``wide``, shift a layer and choose anew on both.
    most = MOST_STAGES // stages
    giving, taking = _pairs(stages, most)
    moved = [(shifted(bounds, giving, taking), np.broadcast_to(choices, (len(giving), stages)))]
    if options > 1:
        stage, choice = map(np.ravel, np.indices((stages, options)))
        moved.append((_still(bounds, len(stage)), _chosen(choices, stage, choice)))
        swapped = _chosen(_chosen(choices, giving, choices[taking]), taking, choices[giving])
        moved.append((_still(bounds, len(giving)), swapped))
    if options > 1 and wide:
        near, far = _pairs(stages, most // options**2)
        pair, first, second = map(np.ravel, np.indices((len(near), options, options)))
        both = _chosen(_chosen(choices, near[pair], first), far[pair], second)
        moved.append((shifted(bounds, near, far)[pair], both))
    return np.concatenate([move[0] for move in moved]), np.concatenate([move[1] for move in moved])


def _pairs(stages: int, most: int) -> tuple[Numbers, Numbers]:
    """Return pairs of different stages, only the nearest ones if there are too many."""
    one, other = np.nonzero(~np.eye(stages, dtype=np.bool_))
    near = np.abs(one - other) <= max(most // (2 * stages), 1)
    return one[near], other[near]


def shifted(bounds: Numbers, giving: Numbers, taking: Numbers) -> Numbers:
    """Return bounds with one layer moved between stages, a row per pair; unchanged if the first stage has none."""
    # Bounds after the giving stage move down by one layer, those after the taking stage up.
    at = np.arange(len(bounds))
    shift = (at > taking[:, None]).astype(np.intp) - (at > giving[:, None])
    return bounds + shift * (np.diff(bounds)[giving] > 0)[:, None]


def _still(bounds: Numbers, times: int) -> Numbers:
    return np.broadcast_to(bounds, (times, len(bounds)))


def _chosen(choices: Numbers, stage: Numbers, choice: Numbers) -> Numbers:
    """Return choices with another choice on one stage, a row each; ``choices`` is one row, or one for each."""
    changed = np.array(np.broadcast_to(choices, (len(stage), choices.shape[-1])))
    changed[np.arange(len(stage)), stage] = choice
    return changed
