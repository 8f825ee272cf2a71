"""The guard before the app: it passes only requests that may come from the page itself or from a program of the user's.

A web page elsewhere must not be able to use a server on this machine. It can name the server by a name of its own whose
address it changes afterwards (DNS rebinding), so the ``Host`` must be one that the server is known by. It can send requests
across origins, so an ``Origin`` must be the server's own. Sizes and times are bounded, and every answer carries the headers
that keep the page from loading or showing anything of others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, MutableMapping
from contextlib import AsyncExitStack
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeplan.web.arriving import (
    BODY_LIMIT,
    MOST_PARTS,
    Arrivals,
    EndingError,
    LeftError,
    NoRoomError,
    TooLargeError,
    TooManyPartsError,
    answered,
)
from pipeplan.web.faults import Fault, refusal

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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
    """ASGI middleware: host, origin, size and time of requests, and the headers of answers.

    Parameters
    ----------
    app
        What to protect.
    hosts
        The names that the server is known by, without ports.
    any_address
        Whether it is also known by every numeric address, like a server on all interfaces.
    seconds
        How long the next part of a request's body may take to arrive.
    whole
        How long all of it may.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        *,
        any_address: bool = False,
        seconds: float = 15.0,
        whole: float = 60.0,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._any_address = any_address
        self._arrivals = Arrivals(seconds, whole)

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
        async with AsyncExitStack() as held:
            try:
                body = await held.enter_async_context(self._arrivals.body(receive, headers))
            except LeftError:
                return
            except tuple(_UNREAD) as error:
                await refusal(*_UNREAD[type(error)])(scope, receive, sending)
                return
            try:
                await answered(self._app, scope, body, receive, sending)
            except EndingError:
                await refusal(503, Fault(field="", message="this server is being ended"))(scope, receive, sending)

    def _fault(self, headers: Headers, *, link: bool) -> Fault | None:
        """What is wrong with a request's origin or host; a ``link`` may come from anywhere."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._known(hosts[0]):
            return Fault(
                field="", message="this server is not known by that name: start it with that name as one of its hosts"
            )
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


_UNREAD: dict[type[Exception], tuple[int, Fault]] = {
    TimeoutError: (408, Fault(field="", message="the request did not arrive in time")),
    TooLargeError: (413, Fault(field="file", message=f"this is too large: the limit is {BODY_LIMIT >> 20} MiB")),
    TooManyPartsError: (413, Fault(field="", message=f"this has more than {MOST_PARTS:,} lists, groups and names")),
    NoRoomError: (503, Fault(field="", message="too many large requests at once; try again in a moment")),
}
"""What is answered to a request whose body has not been had."""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _same_origin(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def _with_headers(send: Send) -> Send:
    """A ``send`` that adds the security headers, and forbids storing answers unless they say otherwise."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending
