from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from pipeplan.costs import Costs, Settings
from pipeplan.foundation.errors import CostError, DeadlockError, InvalidScheduleError
from pipeplan.model import Placement, Schedule, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import critical_path, lower_bound, settings_measured, simulate
from pipeplan.strategies import STRATEGIES
from tests.simulation.op_times import times

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def test_ops_start_when_their_rank_is_free_and_their_input_is_there():
    starts = {op: start for op, (start, _) in times(PLAN).items()}
    assert starts == {"0F0": 0, "0F1": 1, "0B0": 4, "0B1": 7, "1F0": 1, "1B0": 2, "1F1": 4, "1B1": 5}


def test_a_pair_starts_together_and_has_a_cost_of_its_own():
    text = "0F0 (0F1;0B0)OVERLAP_F_B 0B1"
    for overlap, end in ((None, 4), (2.5, 3.5)):
        taken = times(text, overlap_times=overlap)
        assert taken["0F1"] == taken["0B0"] == (1, end)


@pytest.mark.parametrize(
    ("name", "communication"),
    [("1f1b-overlap", "edge"), ("interleaved-1f1b-overlap", "contended"), ("dualpipe", "blocking")],
)
def test_a_pair_that_saves_nothing_is_two_ops_with_the_messages_of_both(name, communication):
    schedule = STRATEGIES[name](STRATEGIES[name].shape(4, 8))
    assert schedule.joined.any()
    if communication == "blocking":
        schedule = insert_communication(schedule)
    options: dict[str, Any] = {
        "message_time": 0.25,
        "p2p_time": 0.5,
        "times_per": "stage",
        "communication": communication,
    }
    assumed, explicit = (
        simulate(schedule, Settings(**options, **more).costs(schedule.placement), communication=communication)
        for more in (dict[str, Any](), {"overlap_times": 3.0})
    )
    np.testing.assert_array_equal(assumed.timeline.start, explicit.timeline.start)
    np.testing.assert_array_equal(assumed.timeline.end, explicit.timeline.end)
    assert assumed.bound.value == explicit.bound.value
    assert assumed.bound.value <= assumed.timeline.makespan


def test_a_link_carries_one_transfer_at_a_time():
    text = "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2"
    edge = {op: start for op, (start, _) in times(text, p2p_time=3).items()}
    contended = {op: start for op, (start, _) in times(text, "contended", p2p_time=3).items()}
    assert [edge["1F0"], edge["1F1"], edge["1F2"]] == [4, 5, 6]
    assert [contended["1F0"], contended["1F1"], contended["1F2"]] == [4, 7, 10]


def test_what_a_message_takes_passes_once_at_both_ends_where_they_meet():
    schedule = insert_communication(parse_schedule("0F0 0B0\n1F0 1B0"))
    met = simulate(schedule, Settings(message_time=3.0).costs(schedule.placement), communication="blocking")
    assert (met.timeline.makespan, met.bound.value) == (12, 11)
    path = critical_path(met.timeline, met.costs)
    assert (path.overhead, path.transfer) == (0, 6)


def test_blocking_needs_sends_and_receives_that_can_meet():
    with pytest.raises(InvalidScheduleError, match="needs a SEND and a RECV"):
        times(PLAN, "blocking")
    late = insert_communication(parse_schedule(PLAN), receives="late")
    with pytest.raises(DeadlockError, match="0SEND_F1"):
        simulate(late, Settings().costs(late.placement), communication="blocking")


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0", DeadlockError, "these ops wait for each other"),
        ("0F0 0B0\n1F0", InvalidScheduleError, "rank 0, op 1 .0B0. waits for an op that is missing"),
        ("0B0 0F0", InvalidScheduleError, "out of order: rank 0, op 0"),
        (
            "0F0 0SEND_F0 0B0\n1F0 1B0 1RECV_F0",
            InvalidScheduleError,
            "out of order: rank 1, op 0 .1F0. waits for 1RECV_F0",
        ),
        (
            "0F0 0B0\n1RECV_F0 1F0 1B0",
            InvalidScheduleError,
            "rank 1, op 0 .1RECV_F0. waits for an op that is missing",
        ),
        (
            "0F0 0B0\n1F0 1RECV_B0 1B0",
            InvalidScheduleError,
            r"rank 1, op 1 .1RECV_B0. waits for a message that no op sends",
        ),
    ],
)
def test_what_cannot_run(text, error, says):
    with pytest.raises(error, match=says):
        times(text)


