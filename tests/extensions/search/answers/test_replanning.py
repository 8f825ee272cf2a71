"""Orders of microbatches for one batch after the other."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.foundation.errors import InputError

LENGTHS = [900.0, 4000.0, 300.0, 2000.0, 700.0]


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1", "zbv"])
def test_no_order_of_a_small_batch_is_shorter(schedule):
    settings: dict[str, Any] = {"ranks": 2, "microbatches": 4, "attention_share": 0.3, "p2p_time": 0.2}
    plan = pipeplan.Replanner(schedule, settings).plan(LENGTHS[:4])
    by_hand = [
        pipeplan.simulate(schedule, lengths=[LENGTHS[number] for number in order], **settings).makespan
        for order in permutations(range(4))
    ]
    assert plan.makespan == pytest.approx(min(by_hand))
    assert plan.given == pytest.approx(by_hand[0])
    assert plan.gain == pytest.approx(1 - min(by_hand) / by_hand[0])


def test_an_order_is_the_same_every_time_and_simulated_as_it_is_told():
    replanner = pipeplan.Replanner("1f1b", ranks=4)
    random = np.random.default_rng(0)
    for _ in range(3):
        lengths = random.lognormal(8, 0.8, 16)
        order = replanner(lengths)
        assert sorted(order) == list(range(16))
        assert replanner(lengths) == order
        plan = replanner.plan(lengths)
        assert plan.makespan <= plan.given
        assert pipeplan.simulate("1f1b", ranks=4, lengths=lengths[list(order)]).makespan == pytest.approx(plan.makespan)


def test_an_order_fits_into_memory_where_one_does():
    """Two long microbatches next to each other do not fit on rank 0."""
    settings: dict[str, Any] = {"ranks": 2, "microbatches": 4, "activation_bytes": 1.0, "memory_limit": 5.0}
    settings["reference_length"] = 1.0
    plan = pipeplan.Replanner("1f1b", settings).plan([4, 4, 1, 1])
    lengths = [[4, 4, 1, 1][number] for number in plan.order]
    result = pipeplan.simulate("1f1b", lengths=lengths, **settings)
    assert max(result.peak_bytes or []) <= 5
    assert result.makespan == pytest.approx(plan.makespan)


def test_it_takes_a_schedule_costs_documents_and_other_levels_of_communication():
    found = pipeplan.simulate("zb-h1", ranks=2, microbatches=3).schedule
    costs = pipeplan.Settings(forward_times=2.0, ranks=2).costs(found.placement)
    assert sorted(pipeplan.Replanner(found, costs)([[5, 5], 3, 1])) == [0, 1, 2]
    for communication in ("contended", "blocking"):
        settings = pipeplan.Settings(ranks=2, microbatches=3, communication=communication, p2p_time=1.0)
        plan = pipeplan.Replanner("1f1b", settings).plan([9, 1, 5])
        assert plan.makespan <= plan.given


def test_a_batch_of_another_size_is_refused():
    with pytest.raises(InputError, match="lengths: 3 values for 4 microbatches"):
        pipeplan.Replanner("1f1b", ranks=2, microbatches=4)([1, 2, 3])
    with pytest.raises(InputError, match="lengths: number 1 must be more than 0"):
        pipeplan.Replanner("1f1b", ranks=2)([1, 0, 3])


def test_its_makespan_is_that_of_a_simulation_of_the_same_lengths_on_every_level_of_communication():
    random = np.random.default_rng(3)
    for communication in ("edge", "contended", "streams", "blocking"):
        for schedule, chunks in (("1f1b", 1), ("zb-h1", 1), ("interleaved-1f1b", 2)):
            settings: dict[str, Any] = {
                "ranks": 3, "chunks": chunks, "microbatches": 6, "communication": communication, "p2p_time": 0.7,
                "attention_share": 0.3, "reference_length": 2000.0,
            }  # fmt: skip
            lengths = random.lognormal(7.5, 0.8, 6).tolist()
            plan = pipeplan.Replanner(schedule, settings).plan(lengths)
            reordered = pipeplan.simulate(schedule, lengths=[lengths[number] for number in plan.order], **settings)
            in_given_order = pipeplan.simulate(schedule, lengths=lengths, **settings)
            assert plan.makespan == pytest.approx(reordered.makespan, rel=1e-12), (communication, schedule)
            assert plan.given == pytest.approx(in_given_order.makespan, rel=1e-12), (communication, schedule)
            assert plan.makespan <= plan.given


def test_a_limit_that_no_order_keeps_is_said_and_lengthens_nothing():
    """Several microbatches are held at a time on rank 0, or static memory alone is above the limit."""
    settings: dict[str, Any] = {"ranks": 3, "microbatches": 4, "activation_bytes": 1.0, "reference_length": 1000.0}
    for limit, static in ((1.0, 0.0), (2.0, 3.0), (3.0, 3.0)):
        for seed in range(3):
            lengths = np.random.default_rng(seed).lognormal(7, 0.8, 4).tolist()
            replanner = pipeplan.Replanner("1f1b", settings, memory_limit=limit, static_bytes=static)
            plan = replanner.plan(lengths)
            every = [
                pipeplan.simulate(
                    "1f1b",
                    lengths=[lengths[number] for number in order],
                    memory_limit=limit,
                    static_bytes=static,
                    **settings,
                )
                for order in permutations(range(4))
            ]
            assert not any(result.fits for result in every)
            assert not plan.fits
            assert plan.makespan <= plan.given
            if static >= limit:
                assert plan.makespan == pytest.approx(min(result.makespan for result in every))
    assert pipeplan.Replanner("1f1b", settings, memory_limit=100.0).plan([900.0] * 4).fits
    assert pipeplan.Replanner("1f1b", settings).plan([900.0] * 4).fits
