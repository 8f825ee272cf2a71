"""Sends and receives that run in order on communication streams, beside the computation."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Costs, Settings
from pipeplan.foundation.errors import DeadlockError, InvalidScheduleError
from pipeplan.model import Reason, Schedule, Streams, parse_schedule
from pipeplan.passes import insert_communication, without_communication
from pipeplan.simulation import idle_times, post_messages, simulate
from pipeplan.strategies import STRATEGIES
from tests.passes.plans import PLANS, without_copies
from tests.simulation.op_times import times

LEVELS: tuple[Streams, ...] = get_args(Streams)

STUCK = """\
0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 2RECV_B0 2B0 2SEND_B0 2RECV_B1 2B1 2SEND_B1 \
0RECV_B0 0B0 0RECV_B1 0B1
1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3B0 3SEND_B0 3RECV_F1 3F1 3B1 3SEND_B1 1RECV_B0 1B0 1SEND_B0 \
1RECV_B1 1B1 1SEND_B1"""
"""The order of pytorch/pytorch#172668."""


@pytest.mark.parametrize(("level", "sent"), [("rank", 5.0), ("direction", 4.5), ("edge", 4.5)])
def test_a_receive_delays_the_send_behind_it_on_its_stream(level, sent):
    text = "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    taken = times(text, "streams", level=level, p2p_time=0.5)
    assert taken["0F1"] == (1, 2)
    # On streams per direction or edge, the receiver is what it waits for: rank 1 posts it when its B0 has ended.
    assert taken["0SEND_F1"][0] == sent
    early = text.replace("1B0 1SEND_B0 1RECV_F1", "1RECV_F1 1B0 1SEND_B0")
    if level == "rank":
        with pytest.raises(DeadlockError):
            times(early, "streams", level=level, p2p_time=0.5)
    else:
        assert times(early, "streams", level=level, p2p_time=0.5)["0SEND_F1"][0] == 2.5


def test_the_order_that_hung_hangs_where_the_ranks_share_a_stream():
    for level in ("rank", "direction"):
        with pytest.raises(DeadlockError, match=r"0SEND_F1. for 1RECV_F1; rank 1, op 2 .1SEND_F0. for 2RECV_F0"):
            times(STUCK, "streams", level=level)
    assert times(STUCK, "streams", level="edge")["0B1"][1] == 7.5


def test_an_op_that_waits_for_its_send_waits():
    text = (
        "0F0 0SEND_F0 0WAIT_SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
        "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1"
    )
    assert times(text, "streams", p2p_time=2)["0F1"] == (3, 4)


def test_it_needs_messages():
    with pytest.raises(InvalidScheduleError, match="streams communication needs a SEND and a RECV for rank 0, op 1"):
        times("0F0 0B0\n1F0 1B0", "streams")


@st.composite
def problems(draw: st.DrawFn, *, overhead: bool = True) -> tuple[Schedule, Costs]:
    schedule = without_copies(draw(PLANS))
    value = st.integers(1, 16).map(lambda number: number / 4)
    per_stage = st.lists(value, min_size=schedule.stages, max_size=schedule.stages).map(tuple)
    chosen = Settings(
        forward_times=draw(per_stage),
        backward_input_times=draw(per_stage),
        backward_weight_times=draw(per_stage),
        p2p_time=draw(st.sampled_from([0.0, 0.25, 2.0])),
        p2p_bytes=draw(st.sampled_from([0.0, 8.0])),
        p2p_bandwidth=16.0,
        op_gap=draw(st.sampled_from([0.0, 0.25])) if overhead else 0.0,
        message_time=draw(st.sampled_from([0.0, 0.5])) if overhead else 0.0,
    )
    lowered = insert_communication(schedule, receives=draw(st.sampled_from(["early", "late"])))
    return lowered, chosen.costs(schedule.placement)


def makespan(schedule: Schedule, costs: Costs, communication: Any, level: Streams | None = None) -> float:
    """The makespan; infinite where it hangs."""
    try:
        return simulate(schedule, costs, communication=communication, streams=level).timeline.makespan
    except DeadlockError:
        return np.inf


