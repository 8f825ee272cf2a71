"""Copies to the host and back: times at every level of communication, memory, and what simulating them is compared with."""

import pytest

from pipeplan.costs import Communication, Settings
from pipeplan.foundation.errors import CostError, InvalidScheduleError
from pipeplan.model import memory_moments, parse_schedule
from pipeplan.simulation import lower_bound, simulate
from tests.simulation.op_times import times

LEVELS: tuple[Communication, ...] = ("edge", "contended", "blocking")


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


def test_limits_say_nothing_about_schedules_that_offload():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0B1 0RELOAD0 0B0")
    costs = Settings(offload_times=0.1).costs(schedule.placement)
    limits = Settings(memory_limit="1act").limits(schedule.placement)
    simulation = simulate(schedule, costs, limits=limits)
    assert simulation.bound == lower_bound(schedule.placement, 2, costs)
