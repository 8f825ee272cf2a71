"""The value of a schedule in real runs: with transfers that meet or queue, and op times that vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from pipeplan.kernels import Argument, Kernel, Output
from pipeplan.model import COMPUTE_KINDS, NONE, Floats, Schedule, among, crosses_ranks, dependencies
from pipeplan.simulation import Bound, simulate
from pipeplan.solver.kernels.variation_kernel import time_runs
from pipeplan.solver.problem import Problem
from pipeplan.solver.variation import Factors, Jitter, Purpose, SlowRank, Variation

_TIME_RUNS = Kernel(time_runs)

ANNEALED_ON = 8
"""Number of sampled runs in which every candidate is timed, if op times vary."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """Statistics of the objective over the runs that a schedule is judged by.

    Attributes
    ----------
    mean, p95, worst
        Their mean, what 95 of 100 do not exceed, and the longest.
    """

    mean: float
    p95: float
    worst: float

    def judged_under(self, variation: Variation | None) -> float:
        """Return the number that a search under this variation minimizes: the worst with a slow rank, else the p95."""
        return self.worst if isinstance(variation, SlowRank) else self.p95


class Judge:
    """Judge of the schedules of a problem: returns the number that its search minimizes.

    Without a variation that is the objective under the problem's communication; with :class:`~pipeplan.solver.Jitter` what
    95 of 100 runs do not exceed; with :class:`~pipeplan.solver.SlowRank` the objective with the worst rank slow.

    Parameters
    ----------
    problem
        The problem.
    purpose
        Purpose that selects the sampled runs.
    """

    def __init__(self, problem: Problem, purpose: Purpose = "judge") -> None:
        self.problem = problem
        variation = problem.variation
        self._factors = (
            None
            if variation is None
            else Factors(variation, problem.placement, problem.microbatches, problem.slices, purpose)
        )

    def __call__(self, schedule: Schedule) -> float:
        """Return the judged value of a schedule; raises what :func:`pipeplan.simulation.simulate` does."""
        if self._factors is None:
            simulation = self.problem.simulated(schedule)
            over = self.problem.sharding is not None and not self.problem.fits(simulation)
            return np.inf if over else self.problem.value(simulation.timeline)
        over_runs = self.robustness(schedule)
        return over_runs.judged_under(self.problem.variation)

    def robustness(self, schedule: Schedule) -> Robustness:
        """Return statistics of the objective over all runs of a problem that varies."""
        assert self._factors is not None
        lowered = self.problem.completed(schedule)
        values = np.concatenate([_values(lowered, self.problem, factors) for factors in self._factors.of(lowered)])
        return Robustness(float(np.mean(values)), float(np.percentile(values, 95)), float(np.max(values)))


def robustness(schedule: Schedule, problem: Problem) -> Robustness:
    """Return the objective of a schedule over sampled runs that no search was made for."""
    return Judge(problem).robustness(schedule)


def _values(schedule: Schedule, problem: Problem, factors: Floats) -> Floats:
    """Return the objective in each run, shape (runs,); ``factors`` has shape (ops, runs)."""
    plain = problem.communication == "edge" and not problem.costs.overhead.between_ops
    if plain and among(schedule.columns.kind, COMPUTE_KINDS).all():
        return _at_once(schedule, problem, factors)
    simulated = (
        simulate(schedule, problem.costs, communication=problem.communication, factors=factor) for factor in factors.T
    )
    return np.array([problem.value(simulation.timeline) for simulation in simulated])


def _at_once(schedule: Schedule, problem: Problem, factors: Floats) -> Floats:
    """Return the objective in each run of a schedule without messages and copies, all runs in one pass."""
    ops, runs = factors.shape
    arrival = dependencies(schedule).arrival
    crosses = crosses_ranks(schedule, arrival)
    source = np.where(crosses, arrival, NONE).astype(np.int64)
    delay = np.zeros(ops)
    delay[source[crosses]] = problem.costs.delays(schedule)[source[crosses]]
    first, clock = np.zeros((2, schedule.ranks * runs))
    _TIME_RUNS(
        (schedule.offsets, source, schedule.joined, problem.costs.durations(schedule), factors.ravel(), delay, runs),
        (
            np.zeros(ops * runs),
            first,
            clock,
            np.zeros(ops, np.int64),
            np.zeros(schedule.ranks, np.int64),
            np.full(ops, -1, np.int64),
            np.full(schedule.ranks, -1, np.int64),
            np.zeros(schedule.ranks + 1, np.int64),
        ),
        work=ops * runs,
    )
    begun = first if problem.objective == "span" else 0.0
    longest: Floats = (clock - begun).reshape(schedule.ranks, runs).max(axis=0)
    return longest


def no_runs() -> tuple[Kernel, Sequence[Argument], Sequence[Output]]:
    """Return the kernel that times runs, and arguments without any work: to have it compiled."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    inputs = (np.zeros(1, np.int64), whole, np.zeros(0, np.bool_), real, real, real, 0)
    return _TIME_RUNS, inputs, (real, real, real, *([whole] * 4), np.zeros(1, np.int64))


def bound_of(problem: Problem) -> Bound:
    """Return a lower bound on the judged value of any schedule of a problem.

    A slow rank makes no schedule shorter, and each rank in turn has its own bound with that rank slow: the largest one
    is below the worst case. The mean over sampled times is above the objective on the mean times, as the longest of several
    chains is convex in what their ops take; so is, as good as always, what 95 of 100 runs do not exceed. Transfers that meet
    or queue make no schedule shorter.
    """
    slow, copies = problem.variation, problem.placement.copies
    if not isinstance(slow, SlowRank) or copies > 1:
        return replace(problem, variation=None).bound
    held = problem.placement.table[0]
    bounds = (
        replace(problem, variation=None, costs=problem.costs.scaled(1 + slow.share * (held == rank))).bound
        for rank in range(problem.placement.ranks)
    )
    return max(bounds, key=attrgetter("value"))


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Factors on the op times of a candidate in each of several runs, and what counts of its values in these.

    Attributes
    ----------
    factors
        Shape (4, stages, microbatches, slices, runs): of F, of B and I, of W, and of R. Overlapped ops share that of the
        forward.
    mean
        True if the mean of their values counts, else the worst.
    """

    factors: Floats
    mean: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Scenarios:
        """Return the runs that candidates of a problem with a variation are annealed on.

        Under jitter it is the mean of a few: at equal effort that leads to a smaller p95 than the p95 of many, which is a
        matter of one or two samples.
        """
        variation, placement = problem.variation, problem.placement
        if isinstance(variation, Jitter):
            runs = range(min(ANNEALED_ON, variation.count("train")))
            return cls(variation.table(placement, problem.microbatches, problem.slices, "train", runs), mean=True)
        assert variation is not None
        stage, microbatch = np.indices((placement.stages, problem.microbatches), np.int32)
        ranks = placement.ranks_of(stage.ravel(), microbatch.ravel(), problem.microbatches).reshape(stage.shape)
        slow = ranks[..., None, None] == np.arange(placement.ranks)
        shape = (4, *stage.shape, problem.slices, placement.ranks)
        return cls(np.broadcast_to(1.0 + variation.share * slow, shape).copy())

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self.factors.shape[-1])
