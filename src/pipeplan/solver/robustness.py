"""What happens to a schedule's step time when ops do not take exactly what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import Schedule
from pipeplan.simulation import simulate
from pipeplan.solver.problem import Problem


@dataclass(frozen=True, slots=True)
class Jitter:
    """Op times vary independently: each is multiplied by a log-normal factor of mean 1.

    Attributes
    ----------
    deviation
        Standard deviation of the factor's logarithm: 0.05 is about 5 %.
    samples
        How many runs are sampled.
    seed
        Of the samples; the same for every schedule of one shape, so that schedules are compared fairly.
    """

    deviation: float
    samples: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < np.inf or self.samples < 1:
            raise InputError(
                f"jitter needs a deviation of at least 0 and at least one sample, not {self.deviation} and {self.samples}"
            )


@dataclass(frozen=True, slots=True)
class Robustness:
    """The objective over sampled jitter: its mean, and what 95 of 100 runs do not exceed."""

    mean: float
    p95: float


def robustness(schedule: Schedule, problem: Problem, jitter: Jitter) -> Robustness:
    """The objective of a schedule under jitter. Overlapped ops share the factor of the first."""
    factors = np.random.default_rng(jitter.seed)
    half = jitter.deviation**2 / 2
    values = [
        problem.value(
            simulate(
                schedule, problem.costs, factors=np.exp(factors.normal(-half, jitter.deviation, len(schedule)))
            ).timeline
        )
        for _ in range(jitter.samples)
    ]
    return Robustness(float(np.mean(values)), float(np.percentile(values, 95)))
