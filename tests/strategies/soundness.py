"""What every published schedule must be, whatever its shape; all of it judged by the slow simulator."""

from __future__ import annotations

from pipeplan.model import Kind, Schedule
from pipeplan.strategies.strategy import Shape, Strategy
from tests.slow_simulator import key, peak_activations, worst_bubble


def assert_sound(strategy: Strategy, shape: Shape) -> None:
    """Complete, on the right ranks, free of deadlock (the slow simulator raises), within the published figures."""
    schedule = strategy(shape)
    assert schedule.name == strategy.name
    assert schedule.placement.name in {strategy.placement, "linear"}
    assert_complete(schedule, shape)
    assert worst_bubble(schedule) <= strategy.bubble.value(shape) + 1e-9
    assert max(peak_activations(schedule)) <= strategy.memory.value(shape) + 1e-9


def assert_complete(schedule: Schedule, shape: Shape) -> None:
    """Every forward once, and every backward once, full or in two halves; each op on the rank of its stage."""
    found = [key(op) for row in schedule for op in row]
    assert len(found) == len(set(found))
    backwards = (Kind.I, Kind.W) if schedule.has(Kind.I) else (Kind.B,)
    wanted = {
        (kind, stage, microbatch, part)
        for kind in (Kind.F, *backwards)
        for stage in range(shape.ranks * shape.chunks)
        for microbatch in range(shape.microbatches)
        for part in range(shape.slices)
    }
    assert set(found) == wanted
    for rank, row in enumerate(schedule):
        assert all(op.stage in schedule.placement.stages_on(rank) for op in row)
