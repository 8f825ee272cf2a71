"""What no answer may ever be, whatever was asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pipeplan
from pipeplan.web.guard import SECURITY_HEADERS
from tests.torture.suite import Found
from tests.torture.web.wire import Answer

STATUSES = {200, 304, 307, 400, 403, 404, 405, 408, 413, 422, 503, 504}
_PACKAGE = str(Path(pipeplan.__file__).parents[1])
_TELLING = re.compile(rb"Traceback|/tmp/|/home/|/root/|/usr/lib|site-packages|object at 0x")
_SOURCE = re.compile(rb"[a-z_]\.py\b")
"""What only a refusal may not hold: an answer has names of a trainer's files."""
_WORDS = {200: "answered", 304: "unchanged", 307: "sent on", 503: "busy", 504: "too slow"}


def judged(answer: Answer | None, asked: str, *, echoed: bytes = b"", head: bool = False) -> str:
    """What came of a request in a word.

    Parameters
    ----------
    answer
        What came.
    asked
        The request in words.
    echoed
        What was sent: an answer may hold of it what it may not hold of its own.
    head
        Whether only the head was asked for.

    Raises
    ------
    Found
        For none, one that is cut off, an error of the server's, one without the headers of safety, a refusal without its
        reasons, what is no JSON though it says so, and what tells of this machine.
    """
    if answer is None:
        raise Found(f"{asked}: no answer")
    if not answer.whole:
        raise Found(f"{asked}: the answer is cut off after {len(answer.body)} bytes")
    if answer.status not in STATUSES:
        raise Found(f"{asked}: status {answer.status}: {answer.body[:300]!r}")
    if answer.status == 400 and answer.body == b"Invalid HTTP request received.":
        return "refused"  # by uvicorn, before the app sees what is no HTTP
    for name, value in SECURITY_HEADERS.items():
        if answer.header(name) != value:
            raise Found(f"{asked}: status {answer.status} without the header {name}")
    if head:
        return _WORDS.get(answer.status, "refused")
    if answer.status == 307 and not re.match(r"http://(localhost|127\.0\.0\.1|\[::1\])[:/]", answer.header("location")):
        raise Found(f"{asked}: sent on to {answer.header('location')!r}")
    if answer.status >= 400:
        _refused(answer, asked)
    media = answer.header("content-type").partition(";")[0]
    if media == "application/json":
        answer.json()
    elif media == "application/x-ndjson":
        _lines(answer, asked)
    telling = _TELLING.search(answer.body) if media in ("application/json", "application/x-ndjson") else None
    telling = telling or (_SOURCE.search(answer.body) if answer.status >= 400 else None)
    if telling and telling.group() not in echoed:
        raise Found(f"{asked}: the answer tells {telling.group()!r}: {_around(answer.body, telling)!r}")
    if _PACKAGE.encode() in answer.body:
        raise Found(f"{asked}: the answer names where the package is")
    return _WORDS.get(answer.status, "refused")


def _around(body: bytes, found: re.Match[bytes]) -> bytes:
    return body[max(found.start() - 80, 0) : found.end() + 80]


def _refused(answer: Answer, asked: str) -> None:
    if answer.header("content-type") != "application/json":
        raise Found(f"{asked}: status {answer.status} as {answer.header('content-type')!r}: {answer.body[:200]!r}")
    document = answer.json()
    errors = document.get("errors") if isinstance(document, dict) else None
    if not errors or not all(isinstance(each.get("field"), str) and each.get("message") for each in errors):
        raise Found(f"{asked}: status {answer.status} without a reason: {answer.body[:200]!r}")


def _lines(answer: Answer, asked: str) -> None:
    for line in answer.body.splitlines():
        try:
            json.loads(line, parse_constant=_none)
        except ValueError as error:
            raise Found(f"{asked}: a line is no JSON: {error}: {line[:200]!r}") from None


def _none(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
