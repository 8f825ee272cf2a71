"""Memory against time."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.checking import check
from pipeplan.extensions.search import pareto
from pipeplan.foundation.errors import InfeasibleError, InputError
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


def test_more_memory_takes_less_time():
    case = problem(Placement.v(3), 6)
    front = pareto(case, points=5, evaluations=4_000)
    peaks, values = [point.peak for point in front.points], [point.value for point in front.points]
    assert peaks == sorted(peaks)
    assert all(later < earlier for earlier, later in pairwise(values))
    assert front.points[0].limit == 1
    assert front.points[-1].limit == np.inf or values[-1] == front.points[-1].result.bound.value
    for point in front.points:
        check(point.result.schedule).require_valid()
        assert point.peak <= point.limit


def test_published_schedules_are_marked_and_not_below_the_front():
    front = pareto(problem(Placement.linear(4), 8), points=6, evaluations=4_000)
    assert {"1f1b", "gpipe", "zb-h1", "zb-auto"} <= {mark.schedule for mark in front.marks}
    for mark in front.marks:
        reachable = [point.value for point in front.points if point.limit <= mark.peak + 1e-9]
        assert min(reachable) <= mark.value or mark.peak not in {point.limit for point in front.points}
    assert not front.in_bytes


def test_no_bound_of_a_front_is_above_what_is_found_with_more_memory():
    front = pareto(problem(Placement.v(3), 6), points=6, evaluations=30_000)
    bounds = [point.result.bound.value for point in front.points]
    assert bounds == sorted(bounds, reverse=True)
    for number, point in enumerate(front.points):
        assert all(point.result.bound.value <= less.value for less in front.points[: number + 1])
        assert point.result.problem.limits is None or point.result.problem.limits.values.max() == point.limit
    assert front.points[-1].limit < np.inf or front.points[-1].result.problem.limits is None


def test_progress_is_the_share_of_the_whole_front():
    told: list[tuple[float, float]] = []
    found = pareto(
        problem(Placement.v(3), 4),
        points=3,
        evaluations=900,
        progress=lambda limit, news: told.append((limit, news.share)),
    )
    assert {limit for limit, _ in told} >= {point.limit for point in found.points}
    shares = [share for _, share in told]
    assert 0 <= min(shares) <= max(shares) <= 1
    first, last = ([share for limit, share in told if limit == end] for end in (told[0][0], told[-1][0]))
    assert max(first) <= 1 / 3
    assert min(last) >= 1 / 2


def test_a_front_ends_at_the_memory_limit():
    shape: dict[str, Any] = {
        "ranks": 4,
        "microbatches": 6,
        "placement": "v",
        "points": 3,
        "evaluations": 200,
        "workers": 1,
    }
    free, within = pipeplan.pareto(**shape), pipeplan.pareto(**shape, memory_limit="2.5act")
    assert max(point.peak for point in free) > 2.5
    assert [point.limit for point in within][-1] == 2.5
    assert max(point.peak for point in within) <= 2.5
    assert max(mark.peak for mark in within.published) <= 2.5
    with pytest.raises(InfeasibleError, match="least feasible limit"):
        pipeplan.pareto(**shape, memory_limit="0.5act")
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (["2act", "2act", "3act", "3act"], {}, "the same limit on every rank"),
        ("3act", {"activation_bytes": 8}, "set a limit in bytes"),
    ]
    for limit, costs, words in refused:
        with pytest.raises(InputError, match=words):
            pipeplan.pareto(**shape, **costs, memory_limit=limit)


def test_a_published_schedule_that_stands_for_a_limit_keeps_it():
    """A short search of all placements is beaten by v-min, whose order was made without a limit."""
    front = pipeplan.pareto(ranks=4, microbatches=8, points=4, evaluations=500, workers=1, memory_limit="2act")
    assert all(point.limit is not None and point.peak <= point.limit for point in front)
