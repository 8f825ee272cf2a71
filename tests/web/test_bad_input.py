"""Whatever stands in a field: a sentence next to it, never an error of the server."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from pipeplan.costs import SETTING_NAMES, SETTINGS
from pipeplan.errors import PipeplanError
from pipeplan.web.requests import SettingsIn

NUMBERS = [name for name, setting in SETTINGS.items() if setting.kind in ("count", "number", "per_stage", "limit")]


def posted(client, text: str, question: str = "compare"):
    return client.post(f"/api/{question}", content=text, headers={"content-type": "application/json"})


def test_the_settings_are_those_of_the_workbench():
    assert tuple(SettingsIn.model_fields) == SETTING_NAMES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ranks", 0),
        ("forward_times", [1.0, 2.0, -3.0]),
        ("memory_limit", "much"),
        ("recompute", "3-1"),
    ],
)
def test_the_sentence_is_that_of_the_workbench(client, name, value):
    answer = posted(client, json.dumps({"settings": {name: value}, "schedules": ["1f1b"]}))
    with pytest.raises(PipeplanError) as caught:
        pipeplan.simulate("1f1b", **{name: value})
    assert answer.json()["errors"] == [{"field": name, "message": str(caught.value)}]
    assert caught.value.field == name


def test_ten_thousand_ranks_of_all_schedules_are_refused_before_any_work(client):
    answer = posted(client, '{"settings": {"ranks": 10000}}')
    (error,) = answer.json()["errors"]
    assert error["field"] == "ranks"
    assert "the limit is 2,000,000" in error["message"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"x"', "\x00", "{" * 50_000, '{"settings": 4}', '{"a":"\\ud800"}']
)
def test_malformed_json_is_refused(client, text):
    answer = posted(client, text)
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["message"]


def test_an_unknown_name_is_told(client):
    answer = posted(client, '{"settings": {"rank": 4}, "shedules": []}')
    assert {error["field"] for error in answer.json()["errors"]} == {"rank", "shedules"}
    assert posted(client, '{"settings": {"\\ud800": 4}}').status_code == 422


def test_a_configuration_that_is_nested_deeply_is_refused(client):
    answer = posted(client, '{"document": {"a": ' + "[" * 900 + "]" * 900 + "}}", "plan/chosen")
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "document", "message": "holds more than 16 nested groups"}]


def test_a_configuration_of_many_values_is_refused_before_it_is_copied(client):
    answer = client.post("/api/plan/chosen", json={"document": {"layout": [0] * 60_000}})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "document", "message": "holds more than 50,000 values"}]


def test_sizes_per_stage_are_taken_without_a_word_of_pydantic_s(recwarn):
    result = SettingsIn(offload_bytes=[1.0, "2KiB"], ranks=2).settings()
    assert result.offload_bytes == (1.0, 2048.0)
    assert not recwarn.list


def test_layers_are_told_at_their_field(client):
    layer = {"forward": 1, "backward_input": 1, "backward_weight": 1, "count": 8}
    for wrong in ({"forward": -1}, {"byte": 1}, {"count": 0}, {"forward": "x"}):
        answer = posted(client, json.dumps({"settings": {"layers": [layer | wrong]}, "schedules": ["1f1b"]}))
        assert answer.status_code == 422
        assert {error["field"] for error in answer.json()["errors"]} == {"layers"}, answer.text
    answer = posted(client, json.dumps({"settings": {"layers": [layer]}, "schedules": ["1f1b", "zbv"]}))
    assert len(answer.json()["results"]) == 2
