"""The JSON API: the same figures as from Python, and a field with a sentence for everything that is wrong."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any
from urllib.parse import unquote
from zlib import decompress

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.outputs import all_formats, export_formats
from pipeplan.costs import Settings
from pipeplan.extensions.web import schedules
from pipeplan.extensions.web.replies import explanation
from pipeplan.formats import timeline_json
from pipeplan.foundation.errors import InputError
from pipeplan.model import Kind
from pipeplan.strategies import strategy

COSTS: dict[str, Any] = {"ranks": 4, "microbatches": 8, "p2p_time": 0.25}


def errors_of(answer, status=422):
    assert answer.status_code == status, answer.text[:500]
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


def test_figures_are_those_of_the_workbench(client):
    answer = client.post("/api/compare", json={"settings": COSTS, "schedules": ["zbv", "1f1b"]}).json()
    for result in answer["results"]:
        expected = pipeplan.simulate(result["schedule"], **COSTS).to_dict()
        assert {name: result[name] for name in expected} == json.loads(json.dumps(expected))


def test_timelines_are_those_asked_for(client):
    question = {
        "settings": COSTS,
        "schedules": ["zbv", "1f1b", "gpipe"],
        "draw": ["gpipe", "1f1b", "gpipe", "dualpipe"],
    }
    answer = client.post("/api/compare", json=question).json()
    assert answer["drawn"] == ["gpipe", "1f1b"]
    views = answer["timeline"]["views"]
    assert [view["title"] for view in views] == ["gpipe", "1f1b"]
    kind, _, packed = views[1]["bars"]["end"].partition(":")
    ends = np.frombuffer(b64decode(packed), f"<{kind}")
    assert ends.tolist() == pipeplan.simulate("1f1b", **COSTS).timeline.end.tolist()


def test_schedules_are_drawn_alone_as_beside_their_figures(client):
    question = {"settings": COSTS, "schedules": ["zbv", "1f1b"]}
    beside = client.post("/api/compare", json=question | {"draw": ["zbv", "1f1b"]}).json()
    alone = client.post("/api/draw", json=question).json()
    assert alone == {name: beside[name] for name in ("drawn", "undrawn", "timeline")}
    assert "unknown schedule" in errors_of(client.post("/api/draw", json={"schedules": ["zbw"]}))["schedules"]


def test_a_large_comparison_has_ten_rows_and_small_timelines(client):
    settings: dict[str, Any] = {"ranks": 64, "microbatches": 512, "p2p_time": 0.1}
    answer = client.post("/api/compare", json={"settings": settings, "reasons": True})
    result = answer.json()
    assert len(result["results"]) == len(result["thumbnails"]) == 10
    assert result["results"][0]["makespan"] == pipeplan.simulate("zbv", **settings).makespan
    assert "slimpipe" in result["left_out"]
    assert len(answer.content) < 400_000
    # A large view is archived: a text instead of columns.
    assert [type(view) for view in result["timeline"]["views"]] == [str]


def test_a_thumbnail_has_the_kinds_of_the_timeline(client):
    (thumbnail,) = client.post("/api/compare", json={"settings": COSTS, "schedules": ["1f1b"]}).json()["thumbnails"]
    timeline = pipeplan.simulate("1f1b", **COSTS).timeline
    rows = np.frombuffer(decompress(b64decode(thumbnail["cells"])), np.uint8).reshape(4, thumbnail["width"])
    assert thumbnail["kinds"] == ["F", "B"]
    # The share of each kind is that of its time, as far as the cells can tell.
    for code, kind in ((1, Kind.F), (2, Kind.B)):
        ops = timeline.schedule.columns.kind == kind
        share = (timeline.end - timeline.start)[ops].sum() / (4 * timeline.makespan)
        assert (rows == code).mean() == pytest.approx(share, abs=0.02)


def test_memory_above_the_limit_is_an_answer(client):
    static = {"static_bytes": 5, "memory_limit": 4, "weight_activation_bytes": [0, 1]}
    for size, peak in ((static, 7), ({"gradient_bytes": 8, "memory_limit": 9.5}, 10)):
        settings = {"ranks": 2, "microbatches": 2, "activation_bytes": 1, **size}
        answer = client.post("/api/compare", json={"settings": settings, "schedules": ["1f1b"]})
        (result,) = answer.json()["results"]
        assert (result["fits"], max(result["peak_bytes"])) == (False, peak)


def test_reasons_come_when_they_are_asked_for(client):
    for reasons in (True, False):
        question = {"settings": COSTS, "schedules": ["1f1b"], "reasons": reasons}
        view = client.post("/api/compare", json=question).json()["timeline"]["views"][0]
        assert (view["gaps"] is not None) == reasons


def test_one_that_cannot_be_had_is_refused_beside_the_others(client):
    settings = {"ranks": 3, "microbatches": 8}
    answer = client.post("/api/compare", json={"settings": settings, "schedules": ["dualpipe", "1f1b"]}).json()
    assert [result["schedule"] for result in answer["results"]] == ["1f1b"]
    (refused,) = answer["refused"]
    assert (refused["schedule"], refused["field"]) == ("dualpipe", "ranks")


def test_schedules_of_ones_own(client):
    text = pipeplan.export("zb-h1", "torch-csv", ranks=2, microbatches=4).text
    question = {"settings": {}, "files": [{"name": "mine.csv", "text": text}], "schedules": ["1f1b"]}
    results = {result["schedule"]: result for result in client.post("/api/compare", json=question).json()["results"]}
    assert results["mine.csv"]["makespan"] == pipeplan.simulate("zb-h1", ranks=2, microbatches=4).makespan
    assert [(item["ranks"], item["microbatches"]) for item in results.values()] == [(2, 4), (2, 4)]


def test_a_measured_timeline_is_explained_and_not_compared(client):
    timeline = replace(pipeplan.simulate("1f1b", **COSTS, time_unit="ms").timeline, source="measured")
    files = [{"name": "run.json", "text": timeline_json(timeline)}]
    errors = errors_of(client.post("/api/compare", json={"files": files}))
    assert "holds a measured timeline" in errors["file"]
    answer = client.post("/api/explain", json={"settings": {"forward_times": 3.0}, "files": files}).json()
    assert answer["makespan"] == timeline.makespan
    assert answer["explain"]["fitted_costs"]["makespan"] == pytest.approx(timeline.makespan)
    assert "zb-h2" in {item["change"] for item in answer["explain"]["what_ifs"]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "nonsense,here"),
        ("x.exe", "0F0"),
        ("x.csv", "0F0,0B0,0F0,0B0"),
        ("../../etc/passwd.csv", "1F0\n"),
        ("x.json", "[" * 100_000),
    ],
)
def test_a_file_without_a_schedule_is_refused(client, name, text):
    errors = errors_of(client.post("/api/compare", json={"files": [{"name": name, "text": text}]}))
    assert list(errors) == ["file"]
    beside = client.post("/api/compare", json={"schedules": ["1f1b"], "files": [{"name": name, "text": text}]}).json()
    assert [item["schedule"] for item in beside["refused"]] == [name]


def test_names_are_never_files(client, tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text(pipeplan.export("1f1b", "torch-csv").text)
    for question in ("compare", "explain"):
        errors = errors_of(client.post(f"/api/{question}", json={"schedules": [str(path)[-80:]]}))
        assert "unknown schedule" in errors["schedules"]


def test_explain_tries_its_changes(client):
    answer = client.post("/api/explain", json={"settings": COSTS, "schedules": ["1f1b"]}).json()
    changes = {change["change"]: change["makespan"] for change in answer["explain"]["what_ifs"]}
    assert changes["transfers free"] == pipeplan.simulate("1f1b", **COSTS | {"p2p_time": 0}).makespan
    assert changes["1 more microbatch"] == pipeplan.simulate("1f1b", **COSTS | {"microbatches": 9}).makespan


@pytest.mark.parametrize(
    ("form", "start"),
    [("svg", b"<?xml"), ("html", b"<!doctype html>"), ("json", b"{")],
)
def test_pictures_pages_and_figures_of_several(client, form, start):
    question = {"settings": COSTS, "schedules": ["1f1b", "zbv"], "format": form}
    answer = client.post("/api/download", json=question)
    assert answer.content.startswith(start)
    assert answer.headers["content-disposition"] == f'attachment; filename="comparison.{form}"'


@pytest.mark.parametrize("form", ["torch-csv-comms", "timeline-csv", "costs", "megatron"])
def test_other_tools_formats_are_those_of_export(client, form):
    name = "interleaved-1f1b-overlap" if form == "megatron" else "zbv"
    segments = {op: [{"compute": 1}, {"all_to_all": 1}] for op in ("forward", "backward_input", "backward_weight")}
    pairs = {"ranks": 4, "microbatches": 8, "segments": segments, "delayed_weights": True}
    costs = pairs if form == "megatron" else COSTS
    answer = client.post("/api/download", json={"settings": costs, "schedules": [name], "format": form})
    assert answer.text == pipeplan.export(name, form, **costs).text


def warnings_of(answer):
    return json.loads(unquote(answer.headers.get("pipeplan-warnings", "[]")))


def test_a_download_says_what_its_format_changes(client):
    files = [{"name": "mine.txt", "text": "0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0"}]
    answer = client.post("/api/download", json={"files": files, "format": "torch-csv"})
    assert answer.text == "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"
    (warning,) = warnings_of(answer)
    assert "microbatches are renumbered in the order of the last stage" in warning
    assert warnings_of(client.post("/api/download", json={"schedules": ["zbv"], "format": "torch-csv"})) == []


def test_a_download_of_settings_says_which_file_they_name(client):
    answer = client.post("/api/download", json={"schedules": ["zbv"], "format": "torchtitan"})
    assert "--parallelism.pipeline_parallel_schedule_csv zbv.csv" in answer.text
    assert "these settings name zbv.csv: download the PyTorch CSV, too" in warnings_of(answer)


def test_a_format_that_has_no_words_for_a_schedule_says_so(client):
    errors = errors_of(client.post("/api/download", json={"schedules": ["zbv"], "format": "megatron"}))
    assert "Megatron" in errors["format"]
    assert errors_of(client.post("/api/download", json={"schedules": ["zbv", "1f1b"], "format": "trace"}))


def test_every_format_can_be_downloaded_and_stands_in_the_menu(client):
    listed = {one["name"]: one for one in client.get("/api/formats").json()}
    assert list(listed) == list(all_formats())
    assert export_formats().keys() <= {name for name, one in listed.items() if one["written"]}
    assert {one["ending"].rpartition(".")[2] for one in listed.values() if one["read"]} == {"csv", "json", "txt"}
    several = {name for name, one in listed.items() if one["several"]}
    assert several == {name for name, item in all_formats().items() if item.draw or item.write_record}


def test_a_config_file_gives_its_settings(client):
    text = "num_stages: 4\nnum_batches: 16\nforward_times: [1, 2, 3, 4]\nstrategy: ZBV\noutput_file: x.png\n"
    answer = client.post("/api/config", params={"name": "my.yaml"}, content=text).json()
    assert answer["settings"] == {"stages": 4, "microbatches": 16, "forward_times": [1, 2, 3, 4]}
    assert answer["schedules"] == ["zbv"]


def test_a_config_never_names_a_file_of_the_server(client):
    text = json.dumps({"schedule": "/etc/hosts.csv"})
    answer = client.post("/api/config", params={"name": "my.json"}, content=text).json()
    assert answer["schedules"] == []
    assert "drop its file" in answer["notes"][0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.yaml", b"rank: 4", "did you mean 'ranks'"),
        ("a.txt", b"ranks: 4", "is not a config file, which ends in .yaml, .toml or .json"),
        ("a.yaml", b"x: 1\n" * 300_000, "at most"),
    ],
)
def test_a_broken_config_is_told_at_the_file(client, name, content, says):
    errors = errors_of(client.post("/api/config", params={"name": name}, content=content))
    assert says in errors["file"]
    assert "/tmp" not in errors["file"]


@pytest.mark.parametrize("form", ["torch-csv", "json"])
def test_the_shape_of_a_schedule_file(client, form):
    text = pipeplan.export("zbv", form, ranks=3, microbatches=7).text
    answer = client.post(
        "/api/shape", json={"name": "mine.json" if form == "json" else "mine.csv", "text": text}
    ).json()
    assert answer == {"settings": {"ranks": 3, "microbatches": 7}, "schedules": [], "notes": []}
    errors = errors_of(client.post("/api/shape", json={"name": "mine.csv", "text": "what is this"}))
    assert set(errors) == {"file"}


def test_too_much_to_draw_still_gives_figures(client, monkeypatch):
    monkeypatch.setattr(schedules, "MOST_DRAWN", 10)
    answer = client.post("/api/compare", json={"settings": COSTS, "schedules": ["1f1b"], "reasons": True}).json()
    assert answer["undrawn"] == ["1f1b"]
    assert answer["timeline"] is None
    assert answer["results"][0]["makespan"] > 0


def test_too_much_to_explain_is_refused(monkeypatch):
    monkeypatch.setattr(schedules, "_MOST_EXPLAINED", 10)
    with pytest.raises(InputError, match="too large to be explained"):
        explanation(strategy("1f1b"), Settings(ranks=4, microbatches=2))


@pytest.mark.parametrize("name", ["run_$1_$2.csv", "</script><b>\u202ea\nb\x1b😀.csv"])
def test_a_file_of_any_name_is_drawn(client, name):
    question = {"files": [{"name": name, "text": "0F0,0B0\n1F0,1B0\n"}]}
    answer = client.post("/api/compare", json=question).json()
    assert [result["schedule"] for result in answer["results"]] == [name]
    for form in ("svg", "html"):
        file = client.post("/api/download", json=question | {"format": form})
        assert (file.status_code, len(file.content) > 1000) == (200, True), file.text[:300]
        assert file.headers["content-disposition"].isascii()
