"""Parts shared by the annealings of an order and of a building block."""

from __future__ import annotations

import numpy as np

from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.kernels.arrays import (
    OUTSIDE,
    AnnealingState,
    Decisions,
    Reach,
    SearchWalk,
    StepOptions,
    Target,
)
from pipeplan.extensions.search.moves import Move
from pipeplan.extensions.search.moves.outside import outside_moves
from pipeplan.foundation.kernels import Kernel

OPS_BETWEEN_LOOKS = 2_000_000
"""Op evaluations between two looks at the clock: about 30 ms."""

OPS_BETWEEN_LOOKS_IN_PYTHON = 40_000
"""Op evaluations between two looks at the clock while the kernel runs as plain Python."""

QUANTILES = 1024
WAITS = -np.log((np.arange(QUANTILES) + 0.5) / QUANTILES)
"""Quantiles of the exponential distribution."""


def beginning(
    encoder: Encoder, value: float, *, temperature: float, cooling: float, steps: int, seed: int
) -> AnnealingState:
    """Return the state of an annealing before its first step; its steps make it ``cooling`` times cooler."""
    return AnnealingState(
        value=np.full(2, value),
        temperature=np.array([temperature, cooling ** (-1 / max(steps, 1))]),
        random=np.array([seed]),
        critical=encoder.empty_chain(),
    )


def step_options(encoder: Encoder, moves: tuple[Move, ...], reach: Reach, critical: int, target: Target) -> StepOptions:
    """Return the options of an annealing's steps as its kernel takes them."""
    weights = np.zeros(OUTSIDE, np.int64)
    for move in moves:
        if move.number is not None:
            weights[move.number] += move.weight
    more = [move.weight for move in moves if move.number is None]
    weights = np.concatenate((weights, np.array(more, np.int64)))
    return StepOptions(encoder.evaluator, weights, outside_moves(moves), reach, target, critical, WAITS)


def walk_from(encoder: Encoder, decisions: Decisions, state: AnnealingState) -> SearchWalk:
    """Return an annealing by moves that starts at these decisions, which it changes."""
    best = Decisions(*(array.copy() for array in decisions))
    return SearchWalk(decisions, best, state, encoder.empty_change())


def ops_between_looks(budget: Budget, kernel: Kernel) -> int:
    """Return the op evaluations between two looks at the clock; in plain Python fewer if there is a time limit."""
    slow = budget.limit_seconds is not None and not kernel.is_compiled
    return OPS_BETWEEN_LOOKS_IN_PYTHON if slow else OPS_BETWEEN_LOOKS
