"""The choice among the configurations that fit: the simplest of those that predictions cannot tell apart.

Predictions of two configurations of one model on one cluster are off by about the same factor, but not by exactly the same.
Within the difference, a configuration with memory to spare, fewer kinds of parallelism and equal stages is the better one to
run: less can go wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeplan.planner.answers import Estimate
from pipeplan.planner.configuration import Configuration

INDISTINGUISHABLE = 0.02
"""Relative difference of two predictions below which published runs do not confirm their order: the median difference of
measured over predicted time between two runs of one source, model, GPU and software is 1.9 % (61 groups of
``published_runs.json``)."""

KINDS = ("tensor", "pipeline", "context", "expert", "expert_tensor")
"""Degrees that count as kinds of parallelism; data parallelism is always there."""


def simplest(
    fitting: Sequence[Estimate], value: Callable[[Estimate], float], is_tight: Callable[[Estimate], bool]
) -> Estimate | None:
    """Return the simplest estimate within :data:`INDISTINGUISHABLE` of the best value; None if there is none.

    Parameters
    ----------
    fitting
        Estimates that fit, the best value first.
    value
        Objective value of an estimate.
    is_tight
        Whether an estimate's memory could exceed the limit within its error bar.
    """
    if not fitting:
        return None
    most = (1 + INDISTINGUISHABLE) * value(fitting[0])
    fastest = fitting[0]
    # The number of GPUs is no prediction: with the same number, the step times themselves have to be alike.
    alike = [
        estimate
        for estimate in fitting
        if value(estimate) <= most
        and (
            estimate.configuration.gpus != fastest.configuration.gpus
            or estimate.step_time <= (1 + INDISTINGUISHABLE) * fastest.step_time
        )
    ]

    def complications(estimate: Estimate) -> tuple[bool, int, int, float]:
        here = estimate.configuration
        return is_tight(estimate), kinds_of_parallelism(here), unlike_stages(here), value(estimate)

    return min(alike, key=complications)


def kinds_of_parallelism(configuration: Configuration) -> int:
    """Return the number of kinds of parallelism besides data parallelism."""
    return sum(getattr(configuration, name) > 1 for name in KINDS)


def unlike_stages(configuration: Configuration) -> int:
    """Return how many layers stages differ by; at least 2 if they differ in what they recompute or offload."""
    layers = configuration.layers or (0,)
    by_stage = configuration.recompute_by_stage is not None or isinstance(configuration.offload, tuple)
    return max(max(layers) - min(layers), 2 * by_stage)


def simpler_because(chosen: Estimate, faster: Estimate, is_tight: Callable[[Estimate], bool]) -> str:
    """Return why the chosen estimate is preferred to one that is slightly faster, in a few words."""
    here, there = chosen.configuration, faster.configuration
    if is_tight(faster) and not is_tight(chosen):
        return "its memory is tight"
    if kinds_of_parallelism(here) < kinds_of_parallelism(there):
        return f"it has {kinds_of_parallelism(there)} kinds of parallelism instead of {kinds_of_parallelism(here)}"
    return "its stages are unequal"
