"""Hanayo: its makespan in closed form for any shape and times, and the order it shares with ZBV."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.strategies import Shape
from pipeplan.strategies.bidirectional import round_trips
from pipeplan.strategies.hanayo import hanayo
from tests.slow_simulator import peak_activations, slow_simulate


def makespan(shape: Shape, forward: float, backward: float) -> float:
    """All work of a rank, and where the flow starts and ends: trips of 2p stages, one after the other on every rank."""
    p, m, waves = shape.ranks, shape.microbatches, shape.chunks // 2
    work, longer = 2 * waves * m * (forward + backward), max(forward, backward)
    if m < p:
        return 2 * waves * p * (forward + backward) + 2 * (m - 1) * longer
    last = (m - 1) % shape.group_size + 1 if shape.group_size else p
    return work + 2 * (p - 1) * longer + 2 * (waves - 1) * max(p - last, 0) * longer


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_makespan_for_any_times_and_group_size(data: st.DataObject):
    ranks, microbatches = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 14))
    group_size = data.draw(st.none() | st.integers(min(ranks, microbatches), microbatches))
    shape = hanayo.shape(ranks, microbatches, 2 * data.draw(st.integers(1, 3)), group_size=group_size)
    forward, backward = data.draw(st.floats(0.1, 9)), data.draw(st.floats(0.1, 9))
    schedule = hanayo(shape)
    times = Settings(times_per="stage", forward_times=forward, backward_times=backward)
    timeline = slow_simulate(schedule, times.costs(schedule.placement))
    assert timeline.makespan == pytest.approx(makespan(shape, forward, backward))
    if group_size == ranks:
        assert max(peak_activations(schedule)) == pytest.approx(ranks)


@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6])
def test_up_to_p_microbatches_move_on_by_a_stage_a_slot(ranks: int, waves: int):
    """What the paper lists: a microbatch enters every second slot, and all ranks run their ops in the order of slots."""
    for microbatches in range(1, ranks + 1):
        schedule = hanayo(hanayo.shape(ranks, microbatches, 2 * waves))
        assert schedule == round_trips(schedule.placement, 2 * np.arange(microbatches))
