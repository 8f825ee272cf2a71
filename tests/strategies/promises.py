"""What every strategy promises, for its property test."""

import pytest

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies import Shape, Strategy


def assert_keeps_promises(strategy: Strategy, shape: Shape, *, exactly: bool) -> None:
    """The schedule is right, and its idle time and peak memory are within the formulas, or as they say."""
    schedule = strategy(shape)
    assert check(schedule).problems == ()
    simulation = simulate(schedule, Settings().costs(schedule.placement))
    idle = float(simulation.timeline.idle.max())
    peak = float(simulation.memory.peak_activation.max())
    bubble, memory = strategy.bubble.value(shape), strategy.memory.value(shape)
    if exactly:
        assert idle == pytest.approx(bubble)
        assert peak == pytest.approx(memory)
    else:
        assert idle <= bubble + 1e-9
        assert peak <= memory + 1e-9
