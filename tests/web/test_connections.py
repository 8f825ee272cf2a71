"""Connections: each has its time, and there is always room for one more. Against the uvicorn that is installed."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import httpx

from pipeplan.web.connections import BoundedConnection, most_connections
from pipeplan.web.guard import SECURITY_HEADERS
from tests.web.running import running


class Hasty(BoundedConnection):
    """The same with less patience and room."""

    head_seconds = 0.5
    stuck_seconds = 0.5
    look_seconds = 0.1
    most = 12
    lost: ClassVar[set[object]] = set()

    def connection_made(self, transport):
        # The system would take an answer as a whole, and read it to nobody.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        super().connection_made(transport)

    def connection_lost(self, exc):
        self.lost.add(self.client)
        super().connection_lost(exc)


@pytest.fixture(scope="module")
def hasty():
    with running(connection=Hasty) as found:
        yield found


def connected(address: str, **options: int) -> socket.socket:
    found = socket.socket()
    for name, value in options.items():
        found.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    found.settimeout(30)
    found.connect(("127.0.0.1", urlsplit(address).port))
    return found


def asked(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return head.encode() + b"\r\n\r\n" + content


def all_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_is_not_waited_for(hasty, begun):
    with connected(hasty) as connection:
        connection.sendall(begun)
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout") if begun else answer == b""


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hasty):
    with connected(hasty) as connection:
        connection.settimeout(0.05)
        answer = b""
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"x" * 200:
            connection.sendall(bytes([byte]))
            try:
                answer = connection.recv(4096)
                break
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408")


def test_idle_connections_give_way_to_new_ones(hasty):
    with ExitStack() as held:
        for number in range(3 * Hasty.most):
            connection = held.enter_context(connected(hasty))
            connection.sendall(
                (b"", b"GET / HTTP/1.1\r\nHost: loc", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n")[number % 3]
            )
        for _ in range(3):
            assert httpx.get(f"{hasty}/api/schedules").status_code == 200


def test_an_answer_that_nobody_reads_is_given_up(hasty):
    question = {"settings": {"ranks": 16, "microbatches": 100}, "schedules": ["1f1b"]}
    with connected(hasty, SO_RCVBUF=2048) as connection:
        connection.sendall(asked("/api/compare", question))
        deadline = time.monotonic() + 30
        while connection.getsockname() not in Hasty.lost:
            assert time.monotonic() < deadline, "it is kept"
            time.sleep(0.05)
        read = len(all_of(connection))
    whole = httpx.post(f"{hasty}/api/compare", json=question, timeout=60).content
    assert read < len(whole)


def test_what_is_no_http_is_refused_as_everything_else(hasty):
    for wrong in (
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000,
        b"POST /api/compare HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        with connected(hasty) as connection:
            connection.sendall(wrong)
            head, _, body = all_of(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request")
        assert all(f"{name}: {value}".encode() in head for name, value in SECURITY_HEADERS.items())
        assert json.loads(body)["errors"][0]["message"]


def test_requests_that_come_at_once_are_answered_in_turn(hasty):
    with connected(hasty) as connection:
        one = b"GET /api/presets HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(one * 2 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert all_of(connection).count(b"HTTP/1.1 200") == 3


def test_clients_that_hang_up_leave_no_work_behind(hasty):
    question = asked("/api/compare", {"settings": {"ranks": 16, "microbatches": 500}})
    for times in (1, 2, 1):
        with ExitStack() as held:
            for _ in range(8):
                held.enter_context(connected(hasty)).sendall(question * times)
    assert httpx.post(f"{hasty}/api/compare", json={"schedules": ["1f1b"]}, timeout=60).status_code == 200


def test_there_are_fewer_connections_than_descriptors():
    assert 8 <= most_connections() <= 512
