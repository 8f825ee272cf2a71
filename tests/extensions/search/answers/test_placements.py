"""The search over every placement that can win."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.cli import main
from pipeplan.costs import Settings
from pipeplan.extensions.search.answers.options import ParetoOptions, ScheduleSearchOptions
from pipeplan.extensions.search.answers.problems import DEFAULT_CHUNKS, problems_of
from pipeplan.extensions.search.answers.search_words import gain_of
from pipeplan.foundation.errors import InfeasibleError, ShapeError
from pipeplan.model import tolerances

UP = 1 + tolerances.ROUNDING


@st.composite
def shapes(draw) -> dict[str, Any]:
    shape: dict[str, Any] = {"ranks": draw(st.integers(2, 4)), "microbatches": draw(st.integers(2, 7))}
    for name in ("forward_times", "backward_input_times", "backward_weight_times", "p2p_time"):
        shape[name] = draw(st.sampled_from([0.25, 0.5, 1.0, 1.5]))
    if draw(st.booleans()):
        shape["memory_limit"] = f"{draw(st.integers(2, 5))}act"
    if draw(st.booleans()):
        shape["chunks"] = draw(st.integers(2, 3))
    if draw(st.booleans()):
        shape["communication"] = "contended"
    return shape


@given(shapes())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_search_is_never_worse_than_a_schedule_that_a_comparison_lists(shape):
    found = pipeplan.search(**shape, evaluations=50, workers=1)
    listed = [each for each in pipeplan.compare(**shape) if each.fits and not each.needs]
    assert found.fits
    assert found.needs == ()
    assert found.makespan <= min((each.makespan for each in listed), default=float("inf")) * UP
    assert found.search is not None
    placements = found.to_dict()["placements"]
    for each in placements:
        assert each["lower_bound"] <= (each["value"] or float("inf")) * UP
        # A placement that was not searched cannot be shorter than the answer.
        assert each["value"] is not None or each["lower_bound"] >= found.makespan / UP
    assert found.search.placement == found.schedule.placement.name


def test_a_point_of_a_front_is_never_worse_than_a_schedule_that_a_comparison_lists():
    shape: dict[str, Any] = {"ranks": 3, "microbatches": 5, "p2p_time": 0.25}
    front = pipeplan.pareto(**shape, points=3, evaluations=80, workers=1)
    for point in front:
        assert len(point.result.to_dict()["placements"]) > 1
        limit: dict[str, Any] = {} if point.limit is None else {"memory_limit": f"{point.limit}act"}
        every = [each for each in pipeplan.compare(**shape, **limit) if each.fits]
        listed = [each.makespan for each in every if not each.needs]
        assert point.result.needs == ()
        assert point.value <= min(listed, default=float("inf")) * UP
    values = [point.value for point in front]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("placement", ["auto", "v"])
def test_no_point_is_worse_than_a_start_that_is_within_its_limit(placement, tmp_path):
    shape: dict[str, Any] = {"ranks": 3, "microbatches": 6, "p2p_time": 0.25}
    found = pipeplan.search(**shape, placement="v", memory_limit="3act", evaluations=1000, workers=1)
    found.save(tmp_path / "found.csv")
    less: dict[str, Any] = {"points": 3, "evaluations": 60, "workers": 1, "memory_limit": "3act"}
    front = pipeplan.pareto(**shape, **less, placement=placement, start=tmp_path / "found.csv")
    rows = [point.value for point in front if point.limit is None or point.limit >= 3]
    assert rows or front.points[-1].value <= found.makespan * UP
    assert all(value <= found.makespan * UP for value in rows)


def test_one_placement_is_searched_as_it_was_with_no_other():
    shape: dict[str, Any] = {"ranks": 3, "microbatches": 4, "p2p_time": 0.25, "memory_limit": "2act"}
    found = pipeplan.search(**shape, placement="linear", evaluations=300)
    assert found.search is not None
    (only,) = found.to_dict()["placements"]
    assert only == {
        "placement": "linear",
        "chunks": 1,
        "lower_bound": found.search.bound.value,
        "value": found.makespan,
    }


def test_chunks_are_for_the_placements_that_can_have_several_numbers():
    chunks = {problem.placement.name: problem.placement.chunks for problem in problems_of(Settings(ranks=4, chunks=3))}
    assert chunks == {"linear": 1, "loop": 3, "v": 2} | ({"wave": 3} if "wave" in chunks else {})
    alike = [problem.placement.name for problem in problems_of(Settings(ranks=4, chunks=1))]
    assert alike == ["linear", "v"]  # a loop of one chunk is linear


def test_stages_and_ranks_leave_the_placements_of_so_many_stages():
    problems = problems_of(Settings(ranks=4, stages=8))
    assert {problem.placement.name for problem in problems} == {"loop", "v"}
    assert {problem.placement.stages for problem in problems} == {8}


def test_lists_leave_the_placements_that_they_fit():
    """A list per stage fits placements with this number of stages, one per rank all."""
    problems = problems_of(Settings(ranks=4, forward_times=(1.0, 2.0, 1.0, 1.0)))
    assert {problem.placement.name for problem in problems} == {"linear", "loop", "v", "wave"}
    problems = problems_of(Settings(ranks=4, forward_times=(1.0,) * 16))
    assert {problem.placement.name for problem in problems} == {"wave"}


def test_a_model_held_twice_competes_where_copies_are_allowed():
    held: dict[str, Any] = {"ranks": 4, "activation_bytes": 1.0, "static_bytes": 4.0}
    for limit in (None, "9act", 40.0):
        names = {problem.placement.name for problem in problems_of(Settings(**held, memory_limit=limit))}
        assert names == {"linear", "loop", "v", "wave"}
    for options in (ScheduleSearchOptions(allow="copies"), ParetoOptions(allow=("slices", "copies"))):
        assert {problem.placement.name for problem in problems_of(Settings(**held), options)} == set(DEFAULT_CHUNKS)


def test_published_schedules_that_hold_the_model_twice_compete_only_where_such_placements_are_searched():
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 2, "evaluations": 10, "workers": 1}
    dualpipe = pipeplan.simulate("dualpipe", ranks=2, microbatches=2).makespan
    apart = pipeplan.search(**shape)
    assert apart.schedule.placement.copies == 1
    assert apart.makespan > dualpipe
    assert apart.warnings == ()
    assert apart.search is not None
    assert "copies" in {need for more in apart.search.faster_with_more for need in more.needs}
    assert "needs two copies of the model" in gain_of(apart.search, "")[-1]
    front = pipeplan.pareto(**shape, points=2)
    assert {point.result.schedule.placement.copies for point in front} == {1}
    ways: list[dict[str, Any]] = [{"placement": "bidirectional"}, {"start": "dualpipe"}, {"allow": "copies"}]
    for options in ways:
        found = pipeplan.search(**shape, **options)
        assert found.makespan <= dualpipe
        assert found.warnings == ()
    assert any(
        point.result.schedule.placement.copies == 2 for point in pipeplan.pareto(**shape, allow="copies", points=2)
    )


def test_the_best_of_any_placement_is_named_only_where_others_were_looked_at(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.answers.problems.ORDERS_UP_TO", 1)
    found = pipeplan.search(ranks=2, microbatches=4, evaluations=0)
    assert found.search is not None
    assert found.search.best_published is not None
    assert found.search.best_published_anywhere is None
    assert "the best published schedule of this placement" in gain_of(found.search, "")[0]


def test_of_limits_that_rule_out_every_placement_the_nearest_is_named():
    with pytest.raises(InfeasibleError, match="the least feasible limit") as raised:
        pipeplan.search(ranks=4, microbatches=4, memory_limit="0.1act")
    least = float(str(raised.value).split("alone needs ")[1].split()[0])
    assert pipeplan.search(ranks=4, microbatches=4, memory_limit=f"{least}act", evaluations=0).fits


def test_a_start_brings_its_placement(capsys):
    found = pipeplan.search(start="chimera", ranks=4, microbatches=4, evaluations=20)
    assert "bidirectional" in {each["placement"] for each in found.to_dict()["placements"]}
    with pytest.raises(ShapeError, match="cannot start from chimera"):
        pipeplan.search(start="chimera", ranks=4, microbatches=4, evaluations=20, placement="linear")
    assert main(["search", "-p", "3", "-m", "4", "--evaluations", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["placements"]


def test_slices_that_are_given_are_those_of_the_answer():
    for slices in (1, 2):
        found = pipeplan.search(ranks=2, microbatches=4, slices=slices, evaluations=20)
        assert found.schedule.slices == slices


@pytest.mark.parametrize("communication", ["edge", pytest.param("streams", marks=pytest.mark.slow)])
def test_a_budget_of_evaluations_is_a_limit_on_all_placements_together(communication):
    times: dict[str, Any] = {"forward_times": 2, "backward_input_times": 3, "backward_weight_times": 1, "p2p_time": 0.2}
    result = pipeplan.search(ranks=4, microbatches=8, **times, communication=communication, evaluations=300, workers=1)
    assert len(result.to_dict()["placements"]) > 2
    assert result.to_dict()["evaluations"] <= 300
