"""Several runs in which ops take other times than planned, and what counts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import Floats
from pipeplan.solver.kernels.arrays import MEAN, P95, WORST
from pipeplan.solver.problem import Problem
from pipeplan.solver.variation import Jitter

ANNEALED_ON = 8
"""Sampled runs that every candidate is timed in, where op times vary."""

Statistic = Literal["worst", "mean", "p95"]

STATISTICS: dict[Statistic, int] = {"worst": WORST, "mean": MEAN, "p95": P95}
"""The kernel's number of each statistic."""


@dataclass(frozen=True, eq=False)
class Scenarios:
    """By how much the ops of a candidate take longer in each of several runs, and what of the values counts.

    Attributes
    ----------
    factors
        Shape (4, stages, microbatches, slices, runs): of F, of B and I, of W, and of R. Overlapped ops share that of the
        forward.
    statistic
        The ``worst`` value, their ``mean``, or the one that 95 % of them do not exceed.

    Raises
    ------
    InputError
        For factors of another shape, that are not more than 0 and finite, or no runs; an unknown statistic.
    """

    factors: Floats
    statistic: Statistic = "worst"

    def __post_init__(self) -> None:
        if self.factors.ndim != 5 or self.factors.shape[0] != 4 or not self.runs:
            raise InputError(
                f"factors of scenarios: shape (4, stages, microbatches, slices, runs), not {self.factors.shape}"
            )
        if not bool(((self.factors > 0) & np.isfinite(self.factors)).all()):
            raise InputError("factors of scenarios must be more than 0 and finite")
        if self.statistic not in get_args(Statistic):
            raise InputError(f"what counts of the scenarios is worst, mean or p95, not {self.statistic}")

    @classmethod
    def of(cls, problem: Problem) -> Scenarios:
        """The runs that candidates of a problem with a variation are annealed on.

        Under jitter it is the mean of a few: at equal effort that leads to a smaller p95 than the p95 of many, which is a
        matter of one or two samples.
        """
        variation, placement = problem.variation, problem.placement
        if isinstance(variation, Jitter):
            runs = range(min(ANNEALED_ON, variation.count("train")))
            return cls(variation.table(placement, problem.microbatches, problem.slices, "train", runs), "mean")
        assert variation is not None
        stage, microbatch = np.indices((placement.stages, problem.microbatches), np.int32)
        ranks = placement.ranks_of(stage.ravel(), microbatch.ravel(), problem.microbatches).reshape(stage.shape)
        slow = ranks[..., None, None] == np.arange(placement.ranks)
        shape = (4, *stage.shape, problem.slices, placement.ranks)
        return cls(np.broadcast_to(1.0 + variation.share * slow, shape).copy(), "worst")

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return int(self.factors.shape[-1])
