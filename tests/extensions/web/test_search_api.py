"""Searches over the web: lines while they run, the answer of Python, one at a time for a page, nothing left behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan.extensions.web.streams import Sessions
from pipeplan.extensions.web.workers import BusyError
from pipeplan.formats import parse
from pipeplan.model import Schedule

REQUEST: dict[str, Any] = {
    "settings": {"ranks": 4, "microbatches": 8, "memory_limit": "3act"},
    "placement": "v",
    "seconds": 0.3,
}


def lines_of(answer) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text[:500]
    return [json.loads(line) for line in answer.text.splitlines()]


def schedule_in(text: str) -> Schedule:
    content = parse(text, "search.json")
    assert isinstance(content, Schedule)
    return content


def test_progress_and_the_best_come_before_what_is_found(client):
    *before, last = lines_of(client.post("/api/search", json=REQUEST))
    actual = last["found"]
    progress = [line["progress"] for line in before if "progress" in line]
    assert progress
    assert all(0 <= item["share"] <= 1 and item["bound"] <= item["value"] for item in progress)
    texts = [line["best"] for line in before if "best" in line]
    best = schedule_in(texts[-1])
    assert (best.ranks, best.microbatches) == (4, 8)
    assert actual["fits"]
    assert actual["objective"]["value"] <= progress[0]["value"]
    assert actual["best_published"]["schedule"] in actual["said"][0]
    question = {
        "settings": REQUEST["settings"],
        "files": [{"name": "search v 3act", "text": texts[-1]}],
    }
    (result,) = client.post("/api/compare", json=question).json()["results"]
    assert result["schedule"] == "search v 3act"
    assert result["makespan"] == pytest.approx(actual["makespan"])
    assert result["over"] is None


def test_the_layout_is_searched_too(client):
    block = {"forward": 1.0, "backward_input": 1.0, "backward_weight": 1.0}
    layers = [{**block, "count": 7}, {**block, "forward": 3.0}]
    settings = {"ranks": 2, "microbatches": 4, "layers": layers}
    *before, last = lines_of(client.post("/api/search", json=REQUEST | {"settings": settings, "layout": "auto"}))
    result = last["found"]
    assert sum(result["layers_per_stage"]) == 8
    progress = [line["progress"] for line in before if "progress" in line]
    assert all(0 < item["bound"] <= item["value"] for item in progress)
    again = client.post("/api/search", json=REQUEST | {"layout": "auto"})
    assert "needs the costs of each layer" in again.text


def test_the_points_of_a_front_come_as_they_are_found(client):
    request = REQUEST | {"points": 3, "seconds": 1.0}
    *before, last = lines_of(client.post("/api/front", json=request))
    points = [line["point"] for line in before if "point" in line]
    front = last["front"]
    assert points
    assert front["points"]
    values = [point["value"] for point in front["points"]]
    peaks = [point["peak"] for point in front["points"]]
    assert values == sorted(values, reverse=True)
    assert peaks == sorted(peaks)
    assert "v-half" in {mark["schedule"] for mark in front["published"]}
    assert all(schedule_in(point["text"]).ranks == 4 for point in [*points, *front["points"]])
    assert front["said"]


@pytest.mark.parametrize(
    ("path", "changes", "field", "words"),
    [
        ("search", {"seconds": 3600.0}, "seconds", "at most 60"),
        ("search", {"start": ["1f1b"]}, "start", "cannot start from 1f1b"),
        ("search", {"start": ["/etc/passwd"]}, "start", "unknown schedule"),
        ("search", {"settings": {"memory_limit": "0.1act"}}, "memory_limit", "least feasible"),
        ("search", {"settings": {"ranks": 512, "microbatches": 512}}, "ranks", "too large to search here"),
        ("search", {"settings": {"recompute": "all"}}, "recompute", "drop recompute all, use decide recompute"),
        ("search", {"store": "/tmp/x"}, "store", "unknown name"),
        ("search", {"session": "x" * 81}, "session", "at most 80"),
        ("front", {"points": 13}, "points", "at most 12"),
    ],
)
def test_what_is_wrong_is_at_its_field(client, path, changes, field, words):
    answer = client.post(f"/api/{path}", json=REQUEST | changes)
    assert answer.status_code == 422
    errors = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert words in errors[field]


def test_who_closes_the_connection_ends_the_search(address):
    """The same page searches again: it would be refused if its first search went on."""
    import httpx

    long = REQUEST | {"seconds": 60.0, "session": "a page", "settings": {"ranks": 8, "microbatches": 64}}
    with httpx.Client(base_url=address, timeout=180) as client:
        with client.stream("POST", "/api/search", json=long) as answer:
            assert next(answer.iter_lines())
        *_, last = lines_of(client.post("/api/search", json=REQUEST | {"session": "a page"}))
    assert last["found"]["fits"]


async def _numbers(count: int, gate: asyncio.Event | None = None):
    for number in range(count):
        yield str(number).encode()
        if gate is not None:
            await gate.wait()


def test_a_page_has_one_search_at_a_time():
    async def scenario() -> None:
        sessions, gate = Sessions(patience=0.05), asyncio.Event()
        first = sessions.alone("page", _numbers(2, gate))
        assert await anext(first) == b"0"
        with pytest.raises(BusyError, match="searching already"):
            await anext(sessions.alone("page", _numbers(1)))
        assert [line async for line in sessions.alone("another page", _numbers(1))] == [b"0"]
        assert [line async for line in sessions.alone("", _numbers(1))] == [b"0"]
        await first.aclose()
        assert [line async for line in sessions.alone("page", _numbers(2))] == [b"0", b"1"]
        assert len(sessions) == 0

    asyncio.run(scenario())
