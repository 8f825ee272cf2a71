"""The search as a full: good, valid, repeatable, interruptible."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Limits, Memory
from pipeplan.extensions.search import (
    Choices,
    Problem,
    Published,
    SearchProgress,
    best_published,
    published,
    search,
    value_as_is,
)
from pipeplan.foundation.errors import InfeasibleError, InputError, ShapeError
from pipeplan.model import Kind, Placement
from pipeplan.passes import insert_recompute
from pipeplan.strategies import STRATEGIES, Shape, strategy
from tests.conformance import conformance
from tests.extensions.search.problems import problem, proven


@pytest.mark.parametrize(
    ("placement", "microbatches", "times", "limit", "best"),
    [
        (Placement.v(3), 4, (10.0, 10.0, 10.0, 0.0), 3, 260),
        (Placement.v(3), 6, (10.0, 12.0, 8.0, 1.0), 2, 436),
        (Placement.v(4), 5, (10.0, 12.0, 8.0, 1.0), 4, 345),
        (Placement.linear(4), 6, (10.0, 10.0, 20.0, 1.0), 4, 276),
        (Placement.linear(4), 6, (10.0, 10.0, 10.0, 1.0), 2, 326),
        (Placement.linear(4), 6, ((14.0, 10.0, 10.0, 10.0), (10.0,) * 4, (13.0, 10.0, 10.0, 10.0), 1.0), 6, 222),
    ],
)
def test_known_optima_are_reached(placement, microbatches, times, limit, best):
    assert search(problem(placement, microbatches, times, limit), evaluations=80_000).value == best


def test_never_worse_than_what_was_published_nor_better_than_what_was_proven():
    for row in conformance("proven_optima.json")["rows"][::6]:
        result = search(proven(row), evaluations=6000)
        assert row["optimal_makespan"] - 1e-6 <= result.value <= row["published_makespan"] + 1e-6


@pytest.mark.parametrize("placement", [Placement.loop(3, 2), Placement.wave(2, 4), Placement.bidirectional(4)])
@pytest.mark.parametrize("split", [True, False])
def test_every_placement_gives_a_valid_schedule_within_its_limit(placement, split):
    case = problem(placement, 6, limit=[2.0] * (placement.ranks - 1) + [2.5], choices=Choices(split=split))
    result = search(case, evaluations=3000)
    check(result.schedule, memory=case.memory_limit).require_valid()
    assert result.schedule.has(Kind.B) is not split
    assert result.value >= result.bound.value
    assert (result.simulation.memory.peak_activation <= [2.0] * (placement.ranks - 1) + [2.5]).all()


def test_the_same_seed_and_evaluations_give_the_same_answer_on_any_number_of_workers():
    case = problem(Placement.v(4), 6, limit=2.5)
    runs = [search(case, evaluations=4000, seed=7, workers=workers) for workers in (1, 1, 3)]
    assert runs[0].schedule == runs[1].schedule == runs[2].schedule
    histories = [[(step.value, step.found_by, step.evaluations) for step in run.history] for run in runs]
    assert histories[0] == histories[1] == histories[2]
    assert runs[0].evaluations == 4000


def test_a_schedule_that_meets_the_bound_ends_the_search():
    result = search(problem(Placement.linear(1), 3), seconds=100)
    assert result.optimal
    assert result.optimality_gap == 0
    assert result.value == 3 * 14


def test_it_goes_on_from_a_given_schedule():
    case = problem(Placement.v(4), 6, limit=2.5)
    first = search(case, evaluations=20_000)
    again = search(case, evaluations=0, start=first.schedule)
    assert again.value == first.value
    assert again.found_by == "search"


def test_a_schedule_with_what_the_search_does_not_decide_is_ruled_out():
    shape = Shape(ranks=2, microbatches=4)
    whole, halves = strategy("1f1b")(shape), strategy("zb-h1")(shape)
    again = insert_recompute(whole, [0])
    for schedule, choices in ((again, Choices(recompute=True)), (halves, Choices())):
        assert np.isfinite(value_as_is(schedule, problem(Placement.linear(2), 4, choices=choices)))
        left = problem(Placement.linear(2), 4, choices=Choices(split=False))
        assert np.isinf(value_as_is(schedule, left))
        assert np.isfinite(value_as_is(whole, left))


def test_limits_where_published_schedules_do_not_fit():
    case = problem(Placement.v(4), 6, limit=1.5)
    with pytest.raises(InfeasibleError):
        strategy("zbv-heuristic")(Shape(4, 6, 2), case.costs, case.limits)
    assert search(case, evaluations=2000).value < 6 * 88


def test_a_zero_budget_gives_a_valid_schedule():
    for budget in ({"evaluations": 0}, {"seconds": 0.0}):
        result = search(problem(Placement.v(3), 4, limit=2), **budget)
        check(result.schedule).require_valid()


def test_budgets_workers_and_starts_that_cannot_be():
    case = problem(Placement.linear(2), 2)
    with pytest.raises(InputError, match="a budget must be at least 0"):
        search(case, seconds=-1.0)
    with pytest.raises(InputError, match="a budget must be at least 0"):
        search(case, seconds=float("nan"))
    with pytest.raises(InputError, match="workers must be at least 1"):
        search(case, evaluations=1, workers=0)
    schedule = strategy("1f1b")(strategy("1f1b").shape(4, 8))
    with pytest.raises(ShapeError, match=r"cannot start from .*the search is for 2 ranks, 2 stages"):
        search(case, evaluations=1, start=schedule)


def test_an_interruption_keeps_the_best_so_far():
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.evaluations > 10:
            raise KeyboardInterrupt

    result = search(problem(Placement.v(4), 6, limit=2.5), evaluations=10**9, progress=stop)
    assert result.interrupted
    assert result.value <= seen[-1].value
    assert 0 <= seen[-1].share <= 1
    check(seen[-1].best()).require_valid()


def test_the_history_falls_and_ends_with_the_result():
    result = search(problem(Placement.v(4), 8, limit=3), evaluations=5000)
    values = [step.value for step in result.history]
    assert values == sorted(values, reverse=True)
    assert values[-1] == result.value
    assert result.history[-1].found_by == result.found_by


def test_caps_in_bytes_hold_what_is_static():
    case = problem(Placement.linear(3), 6)
    memory = Memory(np.full(3, 10.0), np.full(3, 4.0), np.full(3, 100.0), in_bytes=True)
    costs = replace(case.costs, memory=memory)
    result = search(Problem(case.placement, 6, costs, Limits(np.full(3, 124.0), False)), evaluations=3000)
    assert result.simulation.memory.peak_bytes is not None
    assert result.simulation.memory.peak_bytes.max() <= 124


def test_the_span_objective_gives_up_makespan_for_span():
    span = search(problem(Placement.linear(4), 8, (10.0, 10.0, 10.0, 0.0), 8, objective="span"), evaluations=3000)
    assert span.optimal
    assert span.timeline.spans.max() == 8 * 30 < span.timeline.makespan


def test_progress_names_the_published_schedule_to_beat_and_the_answer_keeps_it():
    told: list[SearchProgress] = []
    asked = problem(Placement.linear(4), 8, limit=3)
    found = search(asked, evaluations=20_000, progress=told.append)
    assert found.every_published
    assert found.published == told[-1].published == best_published(asked)
    assert found.published is not None
    assert found.value < found.published.value
    shares = [each.share for each in told]
    assert shares[0] < 0.1
    assert shares[-1] > 0.9
    assert all(value_as_is(order, asked) >= found.published.value for _, order in published(asked))


def test_of_published_schedules_that_are_as_good_the_one_that_is_as_its_name_says_is_the_one_to_beat():
    """On one chunk a rank, zb-h2 and interleaved-zb take the same time."""
    found = search(problem(Placement.linear(4), 8), evaluations=0)
    assert found.published is not None
    assert STRATEGIES[found.published.name].chunks == 1
    assert not Published("1f1b", 2.0).beats(Published("other", 1.0), 1)
    assert Published("other", 1.0).beats(Published("1f1b", 2.0), 1)
    assert not Published("other", 1.0).beats(Published("1f1b", 1.0), 1)
    assert Published("1f1b", 1.0).beats(Published("other", 1.0), 1)
    assert not Published("1f1b", 1.0).beats(Published("other", 1.0), 2)
