"""The steady state: the shortest period in which a few microbatches can pass, found and proven.

Search: blocks of several microbatches are annealed on a run so long that the middle counts, and what that repeats is read
off. Proof and improvement: the least period of one microbatch, of two and so on is halved in by CP-SAT.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import Floats, Kind, Timeline, tolerances
from pipeplan.simulation import simulate
from pipeplan.solver.budget import Budget
from pipeplan.solver.engines.building_blocks import BuildingBlocks
from pipeplan.solver.engines.list_scheduling import ListScheduling
from pipeplan.solver.periodic.least_period import LeastPeriod, least_period
from pipeplan.solver.periodic.pattern import Pattern
from pipeplan.solver.periodic.repeated import Repeated, is_plain
from pipeplan.solver.problem import Problem
from pipeplan.solver.run import Lineage, Run

ROUND_TRIPS = 6
"""Length of a run in round trips, so that its middle has forgotten both ends."""


@dataclass(frozen=True, eq=False)
class SteadyState:
    """The time that each further microbatch costs in the long run.

    Attributes
    ----------
    problem
        The stages, times and limits.
    best
        The best pattern found; None where none was.
    bound
        In the unit of the costs for each further microbatch: no schedule without end costs less, however many of its
        microbatches it takes until it repeats.
    periods
        Bounds for patterns of one microbatch of each copy, of two, and so on.
    """

    problem: Problem
    best: Pattern | None
    bound: float
    periods: tuple[LeastPeriod, ...]

    @property
    def gap(self) -> float | None:
        """Excess of the best pattern over the bound, as a share; None without one."""
        return None if self.best is None else self.best.per_microbatch / self.bound - 1


def steady_state(
    problem: Problem,
    *,
    seconds: float = 10.0,
    most: int = 4,
    seed: int = 0,
    workers: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> SteadyState:
    """Return the least time per further microbatch under the limits of a problem.

    Parameters
    ----------
    seconds
        The budget: a half for finding, the rest for the least periods of one microbatch, of two, ...
    most
        Up to how many microbatches of each copy pass in a period.
    seed, workers
        Seed of the random numbers; number of threads.
    clock
        Function that returns the time in seconds.

    Raises
    ------
    InputError
        For no seconds, a period of no microbatch, transfers that occupy ranks or queue, or sliced sequences.
    """
    if not seconds > 0:
        raise InputError(f"the seconds of a steady state must be more than 0, not {seconds:g}", field="seconds")
    if most < 1:
        raise InputError(f"the microbatches of a period must be at least 1, not {most}", field="most")
    if problem.communication != "edge" or problem.slices > 1:
        raise InputError(
            "a steady state needs whole sequences and transfers that only delay: leave --communication at edge and "
            "--slices at 1",
            field="slices" if problem.slices > 1 else "communication",
        )
    problem = replace(problem, objective="makespan")
    begin = clock()
    bound = Repeated(problem, 1).least_period() / problem.placement.copies
    patterns: list[Pattern] = []
    for several in range(1, most + 1):
        if not any(pattern.per_microbatch <= bound * (1 + tolerances.ROUNDING) for pattern in patterns):
            patterns += _found(problem, several, most, seconds / 2 / most, seed=seed, workers=workers, clock=clock)
    periods: list[LeastPeriod] = []
    for number in range(1, most + 1):
        bounds = _known(number, bound, patterns)
        if is_plain(problem):
            left = Budget(max(begin + seconds - clock(), 0.0) / (most + 1 - number), None, clock)
            bounds = least_period(bounds, problem, left, seed=seed, workers=workers)
        periods.append(bounds)
        patterns += [] if bounds.pattern is None else [bounds.pattern]
    best = min(patterns, key=attrgetter("per_microbatch"), default=None)
    return SteadyState(problem, best, bound, tuple(periods))


def _known(microbatches: int, bound: float, patterns: list[Pattern]) -> LeastPeriod:
    """Return the bounds known before the proofs: a pattern of fewer microbatches, repeated, is one of more."""
    fewer = [pattern for pattern in patterns if microbatches % pattern.microbatches == 0]
    best = min(fewer, key=attrgetter("per_microbatch"), default=None)
    return LeastPeriod(microbatches, bound, None if best is None else best.repeated(microbatches // best.microbatches))


def _found(
    problem: Problem,
    several: int,
    most: int,
    seconds: float,
    *,
    seed: int,
    workers: int,
    clock: Callable[[], float],
) -> list[Pattern]:
    """Return the patterns that blocks of several microbatches repeat on a long run."""
    placement = problem.placement
    share = ROUND_TRIPS * max(placement.ranks, 2 * most)
    long = replace(problem, microbatches=share * placement.copies)
    run = Run(long, Budget(seconds, None, clock), seed=seed, workers=workers)
    blocks = BuildingBlocks(until=1.0, several=(several,), microbatches=ROUND_TRIPS // 2)
    ListScheduling(until=1.0)(run)
    blocks(run)
    patterns = [repeated_pattern(long, _timeline(run, lineage), most) for lineage in run.lineages]
    return [replace(pattern, problem=problem) for pattern in patterns if pattern is not None]


def _timeline(run: Run, lineage: Lineage) -> Timeline:
    return simulate(run.schedule(lineage), run.problem.costs).timeline


def repeated_pattern(problem: Problem, timeline: Timeline, most: int) -> Pattern | None:
    """Return the pattern of the fewest microbatches that the middle third of a timeline repeats exactly.

    None where it repeats none, or one that cannot go on for ever.
    """
    share = problem.microbatches // problem.placement.copies
    first, last = share // 3, 2 * share // 3
    jobs = Repeated(problem, 1).jobs
    starts = _starts(problem, timeline)
    of_jobs = np.stack([starts[job.copy, job.kind, job.stage] for job in jobs])
    for microbatches in range(1, min(most, (last - first) // 2) + 1):
        apart = of_jobs[:, first + microbatches : last] - of_jobs[:, first : last - microbatches]
        period = float(apart.mean())
        if np.isfinite(period) and float(np.ptp(apart)) <= tolerances.ROUNDING * timeline.makespan:
            job_starts = {
                job._replace(turn=turn): float(starts[job.copy, job.kind, job.stage, first + turn])
                for job in jobs
                for turn in range(microbatches)
            }
            pattern = Pattern(problem, microbatches, period, job_starts)
            return None if any(pattern.faults()) else pattern
    return None


def _starts(problem: Problem, timeline: Timeline) -> Floats:
    """Return the starts of ops, shape (copies, kinds, stages, microbatches of a copy); NaN where there is none."""
    placement, columns = problem.placement, timeline.schedule.columns
    share = problem.microbatches // placement.copies
    starts = np.full((placement.copies, len(Kind), placement.stages, share), np.nan)
    copy = placement.copy_of(columns.microbatch, problem.microbatches)
    starts[copy, columns.kind, columns.stage, columns.microbatch - copy * share] = timeline.start
    return starts
