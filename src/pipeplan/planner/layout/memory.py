"""What ranks hold at their peaks, as sums over stages that a layout changes.

What is kept counts from F's start; what a backward holds besides comes on top of what was held before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeplan.errors import CostError
from pipeplan.model import Bools, Floats, Schedule, tolerances
from pipeplan.planner.layout.order import holdings
from pipeplan.planner.layout.stages import BYTES


class RankPeaks:
    """Every rank's peak: the largest of its rows' sums over stages.

    Parameters
    ----------
    schedule
        Whose order says what is held at once.
    limits
        Bytes that each rank may hold; one number: all of them; None: any.

    Attributes
    ----------
    rows
        How often what each stage holds counts, shape (rows, stages, 4), in the order of :data:`BYTES`.
    rank
        Of each row, shape (rows,).
    limits
        Of each rank, with room for rounding, shape (ranks,).
    holds
        Whether a rank holds a stage, shape (ranks, stages).

    Raises
    ------
    CostError
        For limits that are not one a rank, or not more than 0.
    """

    def __init__(self, schedule: Schedule, limits: float | Sequence[float] | None = None) -> None:
        ranks, stages = schedule.ranks, schedule.stages
        given = np.atleast_1d(np.inf if limits is None else np.asarray(limits, np.float64))
        if len(given) not in (1, ranks) or not (given > 0).all():
            raise CostError(
                f"memory limits are one, or one for each of {ranks} ranks, of more than 0", field="memory_limit"
            )
        copies = np.zeros((ranks, stages))
        for copy in schedule.placement.table:
            np.add.at(copies, (copy, np.arange(stages)), 1.0)
        held = holdings(schedule)
        static = [
            np.broadcast_to(copies[rank][None, :, None], (len(rows), stages, 1)) for rank, rows in enumerate(held)
        ]
        self.rows: Floats = np.concatenate(
            [np.concatenate((rows, of_rank), axis=2) for rows, of_rank in zip(held, static, strict=True)]
        )
        self.rank = np.repeat(np.arange(ranks), [len(rows) for rows in held])
        self.limits: Floats = np.broadcast_to(given, (ranks,)) * (1 + tolerances.MEMORY)
        self.holds: Bools = copies > 0
        self._here = [np.flatnonzero(stages_of) for stages_of in self.holds]
        self._own = [
            self.rows[self.rank == rank][:, here].reshape(int((self.rank == rank).sum()), -1).T
            for rank, here in enumerate(self._here)
        ]

    @property
    def bounded(self) -> bool:
        """Whether any rank has a limit."""
        return bool(np.isfinite(self.limits).any())

    def peaks(self, features: Floats) -> Floats:
        """Of every rank, shape (..., ranks), for stages with these features, shape (..., stages, 7)."""
        most = np.empty((*features.shape[:-2], len(self.limits)))
        for rank, here in enumerate(self._here):
            own = features[..., here, BYTES].reshape(*features.shape[:-2], -1)
            most[..., rank] = (own @ self._own[rank]).max(axis=-1)
        return most

    def over(self, features: Floats) -> Floats:
        """Bytes that the ranks are over their limits together, shape (...)."""
        if not self.bounded:
            return np.zeros(features.shape[:-2])
        excess: Floats = np.maximum(self.peaks(features) - self.limits, 0.0).sum(axis=-1)
        return excess
