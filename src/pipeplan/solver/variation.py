"""Deviations of a run from its plan: op times that vary, or one rank that is slower than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model import COMPUTE_KINDS, Floats, Kind, Placement, Schedule, among

LARGEST_DEVIATION = 10.0
"""Largest deviation: beyond it factors are 0 or too large for a float."""

LARGEST_SHARE = 10.0
"""Largest share by which a rank may be slower: beyond it the rank is broken."""

Purpose = Literal["train", "choose", "judge"]
"""Purpose of sampled runs. Each has its own samples, so that a schedule is judged on runs that it was not made for."""

_STREAMS: dict[Purpose, int] = {"train": 1, "choose": 2, "judge": 3}

ENTRIES_AT_ONCE = 1 << 22
"""Maximum number of factors in memory: 32 MiB."""

_SLOT = np.zeros(max(Kind) + 1, np.int64)
_SLOT[[Kind.B, Kind.I]] = 1
_SLOT[Kind.W] = 2
_SLOT[Kind.R] = 3
_SLOTS = 4


@dataclass(frozen=True, slots=True)
class Jitter:
    """Op times vary independently: each is multiplied by a log-normal factor of mean 1.

    The same op has the same factors in every schedule of one shape, so that schedules are compared fairly; a full backward
    has those of its input half.

    Attributes
    ----------
    deviation
        Standard deviation of the factor's logarithm: 0.05 is about 5 %.
    samples
        Number of sampled runs by which a schedule is judged.
    seed
        Random seed of the samples.
    trained_on
        Number of runs on which a search tries every schedule; it chooses among its best on four times as many. They are
        not the runs by which schedules are judged.

    Raises
    ------
    InputError
        For a deviation below 0 or above ``LARGEST_DEVIATION``, or no samples.
    """

    deviation: float
    samples: int = 200
    seed: int = 0
    trained_on: int = 32

    def __post_init__(self) -> None:
        if not 0 <= self.deviation <= LARGEST_DEVIATION:
            raise InputError(
                f"jitter must be from 0 to {LARGEST_DEVIATION:g}, not {self.deviation:g}: 0.05 is about 5%",
                field="jitter",
            )
        if self.samples < 1 or self.trained_on < 1:
            raise InputError(
                f"samples and trained_on of Jitter must be at least 1, not {self.samples} and {self.trained_on}",
                field="jitter",
            )

    def count(self, purpose: Purpose) -> int:
        """Return the number of sampled runs for a purpose."""
        return {"train": self.trained_on, "choose": 4 * self.trained_on, "judge": self.samples}[purpose]

    def table(self, placement: Placement, microbatches: int, slices: int, purpose: Purpose, samples: range) -> Floats:
        """Return the factors of some runs, shape (4, stages, microbatches, slices, runs), for F, B and I, W, and R."""
        shape = (_SLOTS, placement.stages, microbatches, slices)
        half = self.deviation**2 / 2
        drawn = (
            np.random.default_rng([self.seed, _STREAMS[purpose], sample]).normal(-half, self.deviation, shape)
            for sample in samples
        )
        return np.exp(np.stack(list(drawn), axis=-1))


@dataclass(frozen=True, slots=True)
class SlowRank:
    """One unknown rank is slower than planned: every op of it takes longer by a share.

    Attributes
    ----------
    share
        By how much: 0.05 is 5 %.

    Raises
    ------
    InputError
        For a share below 0 or above ``LARGEST_SHARE``.
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= LARGEST_SHARE:
            raise InputError(
                f"the share of a slow rank must be from 0 to {LARGEST_SHARE:g}, not {self.share:g}: 0.05 is 5%",
                field="slow_rank",
            )


Variation = Jitter | SlowRank
"""Deviation of a run from its plan."""


class Factors:
    """Factors on the op times of schedules of one shape, in each of the runs of a purpose.

    Parameters
    ----------
    variation
        Variation of the times.
    placement, microbatches, slices
        Shape of the schedules.
    purpose
        Purpose of the runs.
    """

    def __init__(
        self, variation: Variation, placement: Placement, microbatches: int, slices: int, purpose: Purpose
    ) -> None:
        self._variation = variation
        self._shape = (placement, microbatches, slices, purpose)
        entries = _SLOTS * placement.stages * microbatches * slices
        self._at_once = max(ENTRIES_AT_ONCE // entries, 1)
        self._kept: list[Floats] | None = None
        if isinstance(variation, Jitter) and variation.count(purpose) <= self._at_once:
            self._kept = list(self._tables(variation))

    def of(self, schedule: Schedule) -> Iterator[Floats]:
        """Yield the factors of a schedule's ops, some runs at a time, shape (ops, runs); those of transfers are 1."""
        columns = schedule.columns
        computes = among(columns.kind, COMPUTE_KINDS)
        if isinstance(self._variation, SlowRank):
            slow = schedule.rank[:, None] == np.arange(schedule.ranks)
            yield 1.0 + self._variation.share * (slow & computes[:, None])
            return
        for table in self._kept or self._tables(self._variation):
            factors: Floats = table[_SLOT[columns.kind], columns.stage, columns.microbatch, columns.slice]
            factors[~computes] = 1.0
            yield factors

    def _tables(self, jitter: Jitter) -> Iterator[Floats]:
        runs = jitter.count(self._shape[-1])
        for first in range(0, runs, self._at_once):
            yield jitter.table(*self._shape, range(first, min(first + self._at_once, runs)))
