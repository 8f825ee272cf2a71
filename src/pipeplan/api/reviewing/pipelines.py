"""The pipeline of an estimate: its lower bound, and the reasons of its idle time."""

from __future__ import annotations

from pipeplan.api.planning.one_configuration import simulated
from pipeplan.errors import PipeplanError
from pipeplan.model import Reason
from pipeplan.reviewing import Estimated

_MOST_OPS = 60_000
"""Number of ops up to which the step is simulated for its reasons."""


def pipeline_figures(made: Estimated) -> tuple[float | None, dict[str, float] | None]:
    """Return the lower bound of the pipeline's makespan in seconds, and the shares of idle time by reason.

    Returns None for both with one rank, or if the step has too many ops.
    """
    configuration = made.configuration
    if configuration.pipeline == 1 or 3 * configuration.stages * configuration.microbatches > _MOST_OPS:
        return None, None
    try:
        result = simulated(made.model, made.cluster, configuration)
    except PipeplanError:
        return None, None
    totals = result.idle_times().totals(result.ranks).sum(axis=0)
    whole = float(totals.sum())
    shares = {reason.key: float(totals[reason]) / whole for reason in Reason if whole and totals[reason]}
    return float(result.lower_bound), shares
