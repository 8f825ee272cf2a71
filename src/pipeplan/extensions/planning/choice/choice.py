"""The choice among the configurations that fit: the simplest of those that predictions cannot tell apart.

Predictions of two configurations of one model on one cluster are off by about the same factor, but not by exactly the same.
Within the difference, a configuration with usual choices, memory to spare, fewer kinds of parallelism and equal stages is
the better one to run: less can go wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.results import Estimate

INDISTINGUISHABLE = 0.03
"""Relative difference of two predictions below which published runs do not confirm their order: the median difference of
measured over predicted time between two published runs of one source, model, GPU, software and precision is 3.4 % (76
groups)."""

KINDS = ("tensor", "pipeline", "context", "expert", "expert_tensor")
"""Degrees that count as kinds of parallelism, as fully sharded parameters do; data parallelism is always there."""


Judgement = Callable[[Estimate], bool]
"""Property of an estimate that speaks against it."""


def simplest(
    fitting: Sequence[Estimate], value: Callable[[Estimate], float], is_unusual: Judgement, is_tight: Judgement
) -> Estimate | None:
    """Return the simplest estimate within :data:`INDISTINGUISHABLE` of the best value; None if there is none.

    ``fitting`` has the best value first; :data:`Judgement` functions tell unusual choices, and memory that could exceed the
    limit within its error bar.
    """
    if not fitting:
        return None
    fastest = fitting[0]
    most = (1 + INDISTINGUISHABLE) * value(fastest)
    # The number of GPUs is no prediction: with the same number, the step times themselves have to be alike.
    alike = [
        estimate
        for estimate in takewhile(lambda estimate: value(estimate) <= most, fitting)
        if estimate.configuration.gpus != fastest.configuration.gpus
        or estimate.step_time <= (1 + INDISTINGUISHABLE) * fastest.step_time
    ]

    def complications(estimate: Estimate) -> tuple[bool, bool, int, bool, bool, int, float]:
        here = estimate.configuration
        simplicity = kinds_of_parallelism(here), here.chunks > 1, has_odd_size(here), unlike_stages(here)
        return is_unusual(estimate), is_tight(estimate), *simplicity, value(estimate)

    return min(alike, key=complications)


def kinds_of_parallelism(configuration: Configuration) -> int:
    """Return the number of kinds of parallelism besides data parallelism."""
    degrees: tuple[int, ...] = tuple(getattr(configuration, name) for name in KINDS)
    return sum(degree > 1 for degree in degrees) + (configuration.zero >= 3)


def has_odd_size(configuration: Configuration) -> bool:
    """Return True if the microbatch size is not a power of two."""
    return configuration.microbatch_size & (configuration.microbatch_size - 1) > 0


def unlike_stages(configuration: Configuration) -> int:
    """Return how many layers stages differ by; at least 2 if they differ in what they recompute or offload."""
    layers = configuration.layers or (0,)
    by_stage = configuration.recompute_by_stage is not None or isinstance(configuration.offload, tuple)
    return max(max(layers) - min(layers), 2 * by_stage)


def simpler_because(chosen: Estimate, other: Estimate, is_unusual: Judgement, is_tight: Judgement) -> str:
    """Return in what the chosen estimate is simpler than one that is about as fast; empty if it is not."""
    here, there = chosen.configuration, other.configuration
    if is_unusual(other) and not is_unusual(chosen):
        return "it is unusual"
    if is_tight(other) and not is_tight(chosen):
        return "its memory is tight"
    if kinds_of_parallelism(here) != kinds_of_parallelism(there):
        fewer = kinds_of_parallelism(here) < kinds_of_parallelism(there)
        words = f"it has {kinds_of_parallelism(there)} kinds of parallelism, not {kinds_of_parallelism(here)}"
        return words if fewer else ""
    if (here.chunks > 1) != (there.chunks > 1):
        return f"its ranks have {there.chunks} chunks, not one" if there.chunks > 1 else ""
    if has_odd_size(there) != has_odd_size(here):
        return f"it has microbatches of {there.microbatch_size}" if has_odd_size(there) else ""
    unlike = "unequal" if unlike_stages(here) <= 1 else "less equal"
    return f"its stages are {unlike}" if unlike_stages(there) > unlike_stages(here) else ""
