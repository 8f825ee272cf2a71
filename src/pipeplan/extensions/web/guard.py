"""Guard of the app: passes only requests of the page itself and of the user's own programs.

Other web pages must not use a server on this machine. They can point their own host name at it (DNS rebinding),
so the ``Host`` must be a name of the server. It can send requests across origins, so an ``Origin`` must be the server's own.
Bodies are bounded, and the headers of every answer keep the page from loading or showing foreign content.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeplan.extensions.web.faults import refusal
from pipeplan.extensions.web.records import Fault

BODY_LIMIT = 12 << 20
"""Largest request in bytes: a file of the largest size as a JSON string, with the other fields."""

MOST_PARTS = 300_000
"""Maximum number of lists, objects and names in a request: parsing millions of them blocks the server for seconds.

A schedule of 65,536 ranks with its times has 200,000.
"""

_DRAINED = 64 << 20
"""Number of bytes read and dropped of a request that is too large, so that its sender can read the answer."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
OWN_SCRIPTS = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Policy of a self-contained page, which names the digests of its own scripts and forbids everything else."""

SECURITY_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware: host, origin and size of requests, and the headers of answers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], *, any_address: bool = False) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on valid requests, and refuse the rest."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no websockets here; the server closes the connection
        sending = _with_headers(send)
        headers = Headers(scope=scope)
        fault = self._fault(headers, link=scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate")
        if fault is not None:
            await refusal(403, fault)(scope, receive, sending)
            return
        body = await _body(receive, headers)
        if isinstance(body, bytes):
            await self._app(scope, _replayed(body, receive), sending)
        elif body is not None:
            await refusal(413, body)(scope, receive, sending)

    def _fault(self, headers: Headers, *, link: bool) -> Fault | None:
        """Return the fault of a request's origin or host; a ``link`` may come from anywhere."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._known(hosts[0]):
            return Fault(field="", message="unknown host name: start the server with --allow-host NAME")
        origin = headers.get("origin")
        if origin is not None and not _same_origin(origin, hosts[0]):
            return Fault(field="", message="requests from other pages are not answered")
        if not link and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return Fault(field="", message="requests from other pages are not answered")
        return None

    def _known(self, host: str) -> bool:
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?", host)
        if match is None:
            return False
        name = match.group(1).lower()
        return name in self._hosts or (self._any_address and _is_address(name.strip("[]")))


async def _body(receive: Receive, headers: Headers) -> bytes | Fault | None:
    """Return the body of a request, a fault of its size, or None if the client disconnected early."""
    length = headers.get("content-length", "0")
    size = int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else _DRAINED + 1
    parts: list[bytes] = []
    received, more = 0, size <= _DRAINED
    while more and received <= _DRAINED:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part, more = message.get("body", b""), message.get("more_body", False)
        received += len(part)
        if max(size, received) <= BODY_LIMIT:
            parts.append(part)
    if max(size, received) > BODY_LIMIT:
        return Fault(field="file", message=f"too large: the limit is {BODY_LIMIT >> 20} MiB")
    body = b"".join(parts)
    if sum(map(body.count, (b"[", b"{", b":"))) > MOST_PARTS:
        return Fault(field="", message=f"this has more than {MOST_PARTS:,} lists, objects and names")
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that returns the body first, and then the client's further messages."""
    left = [body]

    async def replayed() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replayed


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _same_origin(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _with_headers(send: Send) -> Send:
    """Return a ``send`` that adds the security headers, and forbids caching unless the answer allows it."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending
