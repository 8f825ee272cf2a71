"""Random costs of every kind, in whole numbers now and then: then sums are exact, and answers must be equal to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from pipeplan.costs import Costs, MicrobatchFactors, Settings
from pipeplan.model import Floats, Placement
from tests.costs.two_lanes import of_lists, random_op


def random_costs(random: Random, placement: Placement, slices: int, *, whole: bool, pairs: bool = False) -> Costs:
    """Times, overlaps, transfers, overheads and sizes; ``whole``: all that a slice takes is a whole number.

    ``pairs``: often with times of pairs that depend on both stages.
    """
    values = random_settings(random, placement, slices, whole=whole, pairs=pairs)
    return Settings(times_per="stage", **values).costs(placement)


def varied(random: Random, costs: Costs, microbatches: int, *, whole: bool) -> Costs:
    """The costs with microbatches that differ, in one way for all times and sizes or in several, or as they are.

    ``whole``: by whole numbers; a message then has bytes in one case of two.
    """
    if random.random() < 0.5:
        return costs
    shape = costs.stages, microbatches
    few = random.random() < 0.5

    def table() -> Floats:
        row = [random.choice((1.0, 2.0)) if few else random.randint(1, 4) for _ in range(microbatches)]
        everywhere = np.broadcast_to(np.array(row, float), shape)
        different = np.array([[random.randint(1, 3) for _ in range(microbatches)] for _ in range(costs.stages)], float)
        factors = random.choice((everywhere, everywhere, different))
        return factors if whole else factors * np.array([random.uniform(0.5, 1.5) for _ in range(microbatches)])

    one = table()
    several = whole or random.random() < 0.6
    factors = MicrobatchFactors(one, one, one, one) if several else MicrobatchFactors(*(table() for _ in range(4)))
    if random.random() < 0.5:
        costs = replace(costs, transfer=replace(costs.transfer, bytes=12.0, bandwidth=4.0))
    return replace(costs, factors=factors, memory=replace(costs.memory, factors=factors.size))


def random_settings(
    random: Random, placement: Placement, slices: int, *, whole: bool, pairs: bool = False
) -> dict[str, Any]:
    """The same as keywords of :class:`~pipeplan.costs.Settings`."""
    uneven = random.random() < 0.7

    def value(least: float, most: float) -> float:
        return float(slices * random.randint(round(least), round(most))) if whole else random.uniform(least, most)

    def each(draw: Callable[[], float]) -> tuple[float, ...]:
        alike = draw()
        return tuple(draw() if uneven else alike for _ in range(placement.stages))

    def some(*values: float) -> float:
        return float(random.choice(values)) * (1.0 if whole else random.uniform(0.5, 1.0))

    forward, inputs, weights, again, copies = (each(lambda: value(1, 5)) for _ in range(5))
    less = random.choice((0.0, 0.0, 0.0, 0.5, -0.5))
    full = tuple(one + other - less * min(one, other) for one, other in zip(inputs, weights, strict=True))
    saves = random.choice((None, None, 0.0, 0.5, 1.0))
    activation = each(lambda: 4.0 * random.randint(1, 3))
    kept = random.choice((0.0, 0.25, 1.0, 1.0, 1.5))
    # Where copies of the model cross ranks at different stages, costs count what a stage loses in any of them.
    alike = bool((placement.crosses == placement.crosses[0]).all())
    settings: dict[str, Any] = {
        "forward_times": forward,
        "backward_times": full,
        "backward_input_times": inputs,
        "backward_weight_times": weights,
        "recompute_times": again,
        "offload_times": copies if random.random() < 0.8 else tuple(0.0 for _ in copies),
        "overlap_times": None
        if saves is None
        else tuple(max(f, b, f + b - saves * min(f, b)) for f, b in zip(forward, full, strict=True)),
        "p2p_time": some(0, 0, 1, 2, 5),
        "op_gap": some(0, 0, 0, 1),
        "message_time": some(0, 0, 0, 1) if alike else 0.0,
        "activation_bytes": activation,
        "weight_activation_bytes": tuple(kept * one for one in activation),
        "recompute_bytes": tuple(random.choice((0.0, 0.25)) * one for one in activation),
        "offload_bytes": tuple(random.choice((1.0, 0.75)) * one for one in activation),
        "static_bytes": random.choice((0.0, 10.0)),
    }
    # Draws of their own: all other costs of a seed stay as they are without pairs.
    own = Random(f"pairs {forward} {full}")
    kind = own.choice(("matrix", "segments", *(("list", "segments") if pairs else ("list",) * 5)))
    if kind == "segments":
        return settings | _segments(own, placement.stages, slices, whole=whole)
    if kind == "matrix" and (pairs or saves is not None):
        settings["overlap_times"] = tuple(
            tuple(max(f, b) + own.choice((0, 0.25, 0.5, 1)) * (slices if whole else min(f, b)) for b in full)
            for f in forward
        )
    return settings


def _segments(random: Random, stages: int, slices: int, *, whole: bool) -> dict[str, Any]:
    """Segments on every stage, from which the times of ops follow."""

    def value() -> float:
        return float(slices * random.randint(1, 5)) if whole else random.uniform(1, 5)

    slowdown = random.choice((1.0, 1.0, 2.0)) if whole else random.choice((1.0, random.uniform(1, 1.5)))
    times = ("forward_times", "backward_times", "backward_input_times", "backward_weight_times", "overlap_times")
    return {
        "pair_slowdown": slowdown,
        "delayed_weights": random.random() < 0.5,
        "segments": [of_lists(*random_op(random, value)) for _ in range(stages)],
        **dict.fromkeys(times),
    }
