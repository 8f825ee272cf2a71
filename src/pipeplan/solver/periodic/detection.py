"""Detection of the pattern that a long schedule repeats in its middle."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Floats, Kind, Timeline, tolerances
from pipeplan.solver.periodic.pattern import Pattern
from pipeplan.solver.periodic.repeated import Repeated
from pipeplan.solver.problem import Problem


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
