"""Searches that need nothing of each other: in processes, on a cluster, kept in a store."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest

from pipeplan.checking import check
from pipeplan.errors import InfeasibleError, InputError, ShapeError
from pipeplan.model import Placement
from pipeplan.solver import Effort, SearchBackend, SearchProgress, pareto, search, search_seeds
from pipeplan.solver.many_searches import stored_search
from pipeplan.sweeps import Failure, Finished
from tests.solver.problems import problem
from tests.sweeps.local_cluster import LocalCluster

CASE = problem(Placement.v(4), 8, limit=2)
EFFORT = Effort(seconds=None, evaluations=400)


def kept(store):
    with closing(sqlite3.connect(store)) as file:
        return [key for (key,) in file.execute("SELECT key FROM finished ORDER BY key")]


def of(found):
    rows = [[str(op) for op in found.schedule[rank]] for rank in range(found.schedule.ranks)]
    return found.value, found.bound, found.found_by, found.evaluations, rows


@pytest.fixture(scope="module")
def one_by_one():
    """What every seed finds on its own."""
    return [search(CASE, evaluations=400, seed=seed) for seed in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_best_of_several_seeds_wherever_they_run(one_by_one, workers):
    found = search_seeds(CASE, 3, EFFORT, SearchBackend(workers=workers))
    best = min(one_by_one, key=lambda each: each.value)
    assert of(found)[::4] == of(best)[::4]
    assert found.found_by == best.found_by
    assert found.bound.value == max(each.bound.value for each in one_by_one)
    assert found.evaluations == sum(each.evaluations for each in one_by_one)
    assert not found.interrupted
    check(found.schedule).require_valid()


def test_a_store_keeps_searches_by_their_seeds(tmp_path, monkeypatch):
    store = tmp_path / "s"
    first = search_seeds(CASE, 2, EFFORT, SearchBackend(store=store))
    assert kept(store) == ["seed 0", "seed 1"]
    begun = []

    def noted(*arguments, **options):
        begun.append(options["seed"])
        return search(*arguments, **options)

    monkeypatch.setattr("pipeplan.solver.many_searches.search", noted)
    again = search_seeds(CASE, 2, EFFORT, SearchBackend(store=store))
    assert begun == []
    assert of(again) == of(first)
    search_seeds(CASE, 4, EFFORT, SearchBackend(store=store))
    assert begun == [2, 3]
    with pytest.raises(InputError, match=r'problem.objective is "makespan" there and "span" here'):
        search_seeds(problem(Placement.v(4), 8, limit=2, objective="span"), 2, EFFORT, SearchBackend(store=store))
    with pytest.raises(InputError, match='command is "search" there and "search --pareto" here'):
        pareto(CASE, points=2, evaluations=100, store=store)


def test_a_search_that_the_user_ends_is_an_answer_and_is_not_kept(tmp_path):
    said = []

    def stop(progress):
        said.append(progress.share)
        if progress.share > 0.4:
            raise KeyboardInterrupt

    found = search_seeds(
        CASE, 3, Effort(seconds=None, evaluations=5_000), SearchBackend(store=tmp_path / "s"), progress=stop
    )
    assert found.interrupted
    assert said == sorted(said)
    assert kept(tmp_path / "s") == ["seed 0"]
    check(found.schedule).require_valid()


def test_what_cannot_be_searched_is_said_before_anything_runs():
    with pytest.raises(InputError, match="a budget must be at least 0"):
        search_seeds(CASE, 1, Effort(seconds=-1.0, evaluations=None), SearchBackend())
    other = search(problem(Placement.linear(4), 8), evaluations=0).schedule
    with pytest.raises(ShapeError, match="cannot start from"):
        search_seeds(CASE, 1, EFFORT, SearchBackend(), start=[other])


def points_of(front):
    return [(point.limit, point.peak, *of(point.result)) for point in front.points]


def test_a_front_that_was_stopped_goes_on_and_is_the_same(tmp_path, monkeypatch):
    """Killed after two of its searches; the third and those behind it are all that is done again."""
    store, unlimited = tmp_path / "s", replace(CASE, limits=None)
    whole = pareto(unlimited, points=3, evaluations=600)
    begun = []

    def dies(*arguments, **options):
        begun.append(arguments[0].limits)
        if len(begun) == 3:
            raise MemoryError
        return search(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr("pipeplan.solver.many_searches.search", dies)
        with pytest.raises(Exception, match="MemoryError"):
            pareto(unlimited, points=3, evaluations=600, store=store)
    assert len(kept(store)) == 2
    begun.clear()
    begun.extend([None, None, None])
    monkeypatch.setattr("pipeplan.solver.many_searches.search", dies)
    resumed = pareto(unlimited, points=3, evaluations=600, store=store)
    assert len(begun) - 3 == len(kept(store)) - 2
    assert points_of(resumed) == points_of(whole)


@pytest.mark.slow
def test_seeds_and_fronts_on_a_cluster(one_by_one, tmp_path):
    pytest.importorskip("distributed")
    cluster = LocalCluster(tmp_path, workers=2)
    try:
        found = search_seeds(CASE, 3, EFFORT, SearchBackend(dask=cluster.address))
        assert found.value == min(each.value for each in one_by_one)
        said = []
        first, second = (
            pareto(
                CASE,
                points=3,
                evaluations=600,
                dask=cluster.address,
                store=tmp_path / f"front {number}",
                progress=lambda limit, news: said.append((limit, news.share)),
            )
            for number in range(2)
        )
        again = pareto(CASE, points=3, evaluations=600, dask=cluster.address, store=tmp_path / "front 0")
    finally:
        cluster.end()
    assert points_of(first) == points_of(second) == points_of(again)
    assert {limit for limit, _ in said} >= {point.limit for point in first.points}
    values = [point.value for point in first.points]
    assert all(later < earlier for earlier, later in pairwise(values))
    for point in first.points:
        check(point.result.schedule).require_valid()
        assert point.peak <= point.limit
        assert point.result.bound.value <= point.value


@pytest.mark.slow
def test_in_rounds_searches_go_on_from_the_best_of_all(tmp_path):
    case, effort = problem(Placement.v(3), 8, (14.0, 15.0, 9.0, 2.0), limit=2), Effort(seconds=None, evaluations=120)
    told: list[SearchProgress] = []
    found = search_seeds(case, 2, effort, SearchBackend(store=tmp_path / "s"), rounds=3, progress=told.append)
    assert kept(tmp_path / "s") == [f"round {turn}, seed {seed}" for turn in range(3) for seed in range(2)]
    with closing(sqlite3.connect(tmp_path / "s")) as file:
        rows = dict(file.execute("SELECT key, json_extract(answer, '$.history[#-1].value') FROM finished"))
    least = [min(rows[f"round {turn}, seed {seed}"] for seed in range(2)) for turn in range(3)]
    assert found.value == least[2] <= least[1] <= least[0]
    assert all(rows[f"round 1, seed {seed}"] <= least[0] for seed in range(2))
    assert found.published is not None
    assert told[-1].share == 1
    check(found.schedule, memory=case.memory_limit).require_valid()
    assert of(search_seeds(case, 2, effort, SearchBackend(workers=2), rounds=3)) == of(found)
    with pytest.raises(InputError, match="rounds is 3 there and 2 here"):
        search_seeds(case, 2, effort, SearchBackend(store=tmp_path / "s"), rounds=2)


def test_a_search_that_found_nothing_says_so_wherever_it_ran():
    """What a worker refuses is the sentence that this process would say, not the name of an error behind a key."""
    failure = Failure(
        kind="refused", error="InfeasibleError", message="the search was stopped before it found anything"
    )
    with pytest.raises(InfeasibleError, match=r"^the search was stopped before it found anything$"):
        stored_search(Finished(key="limit inf, seed 0", failure=failure))
