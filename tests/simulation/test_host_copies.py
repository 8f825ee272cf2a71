"""Copies to the host and back: times at every level of communication, memory, and what simulating them is compared with."""

import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Communication, Settings
from pipeplan.foundation.errors import CostError, InvalidScheduleError
from pipeplan.model import HOST_KINDS, Kind, among, memory_moments, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import lower_bound, simulate
from tests.simulation.op_times import times
from tests.simulation.saving import saving_problems
from tests.slow_simulator import peak_activations, slow_simulate

LEVELS: tuple[Communication, ...] = ("edge", "contended", "blocking")
UNBLOCKED: tuple[Communication, ...] = ("edge", "contended")


@pytest.mark.parametrize("communication", LEVELS)
def test_a_rank_waits_where_the_offload_stands_and_the_backward_for_its_reload(communication):
    taken = times("0F0 0F1 0OFFLOAD0 0F2 0RELOAD0 0B2 0B0 0B1", communication, offload_times=1.5)
    assert taken["0OFFLOAD0"] == (1, 2.5)
    assert taken["0F2"] == (2.5, 3.5)
    assert taken["0RELOAD0"] == (3.5, 5)
    assert (taken["0B2"], taken["0B0"]) == ((3.5, 5.5), (5.5, 7.5))
    late = times("0F0 0OFFLOAD0 0RELOAD0 0B0", communication, offload_times=1.5)
    assert (late["0RELOAD0"], late["0B0"]) == ((2.5, 4), (4, 6))


def test_memory_is_taken_back_where_the_rank_comes_to_the_reload_behind_its_messages():
    schedule = parse_schedule("0F0 0SEND_F0 0OFFLOAD0 0RECV_B0 0RELOAD0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0")
    costs = Settings(p2p_time=0.5, offload_times=1.0).costs(schedule.placement)
    met = simulate(schedule, costs, communication="blocking").timeline
    assert met.start[4] == memory_moments(met)[4] == 5
    beside = simulate(schedule, costs).timeline
    assert beside.start[4] == memory_moments(beside)[4] == 2


def test_nobody_said_how_long_a_copy_takes():
    schedule = parse_schedule("0F0 0OFFLOAD0 0RELOAD0 0B0")
    with pytest.raises(CostError, match="set an offload bandwidth and activation bytes, or offload times") as caught:
        simulate(schedule, Settings().costs(schedule.placement))
    assert caught.value.field == "offload_bandwidth"


@pytest.mark.parametrize(
    "text",
    ["0F0 0RELOAD0 0OFFLOAD0 0B0", "0OFFLOAD0 0F0 0RELOAD0 0B0", "0F0 0OFFLOAD0 0B0 0RELOAD0", "0F0 0RELOAD0 0B0"],
)
def test_copies_out_of_order(text):
    schedule = parse_schedule(text)
    for communication in LEVELS:
        with pytest.raises(InvalidScheduleError):
            simulate(schedule, Settings(offload_times=1.0).costs(schedule.placement), communication=communication)


@settings(max_examples=16, deadline=None)
@given(saving_problems())
def test_the_simulator_agrees_with_the_obvious_slow_one(problem):
    schedule, costs = problem
    keeps = float(costs.memory.recompute_keeps[0] / costs.memory.activation[0])
    assert check(schedule).valid
    lowered = insert_communication(schedule)
    for communication in LEVELS:
        run = lowered if communication == "blocking" else schedule
        fast, slow = simulate(run, costs, communication=communication), slow_simulate(run, costs, communication)
        np.testing.assert_allclose(fast.timeline.start, slow.start)
        np.testing.assert_allclose(fast.timeline.end, slow.end)
        assert fast.bound.value <= slow.makespan * (1 + 1e-12)
        peaks = peak_activations(run, keeps=keeps, moved=0.75)
        np.testing.assert_allclose(fast.memory.peak_activation, peaks, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(saving_problems())
def test_messages_in_the_plan_change_nothing_where_they_block_nobody(problem):
    schedule, costs = problem
    lowered = insert_communication(schedule)
    timed = among(lowered.columns.kind, (*HOST_KINDS, Kind.F, Kind.B, Kind.I, Kind.W, Kind.R))
    for communication in UNBLOCKED:
        without = simulate(schedule, costs, communication=communication).timeline
        beside = simulate(lowered, costs, communication=communication).timeline
        np.testing.assert_array_equal(beside.start[timed], without.start)
        np.testing.assert_array_equal(beside.end[timed], without.end)


def test_limits_say_nothing_about_schedules_that_offload():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0B1 0RELOAD0 0B0")
    costs = Settings(offload_times=0.1).costs(schedule.placement)
    limits = Settings(memory_limit="1act").limits(schedule.placement)
    simulation = simulate(schedule, costs, limits=limits)
    assert simulation.bound == lower_bound(schedule.placement, 2, costs)
