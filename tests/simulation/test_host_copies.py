"""Copies to the host and back: times at every level of communication, memory, and what simulating them is compared with."""

import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.checking import check
from pipeplan.costs import Communication, Settings
from pipeplan.errors import CostError, InvalidScheduleError
from pipeplan.kernels import Kernel
from pipeplan.model import HOST_KINDS, Kind, among, memory_moments, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import lower_bound, simulate, simulator
from tests.simulation.saving import parts_of_memory, saving_problems
from tests.slow_simulator import peak_activations, slow_simulate

LEVELS: tuple[Communication, ...] = ("edge", "contended", "blocking")
UNBLOCKED: tuple[Communication, ...] = ("edge", "contended")


def times(text: str, communication="edge", **given_settings) -> dict[str, tuple[float, float]]:
    schedule = parse_schedule(text)
    costs = Settings(**given_settings).costs(schedule.placement)
    timeline = simulate(schedule, costs, communication=communication).timeline
    ops = [str(op) for row in schedule for op in row]
    return dict(zip(ops, zip(timeline.start.tolist(), timeline.end.tolist(), strict=True), strict=True))


@pytest.mark.parametrize("communication", LEVELS)
def test_a_rank_waits_where_the_offload_stands_and_the_backward_for_its_reload(communication):
    found = times("0F0 0F1 0OFFLOAD0 0F2 0RELOAD0 0B2 0B0 0B1", communication, offload_times=1.5)
    assert found["0OFFLOAD0"] == (1, 2.5)
    assert found["0F2"] == (2.5, 3.5)
    assert found["0RELOAD0"] == (3.5, 5)
    assert (found["0B2"], found["0B0"]) == ((3.5, 5.5), (5.5, 7.5))
    late = times("0F0 0OFFLOAD0 0RELOAD0 0B0", communication, offload_times=1.5)
    assert (late["0RELOAD0"], late["0B0"]) == ((2.5, 4), (4, 6))


@pytest.mark.parametrize("communication", LEVELS)
def test_a_link_carries_one_copy_at_a_time_in_the_order_of_the_row(communication):
    text = "0F0 0F1 0F2 0OFFLOAD1 0OFFLOAD0 0RELOAD0 0RELOAD1 0B1 0B0 0B2"
    found = times(text, communication, offload_times=2.0)
    assert (found["0OFFLOAD1"], found["0OFFLOAD0"]) == ((2, 4), (4, 6))
    assert (found["0RELOAD0"], found["0RELOAD1"]) == ((6, 8), (8, 10))
    assert found["0B1"] == (10, 12)


def test_both_directions_carry_at_once():
    text = "0F0 0F1 0F2 0OFFLOAD0 0F3 0RELOAD0 0OFFLOAD1 0B0 0RELOAD1 0B1 0B2 0B3"
    found = times(text, offload_times=2.0)
    assert (found["0OFFLOAD0"], found["0RELOAD0"], found["0OFFLOAD1"]) == ((1, 3), (4, 6), (3, 5))
    assert found["0B0"] == (6, 8)


def test_an_overlapped_pair_waits_for_its_backwards_reload():
    found = times("0F0 0OFFLOAD0 0RELOAD0 (0F1;0B0)OVERLAP_F_B 0B1", offload_times=1.0)
    assert found["0F1"] == found["0B0"] == (3, 6)


def test_a_copy_waits_for_no_message_and_no_message_for_a_copy():
    text = "0F0 0SEND_F0 0OFFLOAD0 0F1 0SEND_F1 0RELOAD0 0RECV_B0 0B0 0RECV_B1 0B1\n"
    text += "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1"
    found = times(text, "blocking", p2p_time=0.5, offload_times=1.0)
    assert (found["0SEND_F0"], found["0OFFLOAD0"], found["0F1"]) == ((1, 1.5), (1, 2), (2, 3))
    assert (found["0RECV_B0"], found["0RELOAD0"]) == ((5, 5.5), (5, 6))
    assert found["0B0"] == (6, 8)


def test_memory_is_taken_back_where_the_rank_comes_to_the_reload_behind_its_messages():
    schedule = parse_schedule("0F0 0SEND_F0 0OFFLOAD0 0RECV_B0 0RELOAD0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0")
    costs = Settings(p2p_time=0.5, offload_times=1.0).costs(schedule.placement)
    met = simulate(schedule, costs, communication="blocking").timeline
    assert met.start[4] == memory_moments(met)[4] == 5
    beside = simulate(schedule, costs).timeline
    assert beside.start[4] == memory_moments(beside)[4] == 2


