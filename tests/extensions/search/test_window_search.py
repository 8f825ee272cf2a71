"""Windows of a schedule, solved anew."""

import pytest

from pipeplan.checking import check
from pipeplan.extensions.search import search
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import ListScheduling, earliest, list_schedule
from pipeplan.extensions.search.engines.window_search import WindowSearch, rows_of
from pipeplan.extensions.search.exact.integer_problem import IntegerProblem
from pipeplan.extensions.search.exact.window import Timed, WindowModel
from pipeplan.model import Placement
from tests.extensions.search.problems import problem

TIMES = (10.0, 12.0, 8.0, 1.0)


def listed(case):
    """A list schedule's rows, timed in whole numbers."""
    encoder, integers = Encoder(case), IntegerProblem(case)
    schedule = encoder.decode(list_schedule(encoder, earliest(encoder), 0.0))
    return Timed(integers, rows_of(integers, schedule))


def solved(timed, begin, end):
    from ortools.sat.python.cp_model import CpSolver

    window, solver = WindowModel(timed, begin, end), CpSolver()
    solver.parameters.num_workers, solver.parameters.max_deterministic_time = 1, 2.0
    status = solver.status_name(solver.solve(window.model))
    rows = window.rows({job: solver.value(start) for job, start in window.start.items()})
    return window, status, Timed(timed.integers, rows)


def test_rows_are_timed_as_the_search_times_them():
    case = problem(Placement.v(3), 6, TIMES, 2)
    encoder = Encoder(case)
    candidate = list_schedule(encoder, earliest(encoder), 0.0)
    assert float(listed(case).makespan * IntegerProblem(case).unit) == candidate.value


@pytest.mark.parametrize(("begin", "end"), [(0, 150), (100, 250), (300, 10_000)])
def test_a_window_gets_no_longer_and_stays_within_the_limit(begin, end):
    case = problem(Placement.v(2), 6, TIMES, 1.5)
    timed = listed(case)
    window, status, result = solved(timed, begin, end)
    assert status in ("OPTIMAL", "FEASIBLE")
    assert result.is_complete
    assert result.makespan <= timed.makespan
    free = {job for row in window.free for job in row}
    assert free
    assert all(
        [job for job in row if job not in free] == [job for job in old if job not in free]
        for row, old in zip(result.rows, timed.rows, strict=True)
    )
    schedule = timed.integers.schedule(result.start, set(), "solved")
    check(schedule, memory=case.memory_limit).require_valid()


def test_a_window_over_everything_finds_the_optimum():
    case = problem(Placement.v(2), 3, TIMES, 1)
    timed = listed(case)
    _, status, result = solved(timed, 0, timed.makespan)
    assert status == "OPTIMAL"
    exact = search(case, evaluations=100_000, engines=(ListScheduling(), *_exact()))
    assert exact.optimal
    assert result.makespan * timed.integers.unit == exact.value


def _exact():
    from pipeplan.extensions.search import Exact

    return (Exact(),)


def test_the_engine_betters_a_list_schedule_and_is_the_same_every_time():
    case = problem(Placement.v(3), 8, TIMES, 1.5)
    windows = WindowSearch(annealed=0.0, until=1.0, smallest=0, ops=(40,), tries=6, worth_seconds=0.0)
    result = [search(case, evaluations=200_000, engines=(ListScheduling(), windows)) for _ in range(2)]
    listed_value = search(case, evaluations=200_000, engines=(ListScheduling(),)).value
    assert result[0].value == result[1].value < listed_value
    assert result[0].found_by.startswith("windows from")


def test_it_leaves_alone_what_it_does_not_know():
    for case in (problem(Placement.v(3), 8, TIMES), problem(Placement.v(3), 8, TIMES, 1.5, objective="span")):
        windows = WindowSearch(annealed=0.0, until=1.0, smallest=0, worth_seconds=0.0)
        result = search(case, evaluations=20_000, engines=(ListScheduling(), windows))
        assert not result.found_by.startswith("windows")
