"""Searches where sends and receives occupy their ranks and meet."""

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan import solver
from pipeplan.api.searching.problems import problem_of
from pipeplan.api.searching.search_words import gain_of
from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.model import Kind, Placement, Schedule, Timeline
from pipeplan.passes import insert_communication
from pipeplan.solver import published
from pipeplan.solver.budget import Budget
from pipeplan.solver.candidate import Encoder
from pipeplan.solver.meeting import Exchange, schedule_that_meets, with_waits_filled
from tests.solver.problems import problem

CASES: list[dict[str, Any]] = [
    {"ranks": 4, "microbatches": 8, "forward_times": 2, "backward_input_times": 2, "backward_weight_times": 1},
    {
        "ranks": 6,
        "microbatches": 12,
        "forward_times": 2,
        "backward_input_times": 3,
        "backward_weight_times": 1,
        "p2p_time": 0.2,
    },
    {"ranks": 2, "microbatches": 5, "forward_times": 5, "backward_times": (2, 2.5, 1.5, 3), "placement": "v"},
    {
        "ranks": 4,
        "microbatches": 4,
        "forward_times": 4,
        "backward_input_times": 4,
        "backward_weight_times": 2,
        "op_gap": 0.25,
        "message_time": 0.5,
        "placement": "v",
    },
]


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=["zb-h2 is optimal", "weight backwards behind sends", "overlapped pairs", "orders made from costs"],
)
def test_a_search_is_no_worse_than_any_published_schedule_as_it_is_simulated(case):
    settings = {name: value for name, value in case.items() if name != "placement"}
    asked = problem_of(Settings(**settings, communication="blocking"), placement=case.get("placement", "linear"))
    best = min(asked.value(asked.simulated(schedule).timeline) for _, schedule in published(asked))
    found = solver.search(asked, evaluations=50)
    assert found.value <= best
    assert found.published is not None
    assert found.published.value == best


def test_a_search_is_no_worse_than_its_start():
    settings: dict[str, Any] = {**CASES[0], "communication": "blocking"}
    start = pipeplan.simulate("zb-h2", **settings)
    found = pipeplan.search(**settings, start=start.schedule, evaluations=0)
    assert found.makespan <= start.makespan
    assert found.search is not None
    assert "neither was made for" not in " ".join(gain_of(found.search, ""))


def test_a_start_keeps_the_messages_that_it_holds():
    asked = problem(Placement.linear(3), 4, communication="blocking")
    encoder = Encoder(asked)
    compute = encoder.decode(encoder.from_order(encoder.one_by_one()))
    start = insert_communication(compute, delays=np.ones(len(compute), np.int64))
    assert solver.search(asked, start=start, evaluations=0, engines=()).value <= asked.value(
        asked.simulated(start).timeline
    )
    alone = solver.Run(asked, Budget(None, 0, lambda: 0.0))
    alone.take_as_it_is(start, "start", encoder.encode(start))
    assert alone.best is not None
    assert alone.schedule(alone.best) == start


def random_problem(seed: int) -> solver.Problem:
    random = Random(seed)
    ranks = random.randint(2, 4)
    placement = random.choice([Placement.linear(ranks), Placement.v(ranks), Placement.loop(ranks, 2)])
    forward, inputs, weight = (random.choice((1.0, 2.0, 2.5, 4.0)) for _ in range(3))
    times = forward, inputs, weight, random.choice((0.0, 0.2, 1.0))
    return problem(placement, ranks * random.randint(1, 3), times, communication="blocking")


def others(schedule: Schedule) -> list[list[str]]:
    return [[str(op) for op in row if op.kind is not Kind.W] for row in schedule]


def ends(timeline: Timeline) -> list[dict[str, float]]:
    """When each op of each rank ends."""
    rows = zip(timeline.schedule, pairwise(timeline.schedule.offsets.tolist()), strict=True)
    return [dict(zip(map(str, row), timeline.end[start:stop], strict=True)) for row, (start, stop) in rows]


def test_weight_backwards_that_fill_waits_delay_nothing():
    moved = 0
    for asked in map(random_problem, range(12)):
        for _, schedule in published(asked):
            lowered = asked.with_messages(schedule)
            filled = with_waits_filled(lowered, asked)
            check(filled).require_valid()
            assert others(filled) == others(lowered)
            for was, now in zip(*(ends(asked.simulated(each).timeline) for each in (lowered, filled)), strict=True):
                assert now.keys() == was.keys()
                assert all(now[op] <= was[op] + 1e-9 for op in was)
            assert with_waits_filled(filled, asked) == filled
            moved += filled != lowered
    assert moved


@pytest.mark.parametrize("seed", range(12))
def test_what_a_search_makes_of_a_published_schedule_is_no_worse(seed):
    asked = random_problem(seed)
    encoder = Encoder(asked)
    for _, schedule in published(asked):
        if not (schedule.has(Kind.B) or schedule.joined.any()):
            made = schedule_that_meets(encoder, encoder.encode(schedule), Exchange.at_once(asked))
            value, before = (asked.value(asked.simulated(each).timeline) for each in (made, schedule))
            assert value <= before * (1 + 1e-9)
