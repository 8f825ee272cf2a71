"""Instances by seed, of every kind that a bound speaks of, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from pipeplan.costs import Costs, Limits, Settings
from pipeplan.model import Objective, Placement
from tests.torture.schedules.random_costs import varied

SMALL = 24
"""Stages times microbatches times slices of a small instance."""


@dataclass(frozen=True)
class Instance:
    """What a bound is of; backwards are split ``all``, ``none`` or as one likes, ``any``."""

    seed: int
    placement: Placement
    microbatches: int
    slices: int
    costs: Costs
    limits: Limits
    objective: Objective
    split: str


def instance(seed: int, *, most: int = 3 * SMALL, differing: bool = True) -> Instance:
    """The instance of a seed, of at most so many stages times microbatches times slices."""
    random = Random(f"bound {seed}")
    placement = _placement(random)
    slices = random.choice((1, 1, 1, 1, 2, 2, 3)) if placement.copies == 1 else random.choice((1, 1, 1, 2))
    room = random.choice((SMALL, most)) // (placement.stages * slices)
    microbatches = max(min(random.choice((2, 3, 4, 5, 6, 8, 12)), room) // placement.copies, 1) * placement.copies
    costs = _costs(random, placement, slices)
    if differing:
        costs = varied(Random(f"varied {seed}"), costs, microbatches, whole=True)
    return Instance(
        seed=seed,
        placement=placement,
        microbatches=microbatches,
        slices=slices,
        costs=costs,
        limits=_limits(random, placement, costs, microbatches),
        objective="span" if random.random() < 0.25 else "makespan",
        split=random.choice(("all", "all", "all", "any", "none")),
    )


def _placement(random: Random) -> Placement:
    ranks = random.choice((2, 2, 3, 3, 4))
    kind = random.choice(("linear", "linear", "v", "v", "loop", "wave", "bidirectional", "custom", "custom"))
    if kind == "custom":
        stages = random.randint(2, 6)
        dealt = [random.randrange(ranks) for _ in range(stages)]
        names = {rank: name for name, rank in enumerate(dict.fromkeys(dealt))}
        return Placement.of(tuple(names[rank] for rank in dealt))
    if kind == "bidirectional":
        return Placement.bidirectional(random.choice((2, 2, 4)))
    chunks = random.choice((2, 2, 3, 4)) if kind in {"loop", "wave"} else 2
    return Placement.called(kind, 2 if chunks > 2 else ranks, chunks)


def _costs(random: Random, placement: Placement, slices: int) -> Costs:
    uneven = random.random() < 0.5

    def each(least: int, most: int) -> tuple[float, ...]:
        alike = random.randint(least, most)
        return tuple(
            float(slices * (random.randint(least, most) if uneven else alike)) for _ in range(placement.stages)
        )

    forward, inputs, weights = each(1, 6), each(1, 6), each(1, 6)
    kind = random.choice(("sum", "sum", "sum", "shorter", "longer"))
    less = {"sum": 0.0, "shorter": random.choice((0.25, 0.5)), "longer": -0.25}[kind]
    full = tuple(one + other - less * min(one, other) for one, other in zip(inputs, weights, strict=True))
    saves = random.choice((None, None, None, 0.3, 0.9))
    activation, kept = _sizes(random, placement, uneven)
    return Settings(
        forward_times=forward,
        backward_times=full,
        backward_input_times=inputs,
        backward_weight_times=weights,
        overlap_times=None
        if saves is None
        else tuple(max(f, b, f + b - saves * min(f, b)) for f, b in zip(forward, full, strict=True)),
        p2p_time=float(random.choice((0, 0, 1, 2, 5))),
        op_gap=float(random.choice((0, 0, 0, 1))),
        message_time=float(random.choice((0, 0, 0, 1))),
        activation_bytes=activation,
        weight_activation_bytes=kept,
    ).costs(placement)


def _sizes(random: Random, placement: Placement, uneven: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    most = random.choice((1, 1, 3))
    activation = [random.randint(1, most) if uneven else most for _ in range(placement.stages)]
    kept = random.choice((0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 1.5))
    return tuple(4.0 * one for one in activation), tuple(4.0 * kept * one for one in activation)


def _limits(random: Random, placement: Placement, costs: Costs, microbatches: int) -> Limits:
    """From what one microbatch needs up to what nearly all need, in bytes or activations."""
    in_activations = random.random() < 0.4
    rule = costs.memory.rule(placement, Limits(np.ones(placement.ranks), in_activations))
    held = np.maximum(rule.activation, rule.freed_by_weight)
    held = held * rule.factors.max(axis=1) if rule.factors.size else held
    least = np.zeros(placement.ranks)
    for copy in placement.table:
        np.maximum(least, np.bincount(copy, weights=held, minlength=placement.ranks), out=least)
    alike = random.random() < 0.6
    share = random.choice((1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 0.7 * microbatches))
    shares = [share if alike else random.choice((1.0, 1.5, 2.0, 3.0, 1.0 * microbatches)) for _ in least]
    return Limits(least * np.maximum(shares, 1.0), in_activations)
