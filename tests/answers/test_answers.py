"""What every answer can do: be printed, saved, shown in a notebook, and turned into a dictionary or a frame."""

import copy
import json
import pickle
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest

import pipeplan
from pipeplan.answers.answers import AnswerRecord
from pipeplan.extensions.search.answers.search_record import SearchedResult
from pipeplan.foundation.errors import InputError, MissingExtraError, UnknownNameError

SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 3}


@cache
def answers() -> dict[str, AnswerRecord]:
    result = pipeplan.simulate("1f1b", **SHAPE)
    return {
        "simulate": result,
        "compare": pipeplan.compare("1f1b", "zbv", **SHAPE),
        "explain": pipeplan.explain("1f1b", **SHAPE),
        "search": pipeplan.search(evaluations=50, **SHAPE),
        "pareto": pipeplan.pareto(evaluations=100, points=2, **SHAPE),
        "check": pipeplan.check("1f1b", memory_limit="1act", **SHAPE),
        "diff": pipeplan.diff(result, result),
        "schedules": pipeplan.schedules(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulate", "compare", "explain", "search", "pareto", "check", "diff", "schedules"])
def test_every_answer_can_be_looked_at(name, capsys, tmp_path):
    answer = answers()[name]
    assert json.loads(json.dumps(answer.to_dict())) == answer.to_dict()
    answer.print()
    assert len(capsys.readouterr().out.splitlines()) > 3
    assert len(answer.to_frame()) > 0
    assert repr(answer).startswith(f"<{type(answer).__name__}")
    assert answer._repr_html_().startswith(("<img", "<pre>", "<p><strong>"))
    assert (answer._repr_png_() or b"\x89PNG").startswith(b"\x89PNG")
    answer.save(str(tmp_path / "answer.json"))
    assert json.loads((tmp_path / "answer.json").read_text())


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("simulate", "simulate 1f1b -p 2 -m 3"),
        ("compare", "compare 1f1b zbv -p 2 -m 3"),
        ("explain", "explain 1f1b -p 2 -m 3"),
        ("check", "check 1f1b -p 2 -m 3 --memory-limit 1act"),
        ("schedules", "schedules"),
    ],
)
def test_printing_and_the_dictionary_are_the_commands(name, line, capsys):
    from pipeplan.cli import main

    answers()[name].print()
    printed = capsys.readouterr().out
    picture = [] if name in ("check", "schedules") else ["--no-visualization"]
    main([*line.split(), *picture])
    assert capsys.readouterr().out == printed
    main([*line.split(), *picture, "--json"])
    assert json.loads(capsys.readouterr().out) == answers()[name].to_dict()


def test_a_result_is_one_record_everywhere(tmp_path):
    """Of ``to_dict()``, ``simulate --json`` (see above), a file, the schema and the web API."""
    required = {field.encode_name for field in msgspec.structs.fields(pipeplan.Result) if field.required}
    every = {field.encode_name for field in msgspec.structs.fields(SearchedResult)}
    record, outcome = answers()["simulate"].to_dict(), answers()["search"].to_dict()
    longer = pipeplan.simulate("1f1b", ranks=2, microbatches=2, step_time=3.0).to_dict()
    assert record.keys() == required
    assert outcome.keys() == every - {"step", "least_gap", "peak_parameter_bytes", "sharding", "layers_per_stage"}
    assert longer.keys() == required | {"step"}
    assert longer["step"] == {"with_barrier": longer["makespan"] + 3, "without_barrier": max(longer["spans"]) + 3}
    for answer, expected, kind in (
        (answers()["simulate"], record, pipeplan.Result),
        (answers()["search"], outcome, SearchedResult),
    ):
        assert msgspec.convert(expected, kind).to_dict() == expected
        answer.save(tmp_path / "result.json")
        written = json.loads((tmp_path / "result.json").read_text())
        assert {name: written[name] for name in expected} == expected


def test_frames():
    assert list(answers()["simulate"].to_frame().columns)[:4] == ["schedule", "rank", "kind", "stage"]
    assert len(answers()["simulate"].to_frame()) == 12
    assert answers()["compare"].to_frame().set_index("schedule").makespan["zbv"] == answers()["compare"]["zbv"].makespan  # type: ignore[index]
    assert answers()["check"].to_frame().rule.tolist() == ["memory"]
    assert set(answers()["schedules"].to_frame().name) == {outcome.name for outcome in pipeplan.schedules()}


