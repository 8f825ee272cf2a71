"""What every published schedule must be, whatever its shape; all of it judged by the slow simulator."""

from __future__ import annotations

from itertools import product

import pytest

from pipeplan.model import Kind, Schedule
from pipeplan.strategies.protocol import Shape, Strategy
from tests.slow_simulator import peak_activations, worst_bubble

FROM_COSTS = ("zb-auto", "zbv-heuristic")
"""Strategies whose figures depend on costs and limits."""


def assert_sound(strategy: Strategy, shape: Shape) -> None:
    """Complete, on the right ranks, free of deadlock (the slow simulator raises), with the published figures."""
    schedule = strategy(shape)
    assert schedule.name == strategy.name
    assert schedule.placement.rank_of == strategy.placed(shape).rank_of
    assert_complete(schedule, shape)
    idle, peak = worst_bubble(schedule), max(peak_activations(schedule))
    bubble, memory = strategy.bubble.value(shape), strategy.memory.value(shape)
    assert idle <= bubble + 1e-9
    assert peak <= memory + 1e-9
    if strategy.name not in FROM_COSTS:
        assert peak == pytest.approx(memory)
    if strategy.name not in FROM_COSTS and has_exact_idle_time(strategy, shape):
        assert idle == pytest.approx(bubble)


def has_exact_idle_time(strategy: Strategy, shape: Shape) -> bool:
    """Return whether the formula gives the idle time itself, and not only an upper bound on it."""
    whole = shape.microbatches % shape.ranks == 0
    if strategy.name.startswith("interleaved"):
        return shape.group_size is None and shape.variant is None and (whole or shape.microbatches < shape.ranks)
    return "at most" not in strategy.bubble.text or (whole and strategy.name == "chimera")


def assert_complete(schedule: Schedule, shape: Shape) -> None:
    """Every forward once, and every backward once, full or in two halves; each op on the rank that holds its stage."""
    kinds: dict[tuple[int, int, int], list[Kind]] = {}
    for rank, row in enumerate(schedule):
        for op in row:
            kinds.setdefault((op.stage, op.microbatch, op.slice), []).append(op.kind)
            copy = op.microbatch * schedule.placement.copies // shape.microbatches
            assert schedule.placement.rank_of[copy][op.stage] == rank
    stages = shape.ranks * shape.chunks
    assert set(kinds) == set(product(range(stages), range(shape.microbatches), range(shape.slices)))
    passes = [sorted(kind for kind in row if kind != Kind.R) for row in kinds.values()]
    assert all(row in ([Kind.F, Kind.B], [Kind.F, Kind.I, Kind.W]) for row in passes)
