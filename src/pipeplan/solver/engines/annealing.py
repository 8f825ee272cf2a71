"""What the two annealings, of an order and of a building block, have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.solver.budget import Budget
from pipeplan.solver.candidate import Encoder
from pipeplan.solver.kernels.arrays import AnnealingState

OPS_BETWEEN_LOOKS = 2_000_000
"""Op evaluations between two looks at the clock: about 30 ms."""

QUANTILES = 1024
WAITS = -np.log((np.arange(QUANTILES) + 0.5) / QUANTILES)
"""Quantiles of the exponential distribution: the same numbers, compiled or not."""


def beginning(
    encoder: Encoder, value: float, *, temperature: float, cooling: float, steps: int, seed: int
) -> AnnealingState:
    """An annealing before its first step, at a candidate of this value; its steps make it ``cooling`` times cooler."""
    return AnnealingState(
        value=np.full(2, value),
        temperature=np.array([temperature, cooling ** (-1 / max(steps, 1))]),
        random=np.array([seed]),
        critical=encoder.room_for_chain(),
    )


def pieces(budget: Budget, steps: int, work: int) -> Iterator[int]:
    """Numbers of steps, ``steps`` together, each taking ``work`` op evaluations; no more of them when time is up."""
    piece = max(OPS_BETWEEN_LOOKS // work, 1)
    while steps > 0 and not budget.out_of_time:
        yield min(piece, steps)
        steps -= piece
