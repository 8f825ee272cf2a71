"""Instances by seed, of every kind that a bound speaks of, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Objective, Placement
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_placement

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


def instance(seed: int, *, differing: bool = True) -> Instance:
    """Return the instance of a seed; ``differing``: perhaps of microbatches that differ."""
    random = Random(f"bound {seed}")
    placement = random_placement(random)
    slices = random.choice((1, 1, 1, 1, 2, 2, 3)) if placement.copies == 1 else random.choice((1, 1, 1, 2))
    room = random.choice((SMALL, 3 * SMALL)) // (placement.stages * slices)
    microbatches = max(min(random.choice((2, 3, 4, 5, 6, 8, 12)), room) // placement.copies, 1) * placement.copies
    costs = random_costs(random, placement, slices, whole=True)
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
    static = 0.0 if in_activations else costs.memory.static.max(initial=0.0) * placement.chunks * placement.copies
    return Limits(least * np.maximum(shares, 1.0) + static, in_activations)
