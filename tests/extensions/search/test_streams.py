"""Searches for schedules whose messages run in order on communication streams."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.checking import check
from pipeplan.extensions.search import search
from pipeplan.extensions.search.exchange import Exchange
from pipeplan.model import Kind, Placement
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES, Shape
from tests.extensions.search.problems import problem
from tests.simulation.test_streams import LEVELS


def on_streams(placement, microbatches, times, streams, **more):
    case = problem(placement, microbatches, times, communication="streams", **more)
    return replace(case, costs=replace(case.costs, streams=streams))


@settings(max_examples=4, deadline=None)
@given(
    st.sampled_from(["1f1b", "zbv", "interleaved-1f1b", "zb-h1"]),
    st.sampled_from(LEVELS),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.booleans(),
)
def test_the_answer_is_never_worse_than_its_start(name, streams, transfer, with_messages):
    start = STRATEGIES[name](STRATEGIES[name].shape(2, 4))
    case = on_streams(start.placement, 4, (6.0, 4.0, 4.0, transfer), streams)
    if with_messages:
        start = insert_communication(start)
    before = case.simulated(start)
    result = search(case, evaluations=40, start=start)
    assert result.value <= before.timeline.makespan
    assert result.bound.value <= result.value * (1 + 1e-12)
    assert result.schedule.has(Kind.SEND_F)
    assert check(result.schedule, streams=streams).valid
    run = simulate(result.schedule, case.costs, communication="streams").timeline
    assert run.makespan == result.value
    # The bound is that of transfers that only delay, which also holds here.
    assert result.bound.value >= replace(case, communication="edge").bound.value


ON_STREAMS = on_streams(Placement.v(4), 6, (10.0, 10.0, 10.0, 6.0), "rank", limit=4)


def test_messages_are_searched_for_too():
    first, later = search(ON_STREAMS, evaluations=150), search(ON_STREAMS, evaluations=1200)
    assert later.value < first.value
    assert later.found_by.startswith("judged search")
    assert search(ON_STREAMS, evaluations=150).value == first.value


def test_results_are_delayed_a_few_at_a_time_and_never_below_0():
    schedule, random = STRATEGIES["zbv"](Shape(4, 6, 2)), np.random.default_rng(3)
    exchange = Exchange.at_once(ON_STREAMS)
    assert not exchange.of(schedule).any()
    for _ in range(50):
        moved = exchange.moved(random)
        assert moved.delays.min() >= 0
        changed = np.argwhere(moved.delays != exchange.delays)
        assert len(np.unique(changed[:, :2], axis=0)) <= 1
        exchange = moved
        lowered = ON_STREAMS.with_messages(schedule, exchange.of(schedule))
        assert check(lowered, streams="rank").valid
        assert ON_STREAMS.with_messages(lowered) is lowered
    assert exchange.delays.max() > 2
    assert not exchange.of(schedule)[schedule.where(Kind.W)].any()


def test_the_command_says_how_messages_run():
    result = pipeplan.search(
        ranks=2, microbatches=4, p2p_time=0.5, communication="streams", streams="edge", placement="v", evaluations=200
    )
    assert result.search is not None
    assert result.search.communication == "streams"
    assert result.costs.streams == "edge"
    assert result.gap == pytest.approx(result.makespan / result.lower_bound - 1)
