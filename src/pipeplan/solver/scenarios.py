"""Several runs in which ops take other times than planned, and what counts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import Floats
from pipeplan.solver.kernels.arrays import MEAN, P95, WORST

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

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return int(self.factors.shape[-1])
