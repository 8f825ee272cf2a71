"""Requests as they arrive and clients as they leave: bodies bounded in size, time and together, and no work for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 12 << 20
"""The largest request in bytes: a file of the largest size as a JSON string, with the other fields."""

MOST_PARTS = 300_000
"""The most lists, groups and names in a request: to make millions takes seconds, in which nobody else would be answered.

A schedule of 65,536 ranks with its times has 200,000.
"""

_DRAINED = 64 << 20
"""How much of a request that is too large is read and dropped, so that its sender gets to see the answer."""

_HELD = 8 * BODY_LIMIT
"""Bytes of all requests that are answered at one time."""


class TooLargeError(Exception):
    """A body of more than ``BODY_LIMIT`` bytes."""


class TooManyPartsError(Exception):
    """A body of more than ``MOST_PARTS`` lists, groups and names."""


class NoRoomError(Exception):
    """Other bodies take all the room that there is."""


class LeftError(Exception):
    """The client is gone before its request was whole."""


class EndingError(Exception):
    """The server ends."""


class Arrivals:
    """The bodies that are held at one time.

    Parameters
    ----------
    seconds
        How long the next part of a body may take to arrive.
    whole
        How long all of it may, however many parts it has.
    """

    def __init__(self, seconds: float, whole: float) -> None:
        self._seconds, self._whole, self._held = seconds, whole, 0

    @asynccontextmanager
    async def body(self, receive: Receive, headers: Headers) -> AsyncIterator[bytes]:
        """The whole body, which counts as held until the block ends.

        Raises
        ------
        TooLargeError, TooManyPartsError, NoRoomError, LeftError
            Where there is none.
        TimeoutError
            Where it does not arrive in time.
        """
        length = _length(headers)
        if length > _DRAINED:
            raise TooLargeError
        parts: list[bytes] = []
        held = 0
        try:
            size, more = 0, True
            end = asyncio.get_running_loop().time() + self._whole
            while more and size <= _DRAINED:
                message = await self._next(receive, end)
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if max(size, length) <= BODY_LIMIT and self._held + len(part) <= _HELD:
                    parts.append(part)
                    held, self._held = held + len(part), self._held + len(part)
            if max(size, length) > BODY_LIMIT:
                raise TooLargeError
            if held < size:
                raise NoRoomError
            content = b"".join(parts)
            del parts, part, message
            if sum(map(content.count, (b"[", b"{", b":"))) > MOST_PARTS:
                raise TooManyPartsError
            yield content
        finally:
            self._held -= held

    async def _next(self, receive: Receive, end: float) -> Message:
        now = asyncio.get_running_loop().time()
        message = await asyncio.wait_for(receive(), min(self._seconds, max(end - now, 0)))
        if message["type"] == "http.disconnect":
            raise LeftError
        return message


def _length(headers: Headers) -> int:
    """The length that a request claims; anything but a number counts as too large."""
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else _DRAINED + 1


async def answered(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
    """Have the app answer a request whose body has arrived, and stop it when the client leaves before the answer is whole.

    Raises
    ------
    EndingError
        Where the server ends before the answer has begun.
    """
    gone = asyncio.Event()
    begun = whole = False

    async def replayed() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def sending(message: MutableMapping[str, Any]) -> None:
        nonlocal begun, whole
        begun = True
        whole = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    left = [body]
    del body
    answer = asyncio.ensure_future(app(scope, replayed, sending))
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
        gone.set()
        if not answer.done() and not whole:
            answer.cancel()
            with suppress(asyncio.CancelledError):
                await answer
            return
        await answer
    except asyncio.CancelledError:
        # Only a server that ends cancels what answers.
        if not begun:
            raise EndingError from None
    finally:
        for task in (answer, leaving):
            task.cancel()


async def _left(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
