"""Which published schedules take part, and which is the best: every door gives the answer of a comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import pipeplan
from pipeplan.answers.comparing import comparison
from pipeplan.answers.comparing.columns import BoundsByNeeds
from pipeplan.answers.published import allowed_needs, kind_in_words
from pipeplan.cli import main
from pipeplan.extensions.web.mcp.tools import answer_of
from pipeplan.extensions.web.replies import compare as web_compare
from pipeplan.extensions.web.replies import explain as web_explain
from pipeplan.extensions.web.requests import CompareIn, ExplainIn, FileIn
from pipeplan.extensions.web.searches import FrontIn, SearchIn, make_front, make_search
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.model import needs_of
from pipeplan.strategies import STRATEGIES
from tests.cli.shell import words_of

SPLIT = {"forward_times": 3.0, "backward_input_times": 2.5, "backward_weight_times": 1.5}
IN_BYTES = {"activation_bytes": 4.0, "static_bytes": 10.0}
SHAPES: list[dict[str, Any]] = [
    {"ranks": 2, "microbatches": 2},
    {"ranks": 2, "microbatches": 4},
    {"ranks": 2, "microbatches": 6, "memory_limit": "1.5act"},
    {"ranks": 3, "microbatches": 5},
    {"ranks": 3, "microbatches": 6, "memory_limit": "2act"},
    {"ranks": 4, "microbatches": 4},
    {"ranks": 4, "microbatches": 8},
    {"ranks": 4, "microbatches": 8, "memory_limit": "3act"},
    {"ranks": 4, "microbatches": 8, "memory_limit": "2act"},
    {"ranks": 4, "microbatches": 7, "p2p_time": 0.2},
    {"ranks": 4, "microbatches": 12, "p2p_time": 0.1, "memory_limit": "3.5act"},
    {"ranks": 2, "microbatches": 4, "forward_times": 1.0, "backward_times": 2.0, "p2p_time": 0.5},
    {"ranks": 4, "microbatches": 6, **SPLIT},
    {"ranks": 4, "microbatches": 8, **SPLIT, "memory_limit": "3act"},
    {"ranks": 4, "microbatches": 8, **SPLIT, **IN_BYTES, "memory_limit": 26.0},
    {"ranks": 2, "microbatches": 8, **IN_BYTES, "memory_limit": 17.0},
    {"ranks": 4, "microbatches": 4, "allow": ["slices"]},
    {"ranks": 4, "microbatches": 4, "allow": ["copies"], "p2p_time": 0.1},
    {"ranks": 2, "microbatches": 4, "allow": ["slices", "copies", "recompute"], "memory_limit": "1.5act"},
    {"ranks": 2, "microbatches": 3, "slices": 2},
]


def told(question: dict[str, Any]) -> dict[str, Any]:
    """The question as requests of the web app have it."""
    return {
        "settings": {name: value for name, value in question.items() if name != "allow"},
        "allow": question.get("allow", []),
    }


def streamed(make: Any, request: Any) -> list[dict[str, Any]]:
    lines: list[bytes] = []
    make(request, lines.append)
    return [json.loads(line) for line in lines]


def require_no_schedule_below_its_bound(table: pipeplan.Comparison, answer: pipeplan.Result) -> None:
    """No schedule of the kind that a bound covers is shorter: neither that of a comparison, nor that of another answer."""
    covered = [entry for entry in table if entry.fits and set(entry.needs) <= {*table.allowed, *table.best.needs}]
    assert all(entry.makespan >= table.least.value * (1 - 1e-9) for entry in covered)
    assert all((entry.least_gap or 0) >= 0 for entry in table)
    assert ("without slices" if answer.slices == 1 else f"in {answer.slices} slices") in answer.bound_covers
    alike = (
        entry for entry in table if (entry.placement, entry.needs) == (answer.placement, answer.needs) and entry.fits
    )
    assert all(entry.makespan >= answer.lower_bound * (1 - 1e-9) for entry in alike if entry.slices == answer.slices)


def test_every_door_names_the_best_published_schedule_of_a_comparison_and_what_is_faster_with_more(capsys, tmp_path):
    for number, shape in enumerate(SHAPES):
        table = pipeplan.compare(**shape)
        allowed = set(table.allowed)
        eligible = [entry for entry in table if entry.fits and set(entry.needs) <= allowed]
        best = min(eligible, key=lambda entry: entry.makespan, default=None)
        name = None if best is None else table.best.name
        assert best is None or table.best.makespan == pytest.approx(best.makespan)
        more = table.to_dict()["faster_with_more"]
        # The shell and an agent's tool.
        main(["compare", "--json", *words_of(shape, tmp_path)])
        record = json.loads(capsys.readouterr().out)
        assert record == answer_of("compare", {**shape, "detail": True}, 60) == table.to_dict()
        # The web app.
        reply = json.loads(web_compare(CompareIn(**told(shape))).body)
        assert (reply["headline"], reply["least_bound"]) == (record["headline"], record["least_bound"])
        assert [entry["schedule"] for entry in reply["results"]] == [entry.name for entry in table]
        # Explanations.
        source = "seq1f1b" if "slices" in shape else "gpipe"
        explanation = pipeplan.explain(source, **shape)
        schedules = [what for what in explanation.what_ifs if what.kind == "schedule" and what.fits]
        named = explanation.result.fits and not schedules
        assert ((source if named else schedules[0].change) if named or schedules else None) == name
        assert explanation.to_dict()["explain"]["faster_with_more"] == more
        if number % 2:  # the page asks the same function: the half of the shapes shows that it passes everything on
            explained = json.loads(web_explain(ExplainIn(**told(shape), schedules=[source])).body)
            assert explained["explain"]["what_ifs"] == explanation.to_dict()["explain"]["what_ifs"]
        require_no_schedule_below_its_bound(table, explanation.result)
        # Searches, with and without a placement.
        for placement in ("auto", "v") if number % 4 == 0 else ("auto", "v")[number % 2 :][:1]:
            result = pipeplan.search(**shape, placement=placement, evaluations=20)
            require_no_schedule_below_its_bound(table, result)
            outcome = result.search
            assert outcome is not None
            against = outcome.best_published_anywhere
            assert (against and against.schedule) == name
            assert against is None or against.value == pytest.approx(table.best.makespan)
            shorter = [entry for entry in more if entry["value"] < outcome.objective.value * (1 - 1e-9)]
            assert [entry.schedule for entry in outcome.faster_with_more] == [entry["schedule"] for entry in shorter]


def test_a_front_and_the_searches_of_the_web_app_name_it_too():
    for shape in (SHAPES[2], SHAPES[18]):
        table = pipeplan.compare(**shape)
        without = {name: value for name, value in shape.items() if name != "memory_limit"}
        for point in pipeplan.pareto(**without, points=2, evaluations=20):
            limit = None if point.limit is None else f"{point.limit}act"
            there = pipeplan.compare(**without, memory_limit=limit)
            fits = there.best.fits and not set(there.best.needs) - set(there.allowed)
            assert (point.best_published and point.best_published.schedule) == (there.best.name if fits else None)
        outcome = streamed(make_search, SearchIn(**told(shape), seconds=0.01))[-1]["found"]
        assert outcome["best_published_anywhere"]["schedule"] == table.best.name
        front = streamed(make_front, FrontIn(**told(shape), seconds=0.02, points=2))[-1]["front"]
        marks = {mark["schedule"] for mark in front["published"]}
        assert marks <= {name for name, rule in STRATEGIES.items() if set(rule.needs) <= set(table.allowed)}
        assert marks


def test_needs_are_those_of_the_schedule_wherever_it_comes_from(tmp_path):
    for rule in STRATEGIES.values():
        result = pipeplan.simulate(rule, ranks=2, microbatches=4)
        assert rule.needs == needs_of(result.schedule) == result.needs
        path = tmp_path / f"{rule.name}.json"
        pipeplan.save(result.schedule, path)
        assert pipeplan.simulate(path).needs == rule.needs
    assert [name for name, rule in STRATEGIES.items() if "copies" in rule.needs] == ["dualpipe", "chimera", "bitpipe"]
    assert pipeplan.simulate("mepipe", ranks=2, microbatches=4, slices=1).needs == ()
    assert pipeplan.simulate("seq1f1b", ranks=2, microbatches=4, recompute="all").needs == ("slices", "recompute")


def test_all_schedules_take_part_group_by_group():
    table = pipeplan.compare(ranks=4, microbatches=8)
    assert {result.name for result in table} | table.refused.keys() == set(STRATEGIES)
    groups = [result.needs for result in table]
    assert list(dict.fromkeys(groups)) == [(), ("slices",), ("copies",), ("recompute",)]
    assert groups == sorted(groups, key=list(dict.fromkeys(groups)).index)
    for group in set(groups):
        times = [result.makespan for result in table if result.needs == group]
        assert times == pytest.approx(sorted(times))
    allowing = pipeplan.compare(ranks=4, microbatches=8, allow="slices,copies")
    assert allowing.best.makespan == min(entry.makespan for entry in table if "recompute" not in entry.needs)
    with pytest.raises(UnknownNameError, match="unknown need 'slice'"):
        pipeplan.compare(ranks=4, microbatches=8, allow="slice")


def test_the_best_of_each_group_is_listed_even_where_rows_are_cut(monkeypatch, capsys):
    monkeypatch.setattr(comparison, "MOST_ROWS", 4)
    table = pipeplan.compare(ranks=4, microbatches=8)
    table.print()
    printed = capsys.readouterr().out
    firsts = {result.needs: result.name for result in reversed(table.results)}
    assert len(firsts) == 4
    assert all(f"\n{name} " in printed for name in firsts.values())
    assert all(
        f"\nwith {words}:" in printed for words in ("sequence slices", "two copies of the model", "recomputation")
    )


def test_schedules_that_are_named_may_need_anything_unless_the_question_says_otherwise():
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8}
    assert pipeplan.compare("1f1b", "mepipe", **shape).best.name == "mepipe"
    assert pipeplan.compare("1f1b", "mepipe", **shape, allow=()).best.name == "1f1b"
    explanation = pipeplan.explain("seq1f1b", **shape)
    assert explanation.helping[0].change == "mepipe"


def test_the_headline_says_when_no_schedule_needs_as_little_as_is_allowed():
    only = pipeplan.compare("mepipe", ranks=4, microbatches=8, allow="copies")
    assert only.headline.startswith("Only with sequence slices is a schedule possible: mepipe takes")


def test_settings_that_slice_or_recompute_allow_it_and_say_so():
    for setting, note in (
        ({"slices": 4}, "slices 4 allows schedules that need sequence slices"),
        ({"recompute": "all"}, "recompute all allows schedules that need recomputation"),
    ):
        shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, **setting}
        table = pipeplan.compare(**shape)
        assert note in table.notes
        assert note in pipeplan.explain("seq1f1b", **shape).notes
        assert not set(table.best.needs) - set(table.allowed)
    assert allowed_needs("copies", pipeplan.Settings(slices=1)) == {"copies"}


def test_a_file_of_the_web_app_makes_no_other_schedule_join():
    text = pipeplan.export("zb-h1", "torch-csv", ranks=2, microbatches=4).text
    shape: dict[str, Any] = {"settings": {"ranks": 2, "microbatches": 4}, "allow": []}
    whole = json.loads(web_compare(CompareIn(**shape)).body)
    files = [FileIn(name="mine.csv", text=text)]
    beside = json.loads(web_compare(CompareIn(**shape, schedules=list(STRATEGIES), files=files)).body)
    names = [entry["schedule"] for entry in whole["results"]]
    assert [entry["schedule"] for entry in beside["results"] if entry["schedule"] != "mine.csv"] == names
    assert (whole["headline"], whole["least_bound"]) == (beside["headline"], beside["least_bound"])


def test_a_bound_says_what_it_covers():
    assert kind_in_words((), {1}) == "with one copy of the model, without slices and without recomputation"
    assert kind_in_words(("slices", "copies"), {1, 2, 4}) == "in 1, 2 or 4 slices and without recomputation"
    assert kind_in_words(("copies", "recompute"), {1}) == "without slices"
    table = pipeplan.compare("v-half", "zb-auto", ranks=4, microbatches=8, memory_limit="3act")
    kind, within = kind_in_words((), {1}), "within the memory limit"
    assert (
        table.least.covers == f"schedules {kind}, on the placements v or linear, with 1 or 2 chunks per rank, {within}"
    )
    limited = replace(pipeplan.Settings(ranks=4, microbatches=8), memory_limit="3act")
    assert pipeplan.simulate("v-half", settings=limited).bound_covers == (
        "schedules on this placement, without slices, within the memory limit"
    )


def test_the_least_bound_of_thousands_of_results_is_computed_once_per_set_of_needs(monkeypatch):
    results = pipeplan.compare("1f1b", "zbv", "seq1f1b", ranks=2, microbatches=4).results * 1000
    calls = []
    covered = BoundsByNeeds.covered

    def counted(bounds: BoundsByNeeds, result: pipeplan.Result) -> list[pipeplan.Result]:
        calls.append(result)
        return covered(bounds, result)

    monkeypatch.setattr(BoundsByNeeds, "covered", counted)
    bounds = BoundsByNeeds(results, frozenset())
    assert len({bounds.gap(result) for result in results}) == 3
    assert len(calls) == len({result.needs for result in results}) == 2
