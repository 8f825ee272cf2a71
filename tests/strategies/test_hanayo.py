"""Hanayo: its picture, its makespan and peak in closed form for any shape and times, and the order it shares with ZBV."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.model import Kind
from pipeplan.simulation import Simulation, simulate
from pipeplan.strategies import Shape
from pipeplan.strategies.chimera import round_trips
from pipeplan.strategies.hanayo import build_hanayo, hanayo
from pipeplan.strategies.zbv import zbv
from tests.slow_simulator import slow_simulate
from tests.strategies.picture import picture
from tests.strategies.promises import assert_keeps_promises
from tests.strategies.tables import documented_table

TABLE = """\
rank 0 | 0F0 0F1 0F2 0F3 .   5F0 5B0 5F1 5B1 5F2 5B2 .   0B0 5F3 5B3 0B1 .   0B2 .   0B3
rank 1 | .   1F0 1F1 1F2 4F0 1F3 4F1 4B0 4F2 4B1 .   1B0 4F3 4B2 1B1 4B3 1B2 .   1B3 .
rank 2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3B0 2F3 2B0 3F3 3B1 2B1 3B2 2B2 3B3 2B3 .   ."""


def simulated(shape: Shape) -> Simulation:
    schedule = hanayo(shape)
    times = Settings(times_per="stage", forward_times=1.0, backward_times=2.0)
    return simulate(schedule, times.costs(schedule.placement))


def makespan(shape: Shape, forward: float, backward: float) -> float:
    """All work of a rank, and where the flow starts and ends: trips of 2p stages, one after the other on every rank."""
    p, m, waves = shape.ranks, shape.microbatches, shape.chunks // 2
    work, longer = 2 * waves * m * (forward + backward), max(forward, backward)
    if m < p:
        return 2 * waves * p * (forward + backward) + 2 * (m - 1) * longer
    last = (m - 1) % shape.group_size + 1 if shape.group_size else p
    return work + 2 * (p - 1) * longer + 2 * (waves - 1) * max(p - last, 0) * longer


def test_timing_table():
    schedule = hanayo(hanayo.shape(3, 4))
    costs = Settings(times_per="stage", backward_times=1.0).costs(schedule.placement)
    assert picture(simulate(schedule, costs).timeline) == TABLE
    assert documented_table(build_hanayo) == TABLE


@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize("ranks", range(1, 9))
def test_makespan_and_peak_for_any_number_of_microbatches(ranks: int, waves: int):
    """In groups of about p, and with a group size of p in no more memory than p activations."""
    for microbatches in range(1, 3 * ranks + 2):
        for group_size in (None, min(ranks, microbatches)):
            shape = hanayo.shape(ranks, microbatches, 2 * waves, group_size=group_size)
            result = simulated(shape)
            assert result.timeline.makespan == makespan(shape, 1.0, 2.0)
            assert result.memory.peak_activation.max() == pytest.approx(hanayo.memory.value(shape))
            if group_size is not None:
                assert result.memory.peak_activation.max() == pytest.approx(min(ranks, microbatches))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_makespan_for_any_times_and_group_size(data: st.DataObject):
    ranks, microbatches = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 14))
    group_size = data.draw(st.none() | st.integers(min(ranks, microbatches), microbatches))
    shape = hanayo.shape(ranks, microbatches, 2 * data.draw(st.integers(1, 3)), group_size=group_size)
    forward, backward = data.draw(st.floats(0.1, 9)), data.draw(st.floats(0.1, 9))
    schedule = hanayo(shape)
    times = Settings(times_per="stage", forward_times=forward, backward_times=backward)
    found = slow_simulate(schedule, times.costs(schedule.placement)).makespan
    assert found == pytest.approx(makespan(shape, forward, backward))


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 7), microbatches=st.integers(1, 20), waves=st.integers(1, 3))
def test_keeps_its_promises(ranks: int, microbatches: int, waves: int):
    assert_keeps_promises(hanayo, hanayo.shape(ranks, microbatches, 2 * waves), exactly=True)


@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6])
def test_up_to_p_microbatches_move_on_by_a_stage_a_slot(ranks: int, waves: int):
    """What the paper lists: a microbatch enters every second slot, and all ranks run their ops in the order of slots."""
    for microbatches in range(1, ranks + 1):
        schedule = hanayo(hanayo.shape(ranks, microbatches, 2 * waves))
        assert schedule == round_trips(schedule.placement, 2 * np.arange(microbatches))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_one_wave_is_zbv_with_full_backwards(ranks: int):
    for microbatches in range(2 * ranks - 1, 3 * ranks):
        waves, halves = hanayo(hanayo.shape(ranks, microbatches)), zbv(zbv.shape(ranks, microbatches))
        for rank in range(ranks):
            kept = [str(op).replace("I", "B") for op in halves[rank] if op.kind is not Kind.W]
            assert [str(op) for op in waves[rank]] == kept


def test_one_chunk_makes_no_wave():
    with pytest.raises(ShapeError, match="even number of chunks per rank, two per wave, not 3"):
        hanayo(hanayo.shape(4, 4, 3))


@pytest.mark.parametrize(("microbatches", "group_size", "least"), [(9, 3, 4), (9, 10, 4), (2, 1, 2)])
def test_a_group_size_out_of_range_is_refused(microbatches: int, group_size: int, least: int):
    with pytest.raises(
        ShapeError, match=f"needs a group size of {least} to {microbatches} for this shape, not {group_size}"
    ):
        hanayo(hanayo.shape(4, microbatches, 2, group_size=group_size))
