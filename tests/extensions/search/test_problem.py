"""Problems that a search accepts, and those that it refuses."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.costs import Limits, Settings
from pipeplan.costs.written_numbers import parse_size
from pipeplan.extensions.search import Choices, Problem
from pipeplan.foundation.errors import CostError, InfeasibleError, ShapeError
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


@pytest.mark.parametrize(
    ("sizes", "limits", "words"),
    [
        (None, [1, 0.9], "rank 1 may hold 0.9 activations.*needs 1 there: the least feasible"),
        # In the unit that reads best, and rounded up.
        (3.01 * 2**30, [2.0**29] * 2, r"may hold 512\.0 MiB, and one microbatch alone needs 3\.1 GiB there"),
        # Of limits that differ, every rank that is short is named.
        ((10.0, 20.0), [9.0, 19.0], r"needs 20.0 B there: the least feasible limit of rank 1 \(also short: rank 0\)"),
    ],
)
def test_a_limit_below_the_least_feasible_one_names_it(sizes, limits, words):
    costs = Settings(activation_bytes=sizes).costs(Placement.linear(2))
    with pytest.raises(InfeasibleError, match=words):
        Problem(Placement.linear(2), 2, costs, Limits(np.array(limits), in_activations=sizes is None))


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
        stages: list[bool] = Problem(placement, 2, costs, limits).full_gains.tolist()
        return stages

    assert gains() == [False] * 3
    assert gains(backward_times=(2.0, 1.9, 2.1)) == [False, True, False]
    assert gains(activation_bytes=1, weight_activation_bytes=2) == [False] * 3
    assert gains(2, activation_bytes=1, weight_activation_bytes=(0, 1, 2)) == [False, False, True]
    assert gains(overlap_times=3) == [False] * 3
    assert gains(overlap_times=2.9) == [True] * 3


@pytest.mark.parametrize(
    ("placement", "microbatches", "limits", "error", "words"),
    [
        (Placement.linear(2), 2, Limits(np.ones(3), in_activations=True), CostError, "3 values for 2 ranks"),
        (Placement.linear(2), 2, Limits(np.ones(2), in_activations=False), CostError, "needs activation bytes"),
        (Placement.linear(3), 2, None, CostError, "costs are for 2 stages"),
        (Placement.linear(2), 0, None, ShapeError, "microbatches must be at least 1, not 0"),
        (
            Placement.bidirectional(2),
            3,
            None,
            ShapeError,
            "3 microbatches cannot be divided equally among 2 model copies",
        ),
    ],
)
def test_shapes_costs_and_limits_that_do_not_fit_together(placement, microbatches, limits, error, words):
    with pytest.raises(error, match=words):
        Problem(placement, microbatches, Settings().costs(Placement.linear(2)), limits)


def test_the_bound_of_the_span_is_a_ranks_work_or_a_microbatchs_way():
    assert problem(Placement.linear(3), 20, objective="span").bound.value == 20 * 14
    assert problem(Placement.linear(3), 1, objective="span").bound.value == 3 * 10 + 4 * 1 + 4
