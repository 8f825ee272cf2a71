"""Orders of microbatches for one batch after the other."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.errors import InputError

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
