"""Bodies as they arrive, and clients as they leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan.web import arriving
from pipeplan.web.guard import Guard

SCOPE = {"type": "http", "method": "POST", "headers": [(b"host", b"localhost")], "path": "/"}


class Client:
    """What a client sends, as uvicorn tells it; then nothing, or that it has left."""

    def __init__(self, *messages, leaves=True, every=0.0):
        self._left, self._leaves, self._every = list(messages), leaves, every
        self.got: list[dict[str, Any]] = []

    async def receive(self):
        await asyncio.sleep(self._every)
        if self._left:
            return self._left.pop(0)
        if not self._leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.got.append(message)

    @property
    def status(self):
        return self.got[0]["status"] if self.got else None


def part(size, more=True):
    return {"type": "http.request", "body": b" " * size, "more_body": more}


class App:
    """Answers after a while; knows what it was asked, and whether it was stopped."""

    def __init__(self, seconds=0.0):
        self.seconds, self.asked, self.stopped = seconds, 0, 0

    async def __call__(self, scope, receive, send):
        self.asked += 1
        self.body = (await receive())["body"]
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def asked(app, client, **times):
    asyncio.run(asyncio.wait_for(Guard(app, ["localhost"], **times)(SCOPE, client.receive, client.send), 20))


def test_a_client_that_leaves_in_the_middle_of_its_request_is_not_worked_for():
    app, client = App(), Client(part(5))
    asked(app, client)
    assert (app.asked, client.got) == (0, [])


def test_a_client_that_leaves_while_it_waits_ends_the_work():
    app, client = App(60), Client(part(5, more=False))
    asked(app, client)
    assert (app.stopped, client.got) == (1, [])


def test_a_client_that_stays_is_answered():
    app, client = App(), Client(part(5), part(3, more=False), leaves=False)
    asked(app, client)
    assert (client.status, app.body) == (200, b" " * 8)


def test_a_body_that_comes_in_small_parts_has_a_time_as_a_whole():
    app, client = App(), Client(*[part(1)] * 1000, every=0.01)
    asked(app, client, seconds=5, whole=0.1)
    assert (app.asked, client.status) == (0, 408)


def test_bodies_have_room_together(monkeypatch):
    monkeypatch.setattr(arriving, "_HELD", 25)
    app = App(0.05)
    clients = [Client(part(10, more=False), leaves=False) for _ in range(4)]
    guard = Guard(app, ["localhost"])

    async def all_at_once():
        await asyncio.gather(*(guard(SCOPE, each.receive, each.send) for each in clients))

    asyncio.run(all_at_once())
    assert sorted(each.status for each in clients) == [200, 200, 503, 503]
    later = Client(part(25, more=False), leaves=False)
    asyncio.run(guard(SCOPE, later.receive, later.send))
    assert later.status == 200


def test_who_waits_while_the_server_ends_is_told():
    app, client = App(60), Client(part(5, more=False), leaves=False)

    async def ended():
        waiting = asyncio.create_task(Guard(app, ["localhost"])(SCOPE, client.receive, client.send))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await waiting

    asyncio.run(ended())
    assert (app.stopped, client.status) == (1, 503)


async def _asked(body: bytes) -> tuple[int | None, int]:
    app, client = App(), Client({"type": "http.request", "body": body, "more_body": False}, leaves=False)
    await Guard(app, ["localhost"])(SCOPE, client.receive, client.send)
    return client.status, app.asked


def test_millions_of_lists_and_names_are_refused_unread():
    """To make them would take seconds, in which the server answered nobody."""
    for each in (b"[],", b'{"a":1},', b"[{}],", b'"a" :1,'):
        assert asyncio.run(_asked(b"[" + each * arriving.MOST_PARTS + b"0]")) == (413, 0)
    assert asyncio.run(_asked(b"[" + b"0," * arriving.MOST_PARTS + b"0]")) == (200, 1)
