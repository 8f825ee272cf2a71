"""Random problems of the search: every kind of placement, cost, limit, choice and objective."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from pipeplan.costs import Limits
from pipeplan.extensions.search import Choices, Problem
from pipeplan.model import Objective, Placement
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_placement


def random_problem(random: Random, *, most: int = 40) -> Problem:
    """Of at most so many stages times microbatches times slices."""
    placement = random_placement(random)
    slices = random.choice((1, 1, 1, 2, 3))
    room = max(most // (placement.stages * slices * placement.copies), 1)
    microbatches = placement.copies * random.randint(1, min(room, 6))
    frees = random.choice((False, False, True))
    choices = Choices(
        split=random.random() < 0.8,
        overlap=random.random() < 0.7,
        weight_order=random.random() < 0.5,
        recompute=frees and random.random() < 0.6,
        offload=frees and random.random() < 0.6,
    )
    whole = random.random() < 0.5
    costs = varied(random, random_costs(random, placement, slices, whole=whole), microbatches, whole=whole)
    options: dict[str, Any] = {
        "objective": random.choice(("makespan", "makespan", "span")),
        "choices": choices,
        "communication": random.choice(("edge", "edge", "contended")),
        "slices": slices,
    }
    return _limited(random, Problem(placement, microbatches, costs, **options))


def long_problem(random: Random) -> Problem:
    """One whose steps are timed in part: nothing but orders to decide, and many ops."""
    placement = random.choice(
        (Placement.linear(3), Placement.v(3), Placement.loop(2, 2), Placement.wave(2, 3), Placement.bidirectional(4))
    )
    microbatches = -(-300 // (2 * placement.stages * 2)) * 2
    costs = random_costs(random, placement, 1, whole=random.random() < 0.5)
    costs = replace(costs, overlap=None, segments=None, backward=costs.backward_input + costs.backward_weight)
    costs = replace(costs, memory=replace(costs.memory, freed_by_weight=0.5 * costs.memory.activation))
    if costs.overhead.op_gap:
        costs = replace(costs, overhead=replace(costs.overhead, op_gap=0.0))
    choices = Choices(weight_order=False, split=random.random() < 0.8)
    objective: Objective = random.choice(("makespan", "span"))
    return _limited(random, Problem(placement, microbatches, costs, objective=objective, choices=choices))


def _limited(random: Random, problem: Problem) -> Problem:
    """With limits from the least feasible ones up, or with none."""
    if random.random() < 0.25:
        return problem
    in_activations = random.random() < 0.5
    everything = Limits(np.full(problem.placement.ranks, 1e12), in_activations)
    least = replace(problem, limits=everything).least_limit
    factor = np.array([random.choice((1.0, 1.0, 1.3, 1.7, 2.5, 4.0)) for _ in least])
    alike = random.random() < 0.5
    limits = least * (factor[0] if alike else factor)
    return replace(problem, limits=Limits(np.full(len(least), limits.max()) if alike else limits, in_activations))
