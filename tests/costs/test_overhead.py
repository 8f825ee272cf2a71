"""What ranks lose between ops: the table by kind and stage, pairs, slices, and machines whose losses are known."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from pipeplan.costs import Costs, Overhead, Settings, settings_of
from pipeplan.foundation.errors import CostError
from pipeplan.model import Placement, parse_schedule

ONE_GAP: dict[str, Any] = {"op_gap": 0.5, "message_time": 0.125}


def occupied(placement: Placement, **options) -> Costs:
    costs = Settings(times_per="stage", **(ONE_GAP | options)).costs(placement)
    return costs.occupied(placement)


def test_an_op_has_a_gap_and_the_messages_of_its_stage():
    costs = occupied(Placement.linear(3))
    assert costs.forward.tolist() == [1.625, 1.75, 1.625]
    assert costs.backward.tolist() == [2.625, 2.75, 2.625]
    assert costs.backward_input.tolist() == [1.625, 1.75, 1.625]
    assert costs.backward_weight.tolist() == costs.recompute.tolist() == [1.5, 1.5, 1.5]
    assert occupied(Placement.of((0, 0, 1))).forward.tolist() == [1.5, 1.625, 1.625]  # nothing is sent within a rank


def test_a_pair_has_one_gap_and_the_messages_of_both_its_stages():
    together = occupied(Placement.linear(3), overlap_times=2.5)
    stages = np.arange(3)
    pairs = together.pair_times(stages[:, None], stages, together.backward_input)
    assert pairs.tolist() == [[3.25, 3.375, 3.25], [3.375, 3.5, 3.375], [3.25, 3.375, 3.25]]
    assert occupied(Placement.linear(3)).overlap is None


def test_a_backward_that_outlasts_its_pair_has_the_same_messages():
    costs = occupied(Placement.linear(3), forward_times=1, backward_times=(2, 2, 9), overlap_times=(2.5, 2.5, 9))
    assert costs.pair_times(np.array([0, 1]), np.array([2, 2]), costs.backward[[2, 2]]).tolist() == [9.75, 9.875]


def test_nothing_is_lost_twice():
    once = occupied(Placement.linear(3), step_time=2.0)
    assert once.occupied(Placement.linear(3)) is once
    assert once.overhead == Overhead(step_time=2.0)


def test_what_is_lost_before_an_op_and_behind_it():
    schedule = parse_schedule("0F0 0I0 0W0\n1F0 1I0 1W0")
    before, behind = Settings(**ONE_GAP).costs(schedule.placement).lost(schedule)
    assert before.tolist() == [0.5, 0.625, 0.5, 0.625, 0.5, 0.5]
    assert behind.tolist() == [0.125, 0, 0, 0, 0.125, 0]


@pytest.mark.parametrize(("unit", "gap"), [("ms", 0.85), ("us", 850.0), ("s", 0.00085), ("ns", 850_000.0)])
def test_a_machine_loses_its_time_in_the_unit_of_the_times(unit, gap):
    costs = Settings(machine="megatron-a100", time_unit=unit).costs(Placement.linear(2))
    assert costs.overhead.op_gap == pytest.approx(gap)


def test_settings_go_before_the_machine():
    settings = Settings(machine="megatron-a100", time_unit="ms", op_gap=0.0, step_time=5.0)
    assert settings.costs(Placement.linear(2)).overhead == Overhead(step_time=5.0)


@pytest.mark.parametrize(("unit", "problem"), [("", "but it is not set"), ("ticks", "not 'ticks'")])
def test_a_machine_needs_the_unit_of_the_times(unit, problem):
    with pytest.raises(CostError, match=f"needs a time unit .*{problem}") as error:
        Settings(machine="megatron-a100", time_unit=unit).costs(Placement.linear(2))
    assert error.value.field == "time_unit"


def test_a_loss_is_a_time():
    for name, value in product(("op_gap", "message_time", "step_time"), (-1.0, float("nan"), 1e300)):
        with pytest.raises(CostError, match=name.replace("_", " ")) as error:
            Overhead(**{name: value})
        assert error.value.field == name


def test_settings_give_the_losses_back():
    costs = Settings(op_gap=0.5, step_time=2.0).costs(Placement.linear(2))
    assert Settings(**settings_of(costs)).costs(Placement.linear(2)).overhead == costs.overhead
    assert not {"op_gap", "message_time", "step_time"} & set(settings_of(replace(costs, overhead=Overhead())))
