"""Who is answered: the page itself and programs of the user's, under the server's own names, within bounds."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan.extensions.web.guard import BODY_LIMIT, MOST_PARTS, Guard

CROSS = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}


def port_of(address: str) -> int:
    port = urlsplit(address).port
    assert port is not None
    return port


@pytest.mark.parametrize("host", ["LOCALHOST", "[::1]", "localhost:1"])
def test_its_own_names(client, host):
    assert client.get("/api/schedules", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["localhost.evil.example", "10.0.0.1", "", "localhost:x"])
def test_other_names_are_refused(client, host):
    for path in ("/", "/api/schedules", "/assets/app.js"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_other_origins_are_refused(client, origin):
    answer = client.post("/api/compare", json={}, headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_an_origin_that_begins_like_ours_is_another(client, address):
    assert client.get("/api/schedules", headers={"origin": address}).status_code == 200
    for origin in (f"{address}.evil.example", f"{address}0"):
        assert client.post("/api/compare", json={}, headers={"origin": origin}).status_code == 403


def test_other_sites_may_link_to_the_page_but_not_ask(client):
    assert client.get("/", headers=CROSS | {"sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/api/schedules", headers=CROSS).status_code == 403
    assert client.post("/api/compare", json={}, headers=CROSS | {"sec-fetch-mode": "navigate"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/schedules", "/nowhere"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_fifty_megabytes_are_refused_with_a_reason(client):
    answer = client.post("/api/compare", content=b" " * 50_000_000, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert "the limit is" in answer.json()["errors"][0]["message"]
    assert client.post("/api/config?name=x.yaml", content=b" " * (9 << 20)).status_code == 413


def test_a_body_without_a_length_is_counted(client):
    pieces = (b" " * (1 << 20) for _ in range((BODY_LIMIT >> 20) + 2))
    assert client.post("/api/config?name=x.yaml", content=pieces).status_code == 413


def test_a_length_that_is_none_is_refused(address):
    head = "POST /api/config?name=x.yaml HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port_of(address)), timeout=20) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


def test_millions_of_lists_and_names_are_refused_before_they_are_parsed():
    for part in (b"[],", b'{"a":1},', b"[{}],", b'"a" :1,'):
        assert answered(b"[" + part * MOST_PARTS + b"0]") == (413, [])
    body = b"[" + b"0," * MOST_PARTS + b"0]"
    assert answered(body) == (200, [body])


def test_a_client_that_leaves_in_the_middle_of_its_request_gets_no_work():
    assert answered(b"12345", whole=False) == (None, [])


def answered(body: bytes, *, whole: bool = True) -> tuple[int | None, list[bytes]]:
    """Return the status of an answer, and the bodies that reached the app."""
    reached: list[bytes] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    messages = [{"type": "http.request", "body": body, "more_body": not whole}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"host", b"localhost")], "path": "/"}
    asyncio.run(Guard(app, ["localhost"])(scope, receive, send))
    return (sent[0]["status"] if sent else None), reached


def test_on_all_interfaces_every_address_is_known():
    guard = Guard(None, ["localhost"], any_address=True)  # type: ignore[arg-type]
    assert guard._known("10.1.2.3:8377")
    assert guard._known("[fe80::1]:8377")
    assert not guard._known("evil.example:8377")


@pytest.mark.parametrize("path", ["/nowhere", "/assets/%2e%2e/app.py", "/assets/app.py", "/docs"])
def test_there_is_nothing_else(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["message"] == "no such page"


def test_no_answer_names_a_path_or_a_traceback(client):
    request = [
        client.post("/api/compare", json={"files": [{"name": "x.csv", "text": "?"}]}),
        client.post("/api/config", params={"name": "x.yaml"}, content=b"a: ["),
        client.post("/api/download", json={"format": "png", "settings": {"ranks": -1}}),
        client.get("/nowhere"),
    ]
    for answer in request:
        assert answer.status_code >= 400
        assert "Traceback" not in answer.text
        assert "/tmp" not in answer.text
        assert ".py" not in answer.text
