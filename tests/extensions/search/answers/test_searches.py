import json
import re
from typing import Any

import msgspec
import pytest

import pipeplan
from pipeplan.answers.parts import number
from pipeplan.answers.simulating.result import result_of
from pipeplan.cli import main
from pipeplan.costs import Settings
from pipeplan.extensions import search as solver
from pipeplan.extensions.search.answers.problems import placement_named, problem_of, published_here
from pipeplan.extensions.search.answers.search_record import PublishedSchedule, SearchedResult, SearchRecord
from pipeplan.extensions.search.answers.search_words import costs_in_words, gain_of
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.foundation.errors import InfeasibleError, InputError, ShapeError, UnknownNameError
from pipeplan.foundation.readable import percent
from pipeplan.foundation.records import holding
from pipeplan.simulation import Bound, Simulation

SHAPE: dict[str, Any] = {"ranks": 3, "microbatches": 4, "p2p_time": 0.25}


def test_a_search_is_a_result_like_any_other():
    found = pipeplan.search(**SHAPE, memory_limit="2act", evaluations=2000)
    assert found.fits
    assert found.memory.peak_activation.max() <= 2
    document = found.to_dict()
    assert {"found_by", "optimal", "evaluations", "lower_bound", "gap"} <= document.keys()
    assert document["lower_bound"] <= document["makespan"]
    assert pipeplan.simulate(found.schedule, **SHAPE).makespan == pytest.approx(found.makespan)


def test_the_json_of_a_result_has_every_field_of_its_search():
    fields = [(field.encode_name, field.type, field.default) for field in msgspec.structs.fields(SearchedResult)]
    search = [
        (field.encode_name, field.type | msgspec.UnsetType, msgspec.UNSET)
        for field in msgspec.structs.fields(SearchRecord)
    ]
    assert fields[-len(search) :] == search


