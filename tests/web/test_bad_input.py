"""Whatever stands in a field: a sentence next to it, never an error of the server."""

from __future__ import annotations

import json
from typing import get_args

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeplan.costs.settings import SETTING_NAMES
from pipeplan.web.refusals import field_of, plain
from pipeplan.web.requests import SettingsIn

NUMBERS = [
    name for name in SETTING_NAMES if name not in ("times_per", "communication", "variant", "pad_times", "time_unit")
]
BAD = ["NaN", "Infinity", "-Infinity", "-1", "1e400", '"x"', "true", "{}", "[]", "[NaN]", '["x"]', "1" + "0" * 5000]


def posted(client, text: str, question: str = "compare"):
    return client.post(f"/api/{question}", content=text, headers={"content-type": "application/json"})


def test_the_settings_are_those_of_the_workbench():
    assert tuple(SettingsIn.model_fields) == SETTING_NAMES


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", BAD)
def test_what_cannot_be_is_told_at_its_field(client, name, value):
    answer = posted(client, f'{{"settings": {{"{name}": {value}}}, "schedules": ["1f1b"]}}')
    assert answer.status_code in (400, 422)
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {name} or (answer.status_code == 400 and len(value) > 4300)


@pytest.mark.parametrize("name", ["ranks", "microbatches", "chunks", "stages", "group_size", "slices"])
@pytest.mark.parametrize("value", [0, 10**7, 1.5])
def test_counts_are_whole_and_in_range(client, name, value):
    answer = posted(client, json.dumps({"settings": {name: value}, "schedules": ["1f1b"]}))
    assert [error["field"] for error in answer.json()["errors"]] == [name]


@pytest.mark.parametrize("name", ["forward_times", "backward_times", "p2p_bandwidth", "memory_limit", "overlap_times"])
def test_zero_is_told_where_there_must_be_more(client, name):
    answer = posted(client, json.dumps({"settings": {name: 0}, "schedules": ["1f1b"]}))
    assert answer.json()["errors"] == [{"field": name, "message": "must be more than 0"}]


def test_the_place_in_a_list_is_told(client):
    answer = posted(client, '{"settings": {"forward_times": [1, 2, -3]}}')
    assert answer.json()["errors"] == [{"field": "forward_times", "message": "value 3: must be more than 0"}]


def test_ten_thousand_ranks_of_all_schedules_are_refused_before_any_work(client):
    answer = posted(client, '{"settings": {"ranks": 10000}}')
    assert answer.elapsed.total_seconds() < 1
    (error,) = answer.json()["errors"]
    assert error["field"] == "ranks"
    assert "at most 2,000,000 are served" in error["message"]


def test_ten_thousand_ranks_of_one_schedule_are_served(client):
    answer = posted(client, '{"settings": {"ranks": 10000, "microbatches": 2}, "schedules": ["1f1b"]}')
    assert answer.status_code == 200
    assert answer.json()["results"][0]["ranks"] == 10000


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


def test_other_content_than_json_is_refused(client):
    answer = client.post("/api/compare", content=b"ranks=4", headers={"content-type": "text/plain"})
    assert answer.status_code == 422


_number = st.one_of(st.integers(-2, 40), st.floats(0, 1e18), st.just(10**6))
_values = st.one_of(_number, st.lists(_number, max_size=9), st.text(max_size=8), st.booleans(), st.none())
_chosen = st.dictionaries(st.sampled_from(SETTING_NAMES), _values, max_size=5)
_names = st.lists(st.sampled_from(["1f1b", "zbv", "dualpipe", "seq1f1b", "zbv-heuristic", "x"]), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=_chosen, names=_names)
def test_no_settings_make_the_server_fail(client, chosen, names):
    answer = posted(client, json.dumps({"settings": chosen, "schedules": names}))
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert all(error["message"] for error in answer.json()["errors"])
    json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("forward times: 3 values for 4 stages", "forward_times"),
        ("forward time of stage 2 must be more than 0 and finite, not 0", "forward_times"),
        ("backward input time of stage 0 must be more than 0", "backward_input_times"),
        ("dualpipe needs an even number of ranks, not 5", "ranks"),
        ("memory limit '3' is no size", "memory_limit"),
        ("a transfer's bandwidth must be more than 0", "p2p_bandwidth"),
        ("1f1b has 1 chunk(s) a rank, not 2", "chunks"),
        ("something else", ""),
    ],
)
def test_the_field_that_a_message_is_about(message, field):
    assert field_of(message) == field


def test_answers_hold_no_half_characters_and_are_not_endless():
    assert plain("a\ud800b") == "a?b"
    assert len(plain("x" * 10_000)) < 700


def test_choices_are_those_of_the_settings():
    from pipeplan.costs.settings import Communication

    assert get_args(SettingsIn.model_fields["communication"].annotation) == get_args(Communication)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("plan.json", {"placement": [0, 50_000_000]}, "holds a stage; 49999999 do not, among them 1, 2, 3"),
        ("plan.json", {"microbatches": 10**17}, "at most 20,000,000 are planned"),
        ("plan.json", {"slices": 10**9}, "slices must be at most 32,768"),
    ],
)
def test_large_numbers_in_a_file_are_refused_at_once(client, name, change, message):
    plan = {"format": "pipeplan-schedule", "version": 1, "schedule": "x", "ranks": 2, "chunks": 1, "stages": 2}
    plan |= {"microbatches": 1, "placement": [0, 1], "rows": [["0F0", "0B0"], ["1F0", "1B0"]]}
    answer = posted(client, json.dumps({"files": [{"name": name, "text": json.dumps(plan | change)}]}))
    assert answer.elapsed.total_seconds() < 5
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "file"
    assert message in error["message"]


def test_a_config_file_that_multiplies_is_refused_at_once(client):
    text = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
    answer = client.post("/api/config", params={"name": "costs.yaml"}, content=text)
    assert (answer.status_code, answer.elapsed.total_seconds() < 5) == (422, True)
    assert "merges groups of keys" in answer.json()["errors"][0]["message"]
