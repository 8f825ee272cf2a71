"""What is done to the server, each with a seed: questions that are wrong, and clients that behave badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from random import Random
from typing import Any

from tests.torture.suite import Found
from tests.torture.web.honest import asked as honest
from tests.torture.web.honest import require_right
from tests.torture.web.judging import judged
from tests.torture.web.questions import TEXTS, Description, Operation, as_text, nasty, spoilt
from tests.torture.web.served import Served
from tests.torture.web.wire import Wire, exchange, request

LARGE = json.dumps({"settings": {"ranks": 16, "microbatches": 500}}).encode()
"""The whole comparison of a large shape: seconds of work."""


class Target:
    """A server that is attacked; an honest client asks it ``tries`` times where it has too much to do."""

    def __init__(self, served: Served, tries: int = 3) -> None:
        self.served, self.port, self.tries = served, served.port, tries

    @cached_property
    def description(self) -> Description:
        """What it says that it can be asked."""
        answer = exchange(self.port, request("GET", "/api/openapi.json"))
        assert answer is not None
        return Description(answer.json())


def question(target: Target, rng: Random, *, hostile: bool, operation: Operation | None = None) -> tuple[bytes, str]:
    """A request for one of the operations as bytes, and what it is in words."""
    operation = operation or rng.choice(target.description.operations)
    values = (*TEXTS, "a.json", "a.yaml", "a.toml") if hostile else ("a.yaml", "gpt-6.2b-24")
    address = target.description.address(operation, rng, values)
    body = b""
    if operation.schema is not None:
        document = target.description.body(operation, rng)
        if hostile:
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                document = spoilt(document, rng)
        _hasten(document, operation)
        body = as_text(document, rng) if hostile else json.dumps(document).encode()
    elif operation.media:
        body = _file(rng) if hostile else b"ranks: 4\nmicrobatches: 8\nforward_times: [1, 2, 1, 1]\n"
    return request(operation.method, address, body), f"{operation.method} {address[:80]} {body[:300]!r}"


def _hasten(document: Any, operation: Operation) -> None:
    """Keep the budgets of searches small: they are allowed a minute, which the one who waits has not."""
    settings = document.get("settings") if isinstance(document, dict) else None
    for group, path in ((document, ("/api/search", "/api/front")), (settings, ("/api/plan",))):
        if isinstance(group, dict):
            seconds = group.get("seconds", 30.0 if operation.path in path else 0.0)
            if isinstance(seconds, (int, float)) and seconds > 1:
                group["seconds"] = 0.3


def _file(rng: Random) -> bytes:
    """A config file that is wrong."""
    key = rng.choice(("ranks", "schedule", "forward_times", "memory_limit", "x", "layers", "<<", "? a"))
    value = nasty(rng)
    kind = rng.random()
    if kind < 0.4:
        return json.dumps({key: value}).encode()
    if kind < 0.7:
        return f"{key}: {json.dumps(value, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass")
    return rng.choice(
        (
            b"\x1f\x8b" + rng.randbytes(50),
            rng.randbytes(200),
            b"a: &a [1]\nb: [*a, *a]\n",
            b"a: &a\n  <<: *a\n",
            b"[" * 3000,
            b"{" * 3000,
            b"- " * 3000,
            b"ranks: !!python/object/apply:os.system ['true']\n",
            b"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n",
            b"\xef\xbb\xbfranks: 4\n",
            "ranks: 4\n".encode("utf-16"),
            b"ranks: 4\0\n",
            b"ranks = 4\n[a.b]\nc = 1e400\n",
            b"ranks: 1:30\nmicrobatches: 010\n",
        )
    )


def wrong_question(target: Target, rng: Random) -> str:
    """A question with something wrong in it."""
    sent, words = question(target, rng, hostile=True)
    return judged(exchange(target.port, sent), words, echoed=sent)


def right_question(target: Target, rng: Random) -> str:
    """A question as the description has it."""
    sent, words = question(target, rng, hostile=False)
    return judged(exchange(target.port, sent), words, echoed=sent)


_METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "A" * 300,
)
_PATHS = (
    "/",
    "/plan",
    "/api",
    "/api/schedules",
    "/api/compare",
    "/assets/app.js",
    "/assets/../app.py",
    "/assets/..%2f..%2fapp.py",
    "/assets/%2e%2e/%2e%2e/etc/passwd",
    "/..%5c..%5cetc",
    "//etc/passwd",
    "/assets/%00",
    "/%ff%fe",
    "/api/presets/..",
    "/api/presets/%2e%2e%2f",
    "/api/presets/" + "x" * 5000,
    "/" + "a/" * 2000,
    "*",
    "http://localhost/api/schedules",
    "/api/schedules?" + "a=1&" * 1000,
    "/api/schedules#x",
    "/docs",
    "/redoc",
    "/.git/config",
)
_HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("Host", "evil.example"),),
    (("Host", "localhost"), ("Host", "evil.example")),
    (("Host", "localhost:99999"),),
    (("Host", ""),),
    (("Host", "localhost@evil.example"),),
    (("Host", "127.0.0.1.nip.io"),),
    (("Host", "[::1"),),
    (("Origin", "http://evil.example"),),
    (("Origin", "null"),),
    (("Origin", "http://localhost:1"),),
    (("Sec-Fetch-Site", "cross-site"),),
    (("Content-Length", "-1"),),
    (("Content-Length", "99999999999999999999"),),
    (("Content-Length", "1e3"),),
    (("Content-Length", "0x10"),),
    (("Content-Length", "0"), ("Content-Length", "5")),
    (("Content-Length", "4"), ("Transfer-Encoding", "chunked")),
    (("Transfer-Encoding", "gzip, chunked"),),
    (("Transfer-Encoding", "identity"),),
    (("Content-Type", "text/plain"),),
    (("Content-Type", "application/json; charset=utf-16"),),
    (("Content-Type", "multipart/form-data; boundary=" + "x" * 1000),),
    (("Content-Encoding", "gzip"),),
    (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "x"), ("Sec-WebSocket-Version", "13")),
    (("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")),
    (("Expect", "100-continue"),),
    (("Expect", "something"),),
    (("Range", "bytes=0-"),),
    (("If-None-Match", "*"),),
    (("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Host", "evil.example"), ("X-HTTP-Method-Override", "DELETE")),
    (("X" * 200, "y"),) * 200,
    (("Cookie", "x" * 60_000),),
    (("X", "y" * 200_000),),
    (("X", "a\x00b"),),
    (("X\x00", "a"),),
    (("X ", "a"),),
    (("X", "\u00e9\u00ff"),),
)
_VERSIONS = ("HTTP/1.1",) * 6 + ("HTTP/1.0", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "HTTP/1", "")


def wrong_protocol(target: Target, rng: Random) -> str:
    """A method, path, header or version that is wrong, right or odd."""
    method, path = rng.choice(_METHODS), rng.choice(_PATHS)
    headers: list[tuple[str, str]] = [each for _ in range(rng.randint(0, 2)) for each in rng.choice(_HEADERS)]
    body = rng.choice((b"", b"", b"{}", honest(0).partition(b"\r\n\r\n")[2], b"x" * 1000))
    sent = request(method, path, body, headers=headers, version=rng.choice(_VERSIONS))
    words = f"{sent[:300]!r}"
    with Wire(target.port) as wire:
        wire.send(sent)
        wire.half_close() if rng.random() < 0.1 else None
        try:
            answer = wire.answer(head=method == "HEAD")
        except TimeoutError:
            raise Found(f"{words}: no answer, and the connection is kept") from None
    if answer is None:
        return "hung up"
    return judged(answer, words, echoed=sent, head=method == "HEAD")


def garbage(target: Target, rng: Random) -> str:
    """Bytes that are no request at all."""
    sent = rng.choice(
        (
            rng.randbytes(rng.randint(1, 3000)),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(300),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\r\n" * 50,
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
            b"GET /" + b"a" * 100_000,
            b"GET / HTTP/1.1\nHost: localhost\n\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
            b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"EHLO localhost\r\n",
            b"\0" * 1000,
        )
    )
    with Wire(target.port) as wire:
        wire.send(sent)
        wire.half_close()
        try:
            answer = wire.answer()
        except TimeoutError:
            raise Found(f"{sent[:100]!r}: neither an answer nor an end") from None
    return "hung up" if answer is None else judged(answer, f"{sent[:100]!r}", echoed=sent)


def chunked(target: Target, rng: Random) -> str:
    """A body in chunks, whose sizes are right, wrong or odd."""
    body = honest(1).partition(b"\r\n\r\n")[2]
    size = rng.choice(
        (
            b"%x" % len(body),
            b"0%x" % len(body),
            b"%X;a=b" % len(body),
            b"zz",
            b"-1",
            b"f" * 20,
            b"",
            b"%x" % (len(body) + 9),
        )
    )
    head = request("POST", "/api/compare", headers={"Transfer-Encoding": "chunked", "Content-Length": None})
    sent = (
        head
        + size
        + b"\r\n"
        + body
        + b"\r\n0\r\n"
        + rng.choice((b"\r\n", b"X: y\r\n\r\n", b"X: " + b"y" * 70_000 + b"\r\n\r\n", b""))
    )
    with Wire(target.port) as wire:
        wire.send(sent)
        wire.half_close()
        answer = wire.answer()
    return "hung up" if answer is None else judged(answer, f"chunked {size!r}", echoed=sent)


def dribbled(target: Target, rng: Random) -> str:
    """An honest request in small parts with pauses, or the beginning of one that then hangs up."""
    sent = honest(rng.randrange(4))
    until = len(sent) if rng.random() < 0.6 else rng.randrange(len(sent))
    with Wire(target.port) as wire:
        place = 0
        while place < until:
            step = rng.choice((1, 3, 50, 200))
            wire.send(sent[place : min(place + step, until)])
            place += step
            if rng.random() < 0.2:
                time.sleep(0.003)
        if until < len(sent):
            return "left"
        return judged(wire.answer(), "an honest request in small parts")


def hung_up(target: Target, rng: Random) -> str:
    """Clients that ask for much and hang up, at once or after a moment, some with a reset."""
    with ExitStack() as held:
        wires = [held.enter_context(Wire(target.port)) for _ in range(rng.choice((3, 10, 40)))]
        for wire in wires:
            wire.send(request("POST", "/api/compare", LARGE) * rng.choice((1, 1, 2)))
        time.sleep(rng.choice((0, 0.05, 0.3)))
        for wire in wires:
            wire.reset() if rng.random() < 0.3 else wire.close()
    return "left"


def unread(target: Target, rng: Random) -> str:
    """Clients that ask for much to read and read none or little of it."""
    document = {"settings": {"ranks": 8, "microbatches": 300}, "schedules": ["1f1b"], "reasons": False}
    with ExitStack() as held:
        for _ in range(rng.choice((1, 4))):
            wire = held.enter_context(Wire(target.port, receive_buffer=2048))
            wire.send(request("POST", "/api/compare", json.dumps(document).encode()))
        require_right(target.port, rng.randrange(4), tries=target.tries)
    return "left"


def pipelined(target: Target, rng: Random) -> str:
    """Several requests at once on one connection: all are answered, in their order."""
    order = [rng.randrange(4) for _ in range(rng.randint(2, 6))]
    with Wire(target.port) as wire:
        wire.send(b"".join(map(honest, order)))
        answers = [wire.answer() for _ in order]
    for answer in answers:
        judged(answer, "one of several requests at once")
    return "answered"


def at_once(target: Target, rng: Random) -> str:
    """Two hundred honest clients at the same moment: each is answered, with figures or that there is too much to do."""
    words: list[str] = []
    wrong: list[Found] = []

    def ask(number: int) -> None:
        try:
            answer = exchange(target.port, honest(number % 4))
            words.append(judged(answer, "one of 200 requests at once"))
        except Found as found:
            wrong.append(found)
        except OSError as error:
            wrong.append(Found(f"one of 200 requests at once: {error}"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    if words.count("answered") < 18:
        raise Found(f"of 200 requests at once {words.count('answered')} are answered")
    return "answered"


def left_streams(target: Target, rng: Random) -> str:
    """Searches and plans whose clients leave."""
    for _ in range(rng.choice((1, 3, 6))):
        path, document = rng.choice(
            (
                ("/api/search", {"settings": {"ranks": 4, "microbatches": 8}, "seconds": 30.0}),
                ("/api/front", {"settings": {"ranks": 4, "microbatches": 8}, "seconds": 30.0, "session": "one"}),
                (
                    "/api/plan",
                    {
                        "settings": {
                            "model": "llama3-8b",
                            "cluster": "h100-sxm:8x2",
                            "global_batch": 64,
                            "sequence": 4096,
                        }
                    },
                ),
            )
        )
        with Wire(target.port) as wire:
            wire.send(request("POST", path, json.dumps(document).encode()))
            time.sleep(rng.choice((0.0, 0.1, 1.0)))
    return "left"


Attack = Callable[[Target, Random], str]

ATTACKS: dict[Attack, float] = {
    wrong_question: 60,
    right_question: 12,
    wrong_protocol: 30,
    garbage: 6,
    chunked: 4,
    dribbled: 3,
    hung_up: 1,
    unread: 1,
    pipelined: 2,
    at_once: 0.3,
    left_streams: 0.5,
}
"""How often each is chosen."""
