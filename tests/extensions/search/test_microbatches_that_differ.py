"""Microbatches that differ: bounds and answers of searches against every order of tiny steps, and larger ones."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import pipeplan
from tests.extensions.search.varied_enumeration import Step

PLACEMENTS = {(0, 1): 3, (0, 1, 2): 2, (0, 1, 1, 0): 2}
"""The rank of each stage, and the microbatches of a step of which every order is tried in a moment."""


def tiny(seed: int) -> tuple[Step, dict[str, Any]]:
    """A step with every order tried, and the same as options of a search."""
    random = Random(f"different microbatches {seed}")
    ranks = random.choice(list(PLACEMENTS))
    stages, microbatches = len(ranks), PLACEMENTS[ranks]
    split = random.random() < 0.5
    kinds = ("F", "I", "W") if split else ("F", "B")
    alike = random.random() < 0.5
    row = [random.randint(1, 5) for _ in range(microbatches)]
    factors = [row if alike else [random.randint(1, 5) for _ in range(microbatches)] for _ in range(stages)]
    times = {kind: [random.randint(1, 3) for _ in range(stages)] for kind in kinds}
    bytes_, latency = random.choice(((0, 0), (0, 2), (1, 0), (1, 1)))
    limit = random.choice(
        (None, max(max(row) for row in factors) * len(ranks) // (max(ranks) + 1) + random.randint(0, 4))
    )
    step = Step(
        ranks,
        {
            kind: [[one * factor for factor in row] for one, row in zip(times[kind], factors, strict=True)]
            for kind in kinds
        },
        [[latency + bytes_ * factor for factor in row] for row in factors],
        factors,
        limit=limit,
    )
    options: dict[str, Any] = {
        "placement": ",".join(map(str, ranks)),
        "microbatches": microbatches,
        "forward_times": [float(time) for time in times["F"]],
        "p2p_time": float(latency),
        "p2p_bytes": float(bytes_),
        "p2p_bandwidth": 1.0,
        "microbatch_factors": factors,
        "activation_bytes": [1.0] * stages,
        "full_backward": not split,
    }
    if split:
        options |= {
            "backward_input_times": [float(t) for t in times["I"]],
            "backward_weight_times": [float(t) for t in times["W"]],
        }
    else:
        options["backward_times"] = [float(time) for time in times["B"]]
    if limit is not None:
        options["memory_limit"] = float(limit)
    return step, options


@pytest.mark.parametrize("seed", [0, 4, 6, 7, 8, 9, 12, 14])
def test_no_bound_is_above_the_least_of_all_orders(seed):
    step, options = tiny(seed)
    found = pipeplan.search(evaluations=30, **options)
    assert step.best is not None
    assert found.bound.value <= step.best * (1 + 1e-9)
    assert found.makespan >= step.best * (1 - 1e-9)


def test_a_search_finds_the_least_of_all_orders_and_says_that_it_is_not_proven():
    step, options = tiny(3)
    found = pipeplan.search(evaluations=20_000, workers=1, **options)
    assert found.search is not None
    assert found.makespan == step.best
    assert found.search.optimal == (found.gap == 0)
    assert found.search.optimal != any("not proven optimal" in note for note in found.notes)