def test_a_search_with_a_time_limit_says_that_it_ran_as_plain_python(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.answers.search_words.is_native", lambda: False)
    hard = SHAPE | {"memory_limit": "2act", "placement": "linear", "forward_times": (1.0, 1.3, 0.7), "p2p_time": 0.3}
    timed, counted = (pipeplan.search(**hard, evaluations=50, seconds=seconds) for seconds in (30.0, None))
    (warning,) = [warning for warning in timed.warnings if "plain Python" in warning]
    assert f"tried only {timed.search.evaluations:,} schedules in" in warning
    assert not [warning for warning in counted.warnings if "plain Python" in warning]


@pytest.mark.parametrize(
    ("settings", "options", "error", "says"),
    [
        ({"memory_limit": "0.5act"}, {}, InfeasibleError, "least feasible limit"),
        ({}, {"placement": "vee"}, UnknownNameError, "did you mean 'wave'"),
        ({}, {"placement": "0,x"}, ShapeError, "the rank of each stage such as 0,1,1,0"),
        ({}, {"placement": "v", "start": ("1f1b",)}, ShapeError, "cannot start from 1f1b"),
        ({"memory_limit": ["2act", "2act"]}, {}, InputError, "2 values for 3 ranks"),
        ({}, {"seconds": -1.0}, InputError, "at least 0"),
        ({"chunks": 3}, {"placement": "v"}, ShapeError, "2 chunk"),
    ],
)
def test_what_cannot_be_searched(settings, options, error, says):
    with pytest.raises(error, match=says):
        pipeplan.search(**(SHAPE | settings), **({"evaluations": 10} | options))


def test_placements_by_name_and_by_ranks():
    assert placement_named("wave", Settings(ranks=2)).rank_of == ((0, 1, 1, 0, 0, 1, 1, 0),)
    assert placement_named("0,1,1,0", Settings()).name == "v"
    assert placement_named("0,0,1", Settings()).name == "custom"


def test_the_command_and_its_front(tmp_path, capsys):
    best, front = tmp_path / "best.csv", tmp_path / "front.json"
    line = f"search -p 3 -m 4 --memory-limit 2act --evaluations 500 --json -o {best}"
    assert main(line.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["simulate", str(best), "--json", "--no-visualization"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == document["makespan"]
    assert (
        main(f"search -p 3 -m 4 --pareto --points 3 --evaluations 600 -o {front} -o {tmp_path / 'f.svg'}".split()) == 0
    )
    record = json.loads(front.read_text())
    values = [point["value"] for point in record["points"]]
    assert values == sorted(values, reverse=True)
    for mark in record["published"]:
        assert min(point["value"] for point in record["points"] if point["peak"] <= mark["peak"]) <= mark["value"]
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("objective", ["makespan", "span"])
def test_the_bound_of_a_search_is_the_best_one_proven_wherever_it_stands(tmp_path, capsys, objective):
    found = pipeplan.search(
        ranks=4, microbatches=6, memory_limit="2act", evaluations=0, objective=objective, placement="linear"
    )
    proven = Bound(found.search.objective.value, "no schedule is better: a proof")
    assert found.bound.value < proven.value
    search = holding(msgspec.structs.replace(found.search, optimal=True), **vars(found.search) | {"bound": proven})
    result = result_of(Simulation(found.timeline, found.costs, found.limits), limits=found.limits, search=search)
    document, gap = result.to_dict(), result.makespan / proven.value - 1
    assert result.bound == proven
    assert result.gap == pytest.approx(gap)
    assert (document["lower_bound"], document["gap"], document["optimal"]) == (proven.value, result.gap, True)
    assert "; it is proven optimal for this placement" in result.headline
    assert repr(result) == f"<Result: {result.headline}>"
    result.print()
    table = capsys.readouterr().out
    assert re.search(rf"(?m)^lower bound +{re.escape(number(proven.value))} on this placement, unsliced", table)
    assert "(no schedule is better: a proof)" in " ".join(table.split())
    assert re.search(rf"(?m)^gap +{re.escape(percent(gap))}", table)
    assert objective == "makespan" or "least longest span" in table
    result.save(tmp_path / "best.json")
    record = json.loads((tmp_path / "best.json").read_text())
    assert (record["lower_bound"], record["gap"]) == (proven.value, result.gap)


def test_a_search_says_what_it_gained_over_the_best_published_schedule_that_fits(capsys):
    """Under a limit of 3 activations, zb-auto is the best linear one, a search shortens it, and V schedules are better."""
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "memory_limit": "3act"}
    published = [result for result in pipeplan.compare(**shape) if result.fits and not result.needs]
    linear = min(result.makespan for result in published if result.schedule.placement.name == "linear")
    found = pipeplan.search(**shape, placement="linear", evaluations=50_000)
    search = found.search
    assert search.best_published.placement == "linear"
    assert search.best_published.value <= linear
    assert search.gain == pytest.approx(1 - found.makespan / search.best_published.value)
    assert search.gain > 0.05
    assert search.best_published_anywhere.value == min(result.makespan for result in published)
    document = found.to_dict()
    assert document["best_published"] == search.best_published.to_dict()
    assert (document["gain"], document["gain_anywhere"]) == (search.gain, search.gain_anywhere)
    gained = (
        f"{percent(search.gain)} shorter than {search.best_published.schedule}, the best published schedule of this"
    )
    assert f"{gained} placement that fits 3 activations" in found.headline
    elsewhere = search.best_published_anywhere
    assert found.headline.endswith(f"on another placement {elsewhere.schedule} takes {number(elsewhere.value)}")
    first, second, more = gain_of(search, "")
    assert "the best published schedule of this placement that fits" in first
    assert f"is {percent(search.gain)} shorter than {search.best_published.schedule}" in first
    assert search.best_published_anywhere.schedule in second
    assert more.startswith("Faster with more: mepipe, ")
    found.print(verbose=True)
    table = " ".join(capsys.readouterr().out.split())
    assert f"gain {first} {second} {more}" in table
    assert "costs forward 1, backward 2 (1 for inputs, 1 for weights) of a rank; transfer none" in table
    assert "memory limit 3 activations on every rank" in table


def test_a_search_that_gains_nothing_says_why():
    proven = pipeplan.search(ranks=4, microbatches=8, placement="v", memory_limit="3act", evaluations=100)
    assert gain_of(proven.search, "") == (
        "No gain over v-half (26.50), the best published schedule of any placement that fits: proven optimal "
        "for this placement.",
        "Faster with more: mepipe, 24.38, needs sequence slices.",
    )
    assert proven.search.gain == 0
    objective = msgspec.structs.replace(proven.search.objective, lower_bound=25.0)
    unproven = msgspec.structs.replace(proven.search, optimal=False, objective=objective)
    assert "at most 5.7% is possible, and a search of 60 seconds may find it" in gain_of(unproven, "")[0]
    alone = pipeplan.search(ranks=4, microbatches=8, placement="v", memory_limit="1act", evaluations=100)
    assert alone.search.gain is None
    assert alone.to_dict()["best_published"] is None
    assert gain_of(alone.search, "")[0] == (
        "No published schedule of this placement fits with its defaults; v-min, which needs the least, takes 2 activations."
    )
    other = pipeplan.search(ranks=4, microbatches=8, forward_times=(1, 2, 1, 1), evaluations=100)
    assert other.search.found_by == "hanayo"  # with more chunks than its default
    assert gain_of(other.search, "")[0] == "No published schedule of this placement is possible with its defaults."


def test_a_search_that_did_not_come_to_try_them_is_still_held_against_all_that_is_published():
    problem = problem_of(Settings(ranks=3, microbatches=6, memory_limit="2act"))
    found = solver.search(problem, evaluations=100)
    assert found.every_published
    assert found.published is not None
    encoder = Encoder(problem)
    one_by_one = encoder.decode(encoder.from_order(encoder.one_by_one()))
    stopped = solver.search(problem, evaluations=100, start=one_by_one, engines=())
    assert stopped.every_published
    assert stopped.published is not None
    assert stopped.value == stopped.published.value
    assert published_here(stopped) == published_here(found)
    assert published_here(found) == PublishedSchedule(
        schedule=found.published.name, placement="linear", value=found.published.value
    )


@pytest.mark.slow
def test_under_each_limit_of_a_front_the_best_published_one_is_as_good_as_a_comparison_has_it():
    shape: dict[str, Any] = {"ranks": 3, "microbatches": 6, "p2p_time": 0.2}
    for point in pipeplan.pareto(**shape, points=3, evaluations=100):
        limit = None if point.limit is None else f"{point.limit}act"
        compared = pipeplan.compare(**shape, memory_limit=limit)
        fitting = [each.makespan for each in compared if each.fits and not each.needs]
        anywhere = point.result.search.best_published_anywhere
        assert (anywhere is None) == (not fitting)
        assert anywhere is None or anywhere.value <= min(fitting) * (1 + 1e-9)


def test_a_transfer_that_is_short_beside_the_ops_is_not_written_as_none():
    costs = Settings(p2p_time=0.004).costs(placement_named("linear", Settings(ranks=2)))
    assert costs_in_words(costs, placement_named("linear", Settings(ranks=2))).endswith("transfer 0.004")


def test_a_front_says_what_each_point_gains(capsys):
    front = pipeplan.pareto(ranks=3, microbatches=4, placement="v", points=3, evaluations=3000)
    for point, row in zip(front, front.to_frame().to_dict("records"), strict=True):
        published = point.result.search.best_published
        fitting = [mark.value for mark in front.published if point.limit is None or mark.peak <= point.limit]
        assert (published is None) == (not fitting)
        if published is not None:
            assert published.value <= min(fitting)
            assert row["gain"] == pytest.approx(1 - point.value / published.value)
    for point, record in zip(front, front.to_dict()["points"], strict=True):
        assert record["result"]["lower_bound"] == point.search.bound.value
        assert record["result"]["gap"] == pytest.approx(point.search.objective.gap)
    assert [row["peak"] for row in front.to_frame().to_dict("records")] == [point.peak for point in front]
    front.print(verbose=True)
    table = capsys.readouterr().out
    assert " ".join(table.split()).startswith(front.headline)
    assert re.search(r"(?m)^gain +", table)
    most = max(point.gain for point in front if point.gain is not None)
    sentence = r"From [\d.]+ activations? to [\d.]+ activations the step falls from [\d.]+ to [\d.]+, up to "
    assert re.fullmatch(f"{sentence}{percent(most)} shorter than the best published schedule", front.headline)
    assert repr(front) == f"<ParetoFront: {front.headline}>"


def test_rounding_makes_no_gap():
    assert Bound(70.19999999999999, "").gap_of(70.19999999999997) == 0
    assert Bound(70.19999999999997, "").gap_of(70.19999999999999) == 0
    assert Bound(70.0, "").gap_of(71.0) == pytest.approx(1 / 70)


def test_a_bound_on_a_span_that_says_less_than_the_one_on_the_makespan_is_not_taken():
    result = pipeplan.search(**SHAPE, evaluations=10, objective="span")
    assert result.search.bound.value < result.bound.value


def test_a_start_of_slices_needs_the_setting():
    start = pipeplan.simulate("mepipe", ranks=2, microbatches=2).schedule
    with pytest.raises(ShapeError, match="2 microbatches, unsliced; set slices to 4"):
        pipeplan.search(start=start, ranks=2, microbatches=2, chunks=2, placement="loop", seconds=1)


def test_a_search_that_overlaps_none_says_so_and_takes_no_start_with_pairs(capsys):
    options: dict[str, Any] = {"ranks": 2, "microbatches": 2, "overlap_times": 2, "placement": "linear"}
    options["evaluations"] = 50
    result = pipeplan.search(leave="overlap", **options)
    assert "without overlapped pairs" in result.bound_covers
    result.print(verbose=True)
    assert "this placement without overlapped pairs is shorter" in " ".join(capsys.readouterr().out.split())
    options["microbatches"] = 8
    plain, left = (pipeplan.search(leave="overlap", **(options | {"overlap_times": pair})) for pair in (None, 2))
    assert plain.lower_bound == left.lower_bound
    with pytest.raises(ShapeError, match="cannot start from 1f1b-overlap: it overlaps forwards"):
        pipeplan.search(leave="overlap", start="1f1b-overlap", **options)
