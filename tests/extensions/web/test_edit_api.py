"""The questions about an edited schedule: the text to begin with, the verdict, and what cannot be asked."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from pipeplan.extensions.web import schedules
from pipeplan.extensions.web.requests import TEXT_LIMIT
from tests.extensions.web.test_api import errors_of

SETTINGS = {"ranks": 4, "microbatches": 6}


def begun(client, name: str = "1f1b", **settings):
    answer = client.post("/api/edit/begin", json={"settings": SETTINGS | settings, "schedules": [name]})
    assert answer.status_code == 200, answer.text
    return answer.json()


def judged(client, text: str, **more):
    answer = client.post("/api/edit", json={"rows": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["chimera", "seq1f1b", "1f1b-overlap"])
def test_a_schedule_begins_as_it_is(client, name):
    begin = begun(client, name, p2p_time=0.5)
    verdict = judged(client, begin["rows"], shape=begin["shape"], settings={"p2p_time": 0.5})
    expected = pipeplan.simulate(name, ranks=4, microbatches=6, p2p_time=0.5)
    assert (verdict["valid"], verdict["flaws"], verdict["stopped"]) == (True, [], None)
    assert verdict["result"]["makespan"] == expected.makespan
    assert verdict["shape"] == begin["shape"]
    assert begin["ops"] == len(expected.schedule)
    assert verdict["timeline"]["views"][0]["makespan"] == expected.makespan


def test_a_change_is_told_with_its_reason_and_its_trainers(client):
    begin = begun(client)
    text = begin["rows"].replace("1F3 1B1", "1B1 1F3")
    verdict = judged(client, text, shape=begin["shape"], before=begin["rows"], name="mine")
    assert verdict["changed"].startswith("+3 (+11.1%), because rank 1 now runs 1B1 before 1F3")
    assert {item["trainer"]: item["runs"] for item in verdict["trainers"]} == {
        "PyTorch": True,
        "torchtitan": True,
        "Megatron-LM": False,
        "Megatron-Bridge": False,
        "NeMo AutoModel": True,
        "Primus": False,
    }
    assert verdict["result"]["schedule"] == "mine"


def test_a_text_that_does_not_run_is_drawn_as_far_as_it_does(client):
    begin = begun(client)
    text = begin["rows"].replace("0F3 0B0", "0F3").replace("0F1 0F2", "0F1 0B0 0F2")
    verdict = judged(client, text, shape=begin["shape"], before=begin["rows"])
    assert (verdict["valid"], verdict["result"], verdict["changed"], verdict["trainers"]) == (False, None, "", None)
    assert verdict["flaws"][0]["places"] == [[0, 2], [1, 2]]
    waiting = verdict["stopped"]["waiting"][1]
    assert waiting == {
        "rank": 1,
        "position": waiting["position"],
        "op": "1F2",
        "message": "rank 1 stops before 1F2: it waits for 0F2, which rank 0 never reaches",
        "places": [[1, 2]],
    }
    assert verdict["stopped"]["until"] < verdict["timeline"]["views"][0]["makespan"]
    again = judged(client, begin["rows"], shape=begin["shape"], before=text)
    assert again["changed"] == "It is valid again."


def test_one_schedule_is_edited(client):
    for names in (["1f1b", "zbv"], []):
        assert "choose one" in errors_of(client.post("/api/edit/begin", json={"schedules": names}))["schedules"]
    assert (
        "unknown schedule"
        in errors_of(client.post("/api/edit/begin", json={"schedules": ["/etc/passwd"]}))["schedules"]
    )


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"rows": "x" * (TEXT_LIMIT + 1)}, "rows"),
        ({"rows": "0F0 0B0", "before": 3}, "before"),
        ({"rows": None}, "rows"),
        ({}, "rows"),
        ({"rows": "0F0 0B0", "shape": {"placement": [], "microbatches": 1}}, "shape"),
        ({"rows": "0F0 0B0", "shape": {"placement": [[0]], "microbatches": 10**8}}, "shape"),
        ({"rows": "0F0 0B0", "settings": {"forward_times": -1}}, "forward_times"),
        ({"rows": "0F0 0B0", "settings": {"forward_times": [1.0, 2.0]}}, "forward_times"),
        ({"rows": "0F0 0B0", "nonsense": 1}, "nonsense"),
    ],
)
def test_what_cannot_be_asked_is_told_at_its_field(client, question, field):
    assert list(errors_of(client.post("/api/edit", json=question))) == [field]


@pytest.mark.parametrize("ranks", [[0, 2], [-1, 0], [10**9]])
def test_a_placement_that_cannot_be_is_refused(client, ranks):
    shape = {"placement": [ranks], "microbatches": 1}
    assert errors_of(client.post("/api/edit", json={"rows": "0F0 0B0", "shape": shape}))


def test_what_is_too_large_to_draw_is_judged(client, monkeypatch):
    monkeypatch.setattr(schedules, "MOST_LANES", 3)
    begin = begun(client)
    verdict = judged(client, begin["rows"], shape=begin["shape"])
    assert verdict["valid"]
    assert verdict["timeline"] is None
