"""Statistics of a time that was measured several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeplan.model import Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, quartiles and number of measurements; in milliseconds unless documented otherwise."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, times: Iterable[float] | Floats) -> Spread:
        """Return the statistics of some measurements."""
        values = np.asarray(list(times), np.float64)
        low, middle, high = np.percentile(values, (25, 50, 75)).tolist()
        return cls(middle, low, high, len(values))

    @property
    def relative(self) -> float:
        """Interquartile range divided by the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"