@settings(max_examples=25, deadline=None)
@given(problems(overhead=False))
def test_each_model_is_between_those_that_wait_for_less_and_for_more(problem):
    """Edges and directions each split the stream of a rank; neither splits the other where a rank sends both ways."""
    schedule, costs = problem
    edge, contended, blocking = (makespan(schedule, costs, level) for level in ("edge", "contended", "blocking"))
    per_rank, per_direction, per_edge = (makespan(schedule, costs, "streams", level) for level in LEVELS)
    assert edge <= contended + 1e-9
    assert contended <= per_edge + 1e-9
    assert edge <= per_direction + 1e-9
    assert per_edge <= per_rank + 1e-9
    assert per_direction <= per_rank + 1e-9
    assert per_rank <= blocking + 1e-9


@settings(max_examples=15, deadline=None)
@given(problems(overhead=False))
def test_receives_that_are_all_posted_first_are_contended_links(problem):
    """On a stream per edge, what a pending receive delays is only what comes after it on its link."""
    schedule, costs = problem
    kinds = schedule.columns.kind
    receive = np.isin(kinds, [kind for kind in schedule.kinds if kind.name.startswith("RECV")])
    order = np.lexsort((np.arange(len(schedule)), ~receive, schedule.rank))
    first = Schedule(
        schedule.placement, schedule.microbatches, schedule.columns[order], schedule.offsets, slices=schedule.slices
    )
    contended = makespan(first, costs, "contended")
    assert makespan(first, costs, "streams", "edge") == pytest.approx(contended)


FRONT = "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
"""Rank 0 posts the receive of a gradient before it sends the next activation."""


def test_time_behind_another_message_has_a_reason_of_its_own():
    schedule = parse_schedule(FRONT)
    simulation = simulate(schedule, Settings(p2p_time=0.5).costs(schedule.placement), communication="streams")
    totals = idle_times(simulation.timeline, simulation.costs).totals(2)
    # 1F1 starts at 5.5; its input left rank 0 at 5, and was ready at 2, but rank 1 computes until 4.5.
    reasons = {Reason(code): time for code, time in enumerate(totals[1].tolist()) if time}
    assert reasons == {Reason.START_UP: 1.5, Reason.TRANSFER: 0.5, Reason.QUEUE: 0.5, Reason.DRAIN: 2.5}
    assert totals.sum(axis=1) == pytest.approx(simulation.timeline.idle)


@settings(max_examples=20, deadline=None)
@given(problems(), st.sampled_from(LEVELS))
def test_reasons_add_up_to_the_idle_time(problem, level):
    schedule, costs = problem
    try:
        simulation = simulate(schedule, costs, communication="streams", streams=level)
    except DeadlockError:
        return
    idle = idle_times(simulation.timeline, simulation.costs)
    totals = idle.totals(schedule.ranks)
    np.testing.assert_allclose(totals.sum(axis=1), simulation.timeline.idle, atol=1e-9)
    listed = np.zeros_like(totals)
    pieces = idle.pieces
    np.add.at(listed, (pieces.rank, pieces.reason), pieces.end - pieces.start)
    np.testing.assert_allclose(totals, listed, atol=1e-9)


def test_messages_that_are_posted_in_time_delay_nothing_here():
    """Interleaved 1F1B, lowered as PyTorch does, posts receives so early that sends wait for them."""
    schedule = STRATEGIES["interleaved-1f1b"](STRATEGIES["interleaved-1f1b"].shape(4, 8))
    costs = Settings(p2p_time=0.1).costs(schedule.placement)
    edge = simulate(schedule, costs).timeline.makespan
    front = simulate(insert_communication(schedule), costs, communication="streams").timeline.makespan
    posted = simulate(post_messages(schedule, costs), costs, communication="streams").timeline.makespan
    assert (round(edge, 6), round(front, 6), round(posted, 6)) == (29.9, 34.6, 29.9)


@settings(max_examples=14, deadline=None)
@given(PLANS, st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from(LEVELS))
def test_posted_messages_never_hang_and_are_no_worse_than_those_of_the_pass(plan, seed, latency, level):
    random = np.random.default_rng(seed)
    forward = tuple((0.25 + random.random(plan.stages)).tolist())
    costs = Settings(forward_times=forward, p2p_time=latency, offload_times=0.5).costs(plan.placement)
    posted = post_messages(plan, replace(costs, streams=level))
    assert check(posted, streams=level).valid
    assert check(posted, sends="blocking").valid
    assert without_communication(posted) == without_communication(plan)
    assert makespan(posted, costs, "streams", level) <= makespan(insert_communication(plan), costs, "streams", level)
