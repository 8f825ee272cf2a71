"""When results are sent where messages run in order on streams."""

import numpy as np

from pipeplan.checking import check
from pipeplan.extensions.search.exchange import Exchange
from pipeplan.model import Kind, Placement
from pipeplan.strategies import STRATEGIES, Shape
from tests.extensions.search.problems import problem

ON_STREAMS = problem(Placement.v(4), 6, (10.0, 10.0, 10.0, 4.0), limit=4, communication="streams")
SCHEDULE = STRATEGIES["zbv"](Shape(4, 6, 2))


def test_delays_are_by_op_and_move_a_few_at_a_time():
    random = np.random.default_rng(3)
    exchange = Exchange.at_once(ON_STREAMS)
    assert not exchange.of(SCHEDULE).any()
    for _ in range(50):
        moved = exchange.moved(random)
        assert moved.delays.min() >= 0
        changed = np.argwhere(moved.delays != exchange.delays)
        assert len(np.unique(changed[:, :2], axis=0)) <= 1
        exchange = moved
        lowered = ON_STREAMS.with_messages(SCHEDULE, exchange.of(SCHEDULE))
        assert check(lowered, streams=ON_STREAMS.streams).valid
    delays = exchange.of(SCHEDULE)
    assert delays.any()
    assert not delays[SCHEDULE.where(Kind.W)].any()