def test_what_nobody_hands_on_to_another_rank():
    rows = parse_schedule("0F0 0I0 1W0\n1F0 1I0 0W0", placement=Placement.linear(2))
    with pytest.raises(InvalidScheduleError, match=r"wrong rank: rank 0, op 2 .1W0. waits for rank 1, op 1 .1I0."):
        simulate(rows, Settings().costs(rows.placement))


def test_costs_for_another_number_of_stages():
    with pytest.raises(CostError, match="costs have 3 stages, but the schedule has 2"):
        simulate(parse_schedule(PLAN), Settings().costs(Placement.linear(3)))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Schedule, Costs]:
    strategy = STRATEGIES[draw(st.sampled_from(sorted(STRATEGIES)))]
    ranks = 2 * draw(st.integers(1, 3))
    shape = strategy.shape(ranks, 2 * draw(st.integers(ranks, ranks + 3)))
    assume(strategy.accepts(shape))
    schedule = strategy(shape)
    value = st.floats(0.25, 4)
    stages = schedule.stages
    forward, inputs, weights = (tuple(draw(st.lists(value, min_size=stages, max_size=stages))) for _ in range(3))
    overlap = tuple(max(f, i + w) * 1.1 for f, i, w in zip(forward, inputs, weights, strict=True))
    given_settings = Settings(
        forward_times=forward,
        backward_input_times=inputs,
        backward_weight_times=weights,
        overlap_times=draw(st.sampled_from([None, overlap])),
        p2p_time=draw(st.just(0.0) | st.floats(0.01, 2)),
        op_gap=draw(st.sampled_from([0.0, 0.3])),
        message_time=draw(st.sampled_from([0.0, 0.2])),
    )
    return schedule, given_settings.costs(schedule.placement)


def test_the_bound_is_met_where_nothing_can_be_saved():
    one = parse_schedule("0F0 0B0 0F1 0B1")
    assert simulate(one, Settings().costs(one.placement)).gap == 0
    chain = parse_schedule("0F0 0B0\n1F0 1B0")
    simulation = simulate(chain, Settings(p2p_time=0.25).costs(chain.placement))
    assert simulation.timeline.makespan == 6.5
    assert simulation.bound.value == 5.5
    assert lower_bound(Placement.linear(2), 100, Settings().costs(Placement.linear(2))).reason == "the work of rank 1"


def test_what_i_and_w_free():
    plan = parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1")
    held = simulate(
        plan, Settings(activation_bytes=10, weight_activation_bytes=4, static_bytes=100).costs(plan.placement)
    )
    assert held.memory.bytes is not None
    assert held.memory.bytes.tolist() == [10, 20, 14, 8, 4, 0]
    assert held.memory.peak_bytes is not None
    assert held.memory.peak_bytes.tolist() == [120]
    assert held.memory.activations.tolist() == pytest.approx([1, 2, 1.4, 0.8, 0.4, 0])
    adds = simulate(plan, Settings(activation_bytes=10, weight_activation_bytes=17).costs(plan.placement))
    assert adds.memory.peak_activation.tolist() == pytest.approx([3.4])


def test_settings_of_a_timeline_are_those_that_it_was_simulated_with():
    schedule = parse_schedule(PLAN)
    timeline = simulate(schedule, Settings(p2p_time=0.5, op_gap=0.25).costs(schedule.placement)).timeline
    measured = settings_measured(timeline, Settings())
    assert (measured.p2p_time, measured.op_gap) == (0.5, 0.25)
    assert (measured.forward_times, measured.backward_times) == ((1.0, 1.0), (2.0, 2.0))
