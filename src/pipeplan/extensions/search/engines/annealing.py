"""Parts shared by the annealings of an order and of a building block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.kernels.arrays import (
    SEARCH_COMPILES_AFTER,
    AnnealingState,
    Decisions,
    Reach,
    SearchWalk,
    StepOptions,
    Target,
)
from pipeplan.extensions.search.moves import Move
from pipeplan.foundation.kernels import Kernel, dispatcher

OPS_BETWEEN_LOOKS = 2_000_000
"""Op evaluations between two looks at the clock: about 30 ms."""

OPS_BETWEEN_LOOKS_IN_PYTHON = 40_000
"""Op evaluations between two looks at the clock while the kernel runs as plain Python."""

QUANTILES = 1024
WAITS = -np.log((np.arange(QUANTILES) + 0.5) / QUANTILES)
"""Quantiles of the exponential distribution: the same numbers, compiled or not."""


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


def step_options(moves: tuple[Move, ...], reach: Reach, critical: int, target: Target) -> StepOptions:
    """Return the options of an annealing's steps as its kernel takes them."""
    return StepOptions(np.array([move.weight for move in moves], np.int64), reach, target, critical, WAITS)


def walk_from(encoder: Encoder, decisions: Decisions, state: AnnealingState) -> SearchWalk:
    """Return an annealing by moves that starts at these decisions, which it changes."""
    best = Decisions(*(array.copy() for array in decisions))
    return SearchWalk(decisions, best, state, encoder.empty_change())


def ops_between_looks(budget: Budget, kernel: Kernel) -> int:
    """Return the op evaluations between two looks at the clock; in plain Python fewer if there is a time limit."""
    slow = budget.limit_seconds is not None and not kernel.is_compiled
    return OPS_BETWEEN_LOOKS_IN_PYTHON if slow else OPS_BETWEEN_LOOKS


LoopBy = Callable[..., Callable[..., object]]
"""Factory of a loop: takes the evaluator, and the functions that propose, apply and undo a move by its number."""


@cache
def functions_of(moves: tuple[Move, ...]) -> tuple[Callable[..., None], Callable[..., bool], Callable[..., None]]:
    """Return the functions that propose, apply and undo a move by its number: the same for all kernels by these moves."""
    return (
        dispatcher([move.propose for move in moves]),
        dispatcher([move.apply for move in moves]),
        dispatcher([move.undo for move in moves]),
    )


@cache
def kernel_by(loop_by: LoopBy, moves: tuple[Move, ...], evaluate: Callable[..., float]) -> Kernel:
    """Return the kernel of a loop that steps by these moves and times candidates by ``evaluate``."""
    return Kernel(loop_by(evaluate, *functions_of(moves)), SEARCH_COMPILES_AFTER)