def test_frames_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[pandas\]'"):
        answers()["simulate"].to_frame()


def test_results_of_a_comparison_have_names():
    table = pipeplan.compare("1f1b", "zbv-heuristic", "zbv", memory_limit="3act", **SHAPE)
    assert table["ZBVZeroBubble"] is table["zbv"]
    assert "zbv" in table
    assert "gpipe" not in table
    with pytest.raises(UnknownNameError, match="'zbw'; did you mean 'zbv'"):
        table["zbw"]
    refused = pipeplan.compare(ranks=3, microbatches=4)
    with pytest.raises(InputError, match=r"dualpipe is not possible here: .*even number"):
        refused["dualpipe"]


def test_lists_are_printed_pickled_and_indexed_alike(tmp_path):
    """By place, slice, name and alias, as a comparison is; plans and estimates, which hold a GPU, are pickled too."""
    row = {"model": "llama3-8b", "cluster": "h100-sxm:8", "global_batch": 8, "sequence": 4096}
    lists: dict[str, Any] = {
        "dualpipev": pipeplan.schedules(),
        "megatron-a100": pipeplan.machines(),
        "LLaMA3_70B": pipeplan.models(),
        "H100": pipeplan.gpus(),
        "expert-grid": pipeplan.review_rules(),
        "ZBVZeroBubble": answers()["compare"],
        "mine": pipeplan.estimate({"rows": [{"id": "mine"} | row]}),
        "": answers()["pareto"],
        "3": pipeplan.sweep("1f1b", ranks=[2, 3], microbatches=4),
    }
    for name, items in lists.items():
        assert repr(items).startswith(f"<{type(items).__name__}")
        for again in (pickle.loads(pickle.dumps(items)), copy.deepcopy(items)):
            assert again.to_dict() == items.to_dict()
            assert list(map(repr, again)) == list(map(repr, items))
        assert items[0] is next(iter(items))
        assert items[-1:] == (items[len(items) - 1],)
        assert items[0] in items
        assert "nonsense" not in items
        with pytest.raises(IndexError):
            items[len(items)]
        for wrong in ("nonsense", 1.5, True, None):
            with pytest.raises(InputError):
                items[wrong]
        if items.name_attribute:
            assert items[name] in items
            assert name in items
    assert pickle.loads(pickle.dumps(lists["dualpipev"]))[0] is lists["dualpipev"][0]
    assert copy.copy(replace(lists["dualpipev"][0], name="mine")).name == "mine"
    assert lists["H100"][0].name == lists["H100"][0].gpu.name
    with pytest.raises(UnknownNameError, match="unknown GPU 'h100-sx'; did you mean 'h100-sxm'"):
        lists["H100"]["h100-sx"]
    plan = pipeplan.plan(model="llama3-8b", cluster="h100-sxm:8", global_batch=8, sequence=4096, seconds=1, workers=1)
    assert pickle.loads(pickle.dumps(plan)).to_dict() == plan.to_dict()


def test_answers_are_sources():
    result = answers()["simulate"]
    assert isinstance(result, pipeplan.Result)
    assert pipeplan.check(result).valid
    again = pipeplan.simulate(result)
    assert again.makespan == result.makespan
    assert "simulated before" in again.warnings[0]
    assert pipeplan.export(result, to="torch-csv").text == pipeplan.export("1f1b", to="torch-csv", **SHAPE).text


def test_an_export_can_be_saved(tmp_path, capsys):
    export = pipeplan.export("1f1b", to="torch-csv", **SHAPE)
    export.save(str(tmp_path / "plan.csv"))
    assert pipeplan.read_schedule(str(tmp_path / "plan.csv")) == pipeplan.simulate("1f1b", **SHAPE).schedule
    export.print()
    assert capsys.readouterr().out == export.text == str(export)
    assert export.to_dict() == {"text": export.text, "files": {}, "warnings": []}


def test_names_are_no_markup_in_a_notebook(tmp_path):
    path = tmp_path / "[bold]plan<b>.csv"
    path.write_text("0F0,0F0,0B0\n")
    html = pipeplan.check(path)._tables_as_html()
    assert "[bold]plan&lt;b&gt;.csv" in html


def test_a_table_in_a_notebook_is_shown_once(monkeypatch):
    """Where rich finds a notebook, it displays what is printed, even if that is only to be turned into HTML."""
    displayed: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: displayed.append(parts))
    assert "zbv" in pipeplan.schedules("zbv")._repr_html_()
    assert displayed == []
