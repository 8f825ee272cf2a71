"""Annealings by moves: as a search runs them, by steps that are timed in part, or as plain Python."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.annealing import step_options, walk_from
from pipeplan.extensions.search.engines.steps import LocalSteps, WholeSteps
from pipeplan.extensions.search.kernels.arrays import AnnealingState, Reach, SearchWalk
from pipeplan.extensions.search.moves import Move

REACH = Reach(places=3, stages=3, microbatches=3)


def annealed(
    encoder: Encoder,
    start: Candidate,
    moves: tuple[Move, ...],
    *,
    steps: int,
    heat: float,
    seed: int = 1,
    reach: Reach = REACH,
    spread: float = 0.0,
    how: Literal["as a search", "in part", "in Python"] = "as a search",
) -> SearchWalk:
    """Return the walk of an annealing from a start: its last candidate, its best one and its state."""
    value = encoder.score(start.decisions, spread)
    state = AnnealingState(np.full(2, value), np.array([heat, 0.999]), np.array([seed]), encoder.empty_chain())
    options = step_options(encoder, moves, reach, 10, encoder.target(spread))
    walk = walk_from(encoder, start.copy().decisions, state)
    if how == "in part":
        local, done = LocalSteps(encoder, moves, options, walk), 0
        while done < steps:
            done += local.make(min(steps - done, 70))
        return walk
    whole = WholeSteps(encoder, moves, options, walk)
    inputs, outputs = whole.arguments(steps)
    if how == "in Python":
        whole.kernel.in_python(inputs, outputs)
    else:
        whole.kernel(inputs, outputs)
    return walk
