"""What may be asked of a search."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.costs import Limits, Settings
from pipeplan.costs.values import parse_size
from pipeplan.extensions.search import Choices, Problem
from pipeplan.foundation.errors import CostError, InfeasibleError, ShapeError
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


def test_a_limit_below_the_least_feasible_one_names_it():
    with pytest.raises(InfeasibleError, match=r"rank 1 may hold 0.9 activations.*needs 1 there: the least feasible"):
        problem(Placement.v(2), 4, limit=[1, 0.9])


@given(st.lists(st.floats(1, 1e12), min_size=4, max_size=4), st.floats(0.01, 0.99))
def test_the_limit_that_a_message_names_is_feasible_and_a_smaller_one_is_not(sizes, share):
    placement = Placement.linear(4)
    costs = Settings(activation_bytes=tuple(sizes)).costs(placement)

    def limited(limit: float) -> Problem:
        return Problem(placement, 2, costs, Limits(np.full(4, limit), in_activations=False))

    with pytest.raises(InfeasibleError) as raised:
        limited(share * min(sizes))
    named = re.search(r"needs (.+) there: the least feasible limit$", str(raised.value))
    assert named is not None
    limited(parse_size(named[1].replace(",", ""), "memory_limit"))
    with pytest.raises(InfeasibleError):
        limited(max(sizes) * (1 - 2e-5))


def test_a_limit_in_bytes_is_told_in_the_unit_that_reads_best_and_rounded_up():
    costs = Settings(activation_bytes=3.01 * 2**30).costs(Placement.linear(2))
    with pytest.raises(InfeasibleError, match=r"may hold 512\.0 MiB, and one microbatch alone needs 3\.1 GiB there"):
        Problem(Placement.linear(2), 2, costs, Limits(np.full(2, 2.0**29), in_activations=False))


def test_of_limits_that_differ_every_rank_that_is_short_is_named():
    costs = Settings(activation_bytes=(10.0, 20.0, 5.0)).costs(Placement.linear(3))
    limits = Limits(np.array([9.0, 19.0, 5.0]), in_activations=False)
    words = r"rank 1 may hold 19.0 B.*needs 20.0 B there: the least feasible limit of rank 1 \(also short: rank 0\)"
    with pytest.raises(InfeasibleError, match=words):
        Problem(Placement.linear(3), 2, costs, limits)


@pytest.mark.parametrize("split", [True, False])
def test_input_backwards_that_hold_more_leave_the_least_limit_as_backwards_may_run_full(split):
    placement = Placement.linear(2)
    costs = Settings(activation_bytes=10.0, weight_activation_bytes=17.0, static_bytes=(5.0, 7.0)).costs(placement)
    least = Limits(np.array([15.0, 17.0]), in_activations=False)
    assert Problem(placement, 2, costs, least, choices=Choices(split=split)).least_limit.tolist() == [15, 17]
    with pytest.raises(InfeasibleError, match=r"rank 1 may hold 16.0 B, and one microbatch alone needs 17.0 B"):
        Problem(placement, 2, costs, Limits(np.array([15.0, 16.0]), in_activations=False), choices=Choices(split=split))


def test_where_whole_backwards_gain():
    placement = Placement.linear(3)

    def gains(limit: float | None = None, **settings: object) -> list[bool]:
        costs = Settings(backward_input_times=1, backward_weight_times=1, **settings).costs(placement)  # type: ignore[arg-type]
        limits = None if limit is None else Limits(np.full(3, limit), in_activations=True)
        found: list[bool] = Problem(placement, 2, costs, limits).full_gains.tolist()
        return found

    assert gains() == [False] * 3
    assert gains(backward_times=(2.0, 1.9, 2.1)) == [False, True, False]
    assert gains(activation_bytes=1, weight_activation_bytes=2) == [False] * 3
    assert gains(2, activation_bytes=1, weight_activation_bytes=(0, 1, 2)) == [False, False, True]
    assert gains(overlap_times=3) == [False] * 3
    assert gains(overlap_times=2.9) == [True] * 3


def test_caps_of_the_wrong_number_or_unit():
    placement = Placement.linear(2)
    costs = Settings().costs(placement)
    with pytest.raises(CostError, match="3 values for 2 ranks"):
        Problem(placement, 2, costs, Limits(np.ones(3), in_activations=True))
    with pytest.raises(CostError, match="needs activation bytes"):
        Problem(placement, 2, costs, Limits(np.ones(2), in_activations=False))
    with pytest.raises(CostError, match="costs are for 2 stages"):
        Problem(Placement.linear(3), 2, costs)


def test_shapes_that_cannot_be():
    with pytest.raises(ShapeError, match="microbatches must be at least 1, not 0"):
        problem(Placement.linear(2), 0)
    with pytest.raises(ShapeError, match="3 microbatches cannot be divided equally among 2 model copies"):
        problem(Placement.bidirectional(4), 3)


def test_the_bound_of_the_span_is_a_ranks_work_or_a_microbatchs_way():
    assert problem(Placement.linear(3), 20, objective="span").bound.value == 20 * 14
    assert problem(Placement.linear(3), 1, objective="span").bound.value == 3 * 10 + 4 * 1 + 4
