"""What to answer where a budget ends before anything was found that fits: the first rounds of branch and bound, here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pipeplan.errors import PipeplanError
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import Factors
from pipeplan.planner.selection.branching import Branching, Space
from pipeplan.planner.selection.objectives import Value

ROUNDS, ROUND, FRAMES = 3, 32, 200
"""At most so many rounds of so many configurations, of the likeliest frames: about a second."""


def first_that_fit(
    spaces: Sequence[Space], value: Value, limit: float, calibration: Factors | None
) -> dict[Configuration, Estimate]:
    """Estimates of the most promising configurations, until a round has found one that fits; perhaps none does."""
    found: dict[Configuration, Estimate] = {}
    branching = Branching(spaces, value, limit)
    branching.price(FRAMES)
    for _ in range(ROUNDS):
        for group in branching.round(ROUND):
            question, configuration = group.space.question, group.configuration
            with suppress(PipeplanError):  # some refusals only estimates know: the group goes on to its next saving
                found[configuration] = estimate(
                    question.model, question.cluster, configuration, calibration=calibration, with_error_bar=False
                )
            branching.learn(group, found.get(configuration))
        if any(each.peak_bytes <= limit for each in found.values()) or branching.exhausted:
            break
    return found
