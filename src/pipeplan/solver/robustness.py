"""What happens to a schedule's step time when ops do not take exactly what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import Schedule
from pipeplan.simulation import simulate
from pipeplan.solver.problem import Problem

LARGEST_DEVIATION = 10.0
"""Above it factors are 0 or astronomical, and a float does not hold them."""


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
    finalists
        How many lineages of a search are compared.

    Raises
    ------
    InputError
        For a deviation below 0 or above ``LARGEST_DEVIATION``, no samples, or no finalists.
    """

    deviation: float
    samples: int = 100
    seed: int = 0
    finalists: int = 6

    def __post_init__(self) -> None:
        if not 0 <= self.deviation <= LARGEST_DEVIATION:
            raise InputError(
                f"jitter must be from 0 to {LARGEST_DEVIATION:g}, not {self.deviation:g}: 0.05 is about 5%",
                field="jitter",
            )
        if self.samples < 1 or self.finalists < 1:
            raise InputError(f"jitter needs samples and finalists, not {self.samples} and {self.finalists}")


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