def test_a_copy_begins_when_its_forward_has_freed_the_rank():
    text = "0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1\n1F0 1B0 1F1 1B1"
    found = times(text, offload_times=1.0, message_time=0.25)
    assert found["0OFFLOAD0"] == (1.25, 2.25)


def test_copies_that_take_no_time_change_nothing():
    plan = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"
    offloads = "0F0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1\n1F0 1B0 1F1 1OFFLOAD1 1RELOAD1 1B1"
    found, free = times(plan, p2p_time=0.3), times(offloads, p2p_time=0.3, offload_times=0.0)
    assert {op: time for op, time in free.items() if "LOAD" not in op} == found


def test_the_copies_of_slices_take_their_share():
    schedule = parse_schedule("0F0.0 0F0.1 0OFFLOAD0.0 0B0.1 0RELOAD0.0 0B0.0", slices=2)
    found = simulate(schedule, Settings(offload_times=3.0).costs(schedule.placement)).timeline
    assert (found.end - found.start)[[2, 4]].tolist() == [1.5, 1.5]


def test_nobody_said_how_long_a_copy_takes():
    schedule = parse_schedule("0F0 0OFFLOAD0 0RELOAD0 0B0")
    with pytest.raises(CostError, match="set an offload bandwidth and activation bytes, or offload times") as caught:
        simulate(schedule, Settings().costs(schedule.placement))
    assert caught.value.field == "offload_bandwidth"


@pytest.mark.parametrize("communication", LEVELS)
@pytest.mark.parametrize(
    "text",
    ["0F0 0RELOAD0 0OFFLOAD0 0B0", "0OFFLOAD0 0F0 0RELOAD0 0B0", "0F0 0OFFLOAD0 0B0 0RELOAD0", "0F0 0RELOAD0 0B0"],
)
def test_copies_out_of_order(text, communication):
    schedule = parse_schedule(text)
    with pytest.raises(InvalidScheduleError):
        simulate(schedule, Settings(offload_times=1.0).costs(schedule.placement), communication=communication)


@settings(max_examples=16, deadline=None)
@given(saving_problems())
def test_the_simulator_agrees_with_the_obvious_slow_one(problem):
    schedule, costs = problem
    keeps = float(costs.memory.recompute_keeps[0] / costs.memory.activation[0])
    assert check(schedule).valid
    told = insert_communication(schedule)
    for communication in LEVELS:
        run = told if communication == "blocking" else schedule
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
    told = insert_communication(schedule)
    timed = among(told.columns.kind, (*HOST_KINDS, Kind.F, Kind.B, Kind.I, Kind.W, Kind.R))
    for communication in UNBLOCKED:
        without = simulate(schedule, costs, communication=communication).timeline
        beside = simulate(told, costs, communication=communication).timeline
        np.testing.assert_array_equal(beside.start[timed], without.start)
        np.testing.assert_array_equal(beside.end[timed], without.end)


@settings(max_examples=5, deadline=None)
@given(saving_problems())
def test_compiled_kernels_give_the_same_bytes(problem):
    schedule, costs = problem
    told = insert_communication(schedule)
    for communication in LEVELS:
        blocks = communication == "blocking"
        run = told if blocks else schedule
        name = "_TIME_OPS_BLOCKING" if blocks else "_TIME_OPS"
        plain = simulate(run, costs, communication=communication).timeline
        compiled = Kernel(getattr(simulator, name).function)
        compiled.evaluations = 10**9
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simulator, name, compiled)
            again = simulate(run, costs, communication=communication).timeline
        assert plain.start.tobytes() == again.start.tobytes()
        assert plain.end.tobytes() == again.end.tobytes()


def test_limits_say_nothing_about_schedules_that_offload():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0B1 0RELOAD0 0B0")
    costs = Settings(offload_times=0.1).costs(schedule.placement)
    limits = Settings(memory_limit="1act").limits(schedule.placement)
    found = simulate(schedule, costs, limits=limits)
    assert found.bound == lower_bound(schedule.placement, 2, costs)


def test_what_a_rank_holds_counts_what_stays():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0R1 0B1 0RELOAD0 0B0")
    costs = parts_of_memory(Settings(offload_times=0.1).costs(schedule.placement), keeps=0.25)
    assert simulate(schedule, costs).memory.activations.tolist() == [1, 1.25, 0.5, 1.25, 0.25, 1, 0]
