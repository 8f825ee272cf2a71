"""Whatever stands in a field: a sentence next to it, never an error of the server."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from pipeplan.extensions.web.requests import CompareIn, parsed
from pipeplan.foundation.errors import PipeplanError


def posted(client, text: str, question: str = "compare"):
    return client.post(f"/api/{question}", content=text, headers={"content-type": "application/json"})


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks": 4.0}, "must be a whole number"),
        ({"pad_times": 1}, "must be true or false"),
        ({"forward_times": "x"}, "must be a number"),
        ({"forward_times": [1, "x"]}, "value 2: must be a number"),
        ({"forward_times": []}, "is empty"),
        ({"forward_times": [1.0] * 20_001}, "must have at most 20000 values"),
        ({"recompute": 3}, "must be text"),
        ({"microbatch_factors": 3}, "must be a list"),
        ({"time_unit": "x" * 13}, "must have at most 12 characters"),
        ({"communication": "x"}, "unknown communication 'x'; known: blocking, contended, edge, streams"),
    ],
)
def test_a_value_of_the_wrong_type_is_told_at_its_field(client, settings, message):
    answer = posted(client, json.dumps({"settings": settings, "schedules": ["1f1b"]}))
    assert answer.json()["errors"] == [{"field": next(iter(settings)), "message": message}]


@pytest.mark.parametrize(
    ("request_", "field", "message"),
    [
        ({"schedules": "1f1b"}, "schedules", "must be a list"),
        ({"schedules": [""]}, "schedules", "is empty"),
        ({"schedules": ["x"] * 65}, "schedules", "must have at most 64 values"),
        ({"reasons": 1}, "reasons", "must be true or false"),
        ({"files": [{"name": "a.csv"}]}, "files", "is missing"),
        ({"settings": 4}, "", "must be a group of names and values"),
        ({"allow": ["x"]}, "allow", "unknown need 'x'; known: copies, recompute, slices"),
    ],
)
def test_a_request_of_the_wrong_form_is_told_at_its_field(client, request_, field, message):
    answer = posted(client, json.dumps(request_))
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": field, "message": message}]


def test_a_shape_too_large_for_any_schedule_is_refused_before_any_work(client):
    answer = posted(client, '{"settings": {"ranks": 10000, "microbatches": 100}}')
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


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "holds more than 16 nested groups"),
        (json.dumps({"layout": [0] * 60_000}), "holds more than 50,000 values"),
    ],
)
def test_a_configuration_that_is_too_large_is_refused_before_it_is_copied(client, document, message):
    answer = posted(client, f'{{"document": {document}}}', "plan/chosen")
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "document", "message": message}]


def test_a_million_unknown_names_are_told_in_one_sentence(client):
    names = ",".join(f'"k{number}":1' for number in range(20_000))
    answer = posted(client, '{"settings": {' + names + "}}")
    (error,) = answer.json()["errors"]
    assert error["field"] == ""
    assert "has 20,000 names, of which at most" in error["message"]


def test_sizes_per_stage_have_units():
    request = parsed(CompareIn, '{"settings": {"offload_bytes": [1.0, "2KiB"], "ranks": 2}}')
    assert request.costs().offload_bytes == (1.0, 2048.0)


def test_layers_are_told_at_their_field(client):
    layer = {"forward": 1, "backward_input": 1, "backward_weight": 1, "count": 8}
    for wrong in ({"forward": -1}, {"byte": 1}, {"count": 0}, {"forward": "x"}):
        answer = posted(client, json.dumps({"settings": {"layers": [layer | wrong]}, "schedules": ["1f1b"]}))
        assert answer.status_code == 422
        assert {error["field"] for error in answer.json()["errors"]} == {"layers"}, answer.text
    answer = posted(client, json.dumps({"settings": {"layers": [layer]}, "schedules": ["1f1b", "zbv"]}))
    assert len(answer.json()["results"]) == 2
