"""The layout whose slowest stage is as fast as can be, each stage within its memory: a start, by dynamic programming."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Floats, tolerances
from pipeplan.planner.layout.arcs import StageArcs, least_by, possible
from pipeplan.planner.layout.problem import Laid, LayoutProblem
from pipeplan.planner.layout.stages import TIMES


def balanced(problem: LayoutProblem) -> Laid | None:
    """The layout, or None where some stage can hold nothing that is left for it.

    Where that leaves a choice, the squares of the stages' times add up to the least. What chunks of one rank hold together
    is not looked at.
    """
    stages = [possible(problem, stage, np.inf) for stage in range(problem.stages)]
    times = [stage.features[:, TIMES].sum(axis=1) for stage in stages]
    slowest = float(_to_end(problem, stages, times, np.maximum)[0, 0])
    if slowest == np.inf:
        return None
    most = slowest * (1 + tolerances.ROUNDING)
    stages = [stage.keep(of_stage <= most) for stage, of_stage in zip(stages, times, strict=True)]
    squares = [of_stage[of_stage <= most] ** 2 for of_stage in times]
    to_end = _to_end(problem, stages, squares, np.add)
    counts, choices, at = [], [], 0
    for number, stage in enumerate(stages):
        here = stage.at(at)
        nearest = int((squares[number][here] + to_end[number + 1, stage.stop[here]]).argmin())
        stop = int(stage.stop[here][nearest])
        counts.append(stop - at)
        choices.append(int(stage.choice[here][nearest]))
        at = stop
    return Laid(tuple(counts), tuple(choices))


def _to_end(problem: LayoutProblem, stages: list[StageArcs], values: list[Floats], together: np.ufunc) -> Floats:
    """What each stage and all later ones come to at least, by the stage's first layer; shape (stages + 1, layers + 1)."""
    found = np.full((problem.stages + 1, problem.layers + 1), np.inf)
    found[-1, -1] = 0.0
    for number in reversed(range(problem.stages)):
        stage = stages[number]
        least_by(stage.first, together(values[number], found[number + 1][stage.stop]), found[number])
    return found
