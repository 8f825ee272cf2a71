"""What every published schedule must be, whatever its shape; all of it judged by the slow simulator."""

from __future__ import annotations

from itertools import product

from pipeplan.model import Kind, Schedule
from pipeplan.strategies.protocol import Shape, Strategy
from tests.slow_simulator import peak_activations, worst_bubble


def assert_sound(strategy: Strategy, shape: Shape) -> None:
    """Complete, on the right ranks, free of deadlock (the slow simulator raises), within the published figures."""
    schedule = strategy(shape)
    assert schedule.name == strategy.name
    assert schedule.placement.rank_of == strategy.placed(shape).rank_of
    assert_complete(schedule, shape)
    assert worst_bubble(schedule) <= strategy.bubble.value(shape) + 1e-9
    assert max(peak_activations(schedule)) <= strategy.memory.value(shape) + 1e-9


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
    passes = [sorted(kind for kind in found if kind != Kind.R) for found in kinds.values()]
    assert all(found in ([Kind.F, Kind.B], [Kind.F, Kind.I, Kind.W]) for found in passes)
