"""The JSON API of plans: lines while it is made, the answer of Python, and a field for everything that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pipeplan
from pipeplan.costs import table_of
from pipeplan.extensions.planning.answers.options import PlanOptions
from tests.plans import CONFIG

REQUEST: dict[str, Any] = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "global_batch": 16, "sequence": 4096}
QUICK = REQUEST | {"seconds": 0.5, "fix": ["tp=2", "pp=2"]}


def lines_of(answer) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text[:500]
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def plan_of(answer) -> dict[str, Any]:
    last = lines_of(answer)[-1]
    assert "plan" in last, last
    result: dict[str, Any] = last["plan"]
    return result


def errors_of(answer) -> dict[str, str]:
    assert answer.status_code == 422, answer.text[:500]
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


@pytest.fixture(scope="module")
def planned(address):
    import httpx

    return httpx.post(f"{address}/api/plan", json={"settings": QUICK}, timeout=60)


def test_progress_comes_first_and_the_plan_last(planned):
    *before, last = lines_of(planned)
    assert before
    assert all(0 <= line["progress"]["share"] <= 1 for line in before)
    best = last["plan"]["best"]
    assert best["configuration"]["tensor"] == 2
    assert best["configuration"]["pipeline"] == 2
    assert best["words"].startswith("tp2 pp2")
    assert last["plan"]["heading"] == "llama3-8b on 8 h100-sxm (1 node of 8), 16 sequences of 4,096 tokens"
    assert all(item["lost_because"] for item in last["plan"]["runners_up"])


def test_every_configuration_can_be_looked_at(client, planned):
    plan = plan_of(planned)
    for item in [plan["best"], *plan["runners_up"][:1]]:
        answer = client.post("/api/plan/chosen", json={"document": item["document"]}).json()
        assert answer["estimate"]["step_time_s"] == pytest.approx(item["step_time_s"])
        assert set(answer["estimate"]["flags"]) == {"megatron", "bridge", "torchtitan", "pipeplan"}
        assert answer["timeline"]["views"][0]["lanes"]["label"] == ["rank 0", "rank 1"]
        (row,) = pipeplan.estimate(item["document"])
        assert row.estimate is not None
        assert row.estimate.step_time == pytest.approx(item["step_time_s"])
        # It is compared as it is, with its own chunks.
        request = answer["compare"]
        question = {"settings": request["settings"], "schedules": [request["schedule"]]}
        (compared,) = client.post("/api/compare", json=question).json()["results"]
        assert compared["chunks"] == item["configuration"]["chunks"]


def test_a_config_json_in_place_of_a_name(client):
    settings = {name: value for name, value in QUICK.items() if name != "model"}
    file = {"name": "ours.json", "text": json.dumps(CONFIG)}
    plan = plan_of(client.post("/api/plan", json={"settings": settings, "model_file": file}))
    assert plan["heading"].startswith("ours.json on 8 h100-sxm")
    assert plan["best"]["document"]["model"]["hidden"] == 1024


def test_where_nothing_fits_the_nearest_is_told(client):
    settings = REQUEST | {"seconds": 0.5, "memory_limit": "2GiB"}
    plan = plan_of(client.post("/api/plan", json={"settings": settings}))
    assert plan["best"] is None
    assert "no configuration fits in 2.0 GiB" in plan["miss"]
    assert plan["closest_miss"]["document"]["model"] == "llama3-8b"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"model": "/etc/hostname"}, "model", "unknown model"),
        ({"cluster": "/etc/cluster.yaml"}, "cluster", "is a file"),
        ({"cluster": "h100-sxm:8x8192"}, "cluster", "at most 32,768 GPUs here"),
        ({"global_batch": 1.5}, "global_batch", "must be a whole number"),
        ({"seconds": 3600.0}, "seconds", "at most 60"),
        ({"objective": "gpus"}, "deadline", "needs a deadline"),
        ({"fix": "tpp=2"}, "fix", "did you mean 'tp'"),
        ({"store": "/tmp/a.db"}, "store", "is an unknown name"),
    ],
)
def test_what_is_wrong_is_at_its_field(client, changes, field, words):
    assert words in errors_of(client.post("/api/plan", json={"settings": REQUEST | changes}))[field]


@pytest.mark.parametrize("text", ["not JSON", json.dumps(CONFIG | {"num_attention_heads": 7})])
def test_a_config_json_that_is_none_is_refused(client, text):
    file = {"name": "ours.json", "text": text}
    (message,) = errors_of(client.post("/api/plan", json={"settings": REQUEST, "model_file": file})).values()
    assert "/tmp" not in message


@pytest.mark.parametrize(
    "document",
    [
        {},
        {**REQUEST, "global_batch": 10_000_000, "pp": 8},
        {**REQUEST, "tp": 3},
        {**REQUEST, "cluster": "a.yaml"},
    ],
)
def test_a_configuration_that_is_none_is_refused(client, document):
    assert errors_of(client.post("/api/plan/chosen", json={"document": document}))


def test_the_form_has_every_setting_that_a_server_takes(client):
    form = client.get("/api/plan/settings").json()
    assert [field["name"] for field in form["fields"]] == [
        item.name for item in table_of(PlanOptions).values() if item.in_form
    ]
    suggestions = {field["name"]: field["suggestions"] for field in form["fields"]}
    assert "llama3-70b" in suggestions["model"]
    assert "h100-sxm:8x8" in suggestions["cluster"]
    assert {share["key"] for share in form["memory"]} >= {"weights", "activations"}


def test_who_closes_the_connection_ends_the_plan(address):
    """One plan at a time: the next one would wait longer than its client does if the first went on."""
    import httpx

    long = REQUEST | {"model": "llama3-70b", "cluster": "h100-sxm:8x64", "global_batch": 1024, "seconds": 60.0}
    with httpx.Client(base_url=address, timeout=50) as client:
        with client.stream("POST", "/api/plan", json={"settings": long}) as answer:
            assert next(answer.iter_lines())
        assert plan_of(client.post("/api/plan", json={"settings": QUICK}))["best"]
