"""Connections that hold what they have for a bounded time, and give way to others.

uvicorn bounds neither the time that the head of a request may take, nor that in which an answer is read, and where there are
too many connections it refuses the new ones: a few idle ones could keep everybody out. Here a head, an idle connection and
an answer that nobody reads have some seconds each; and where there is no room for a new connection, the one of the busiest
client that has waited longest gives way. Those whose request is whole and not yet answered are never given up, and there
are never many: work has its own queue. So there is always room for one more.

This module alone relies on how uvicorn's protocol of HTTP/1.1 is made.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeplan.web.faults import Fault, refusal
from pipeplan.web.guard import SECURITY_HEADERS

_HEAD = 10.0
"""Seconds from the beginning of a connection, or the end of an answer, until the next head is whole."""

_STUCK = 20.0
"""Seconds in which a client reads at least ``_READ`` bytes of what waits for it."""

_READ = 16 << 10

_LOOK = 1.0
"""Seconds between two looks at a connection."""

_AHEAD = 64 << 10
"""Bytes that a client may send after a request before that is answered."""

_MOST = 512
"""Connections at one time, where the system allows as many."""


def most_connections() -> int:
    """How many connections there may be: half of the descriptors that this process may have, at most."""
    if sys.platform == "win32":
        return _MOST
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(8, min(_MOST, soft // 2))


class BoundedConnection(H11Protocol):
    """A connection with times to keep, which gives way where there is no room."""

    head_seconds = _HEAD
    stuck_seconds = _STUCK
    look_seconds = _LOOK
    most = most_connections()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the connection, and have another one give way where there are too many."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._unread: tuple[float, int] | None = None
        self._ahead = 0
        self._look_task = self.loop.call_later(self.look_seconds, self._look)
        if len(self.connections) > self.most and not _make_room(self, self.connections):
            self._refuse(503, "too many connections at once; try again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching it."""
        self._look_task.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what comes; a client that leaves is noticed also where it sent more than one request at once."""
        self._ahead += len(data) if self.conn.their_state is h11.DONE else 0
        super().data_received(data)
        if self.transport.is_closing() or not self.flow.read_paused or self.conn.their_state is not h11.DONE:
            return
        # Reading has been paused for requests that come after one that is not answered yet.
        if self._ahead > _AHEAD:
            self.transport.abort()
        else:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Wait for the next head from now on."""
        self.since = self.loop.time()
        self._ahead = 0
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as every other refusal is; an answer that is under way ends there."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(400, "this is not HTTP that can be read here")
        else:
            self.transport.abort()

    @property
    def waits(self) -> bool:
        """Whether the client is to act next: to send a head or the rest of a request, or to read what is answered."""
        return self.idle or self.cycle.more_body

    @property
    def idle(self) -> bool:
        """Whether there is no request."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def give_way(self) -> None:
        """End at once, whatever is under way."""
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        now = self.loop.time()
        self._look_task = self.loop.call_later(self.look_seconds, self._look)
        if self._is_stuck(now):
            self.transport.abort()
        elif self._unread is None and self.idle and now - self.since > self.head_seconds:
            self._time_out()

    def _is_stuck(self, now: float) -> bool:
        """Whether what waits for the client is not read."""
        size = self.transport.get_write_buffer_size()
        if size == 0:
            if self._unread is not None:
                self._unread, self.since = None, now
            return False
        if self._unread is None or size <= self._unread[1] - _READ:
            self._unread = (now, size)
        return now - self._unread[0] > self.stuck_seconds

    def _time_out(self) -> None:
        if self.transport.is_closing():
            self.transport.abort()
        elif self.conn.trailing_data[0]:
            self._refuse(408, "the request did not arrive in time")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer without the app, and close."""
        answer = refusal(status, Fault(field="", message=message))
        headers = [*answer.raw_headers, (b"connection", b"close"), (b"cache-control", b"no-store")]
        headers += [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
        events: tuple[Any, ...] = (
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        if not self.idle:
            # The app has nobody to answer any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def _make_room(new: BoundedConnection, connections: Iterable[Any]) -> bool:
    """Have another connection give way; whether there was one that could."""
    others = [each for each in connections if each is not new and isinstance(each, BoundedConnection)]
    held = Counter(each.client[0] for each in others if each.client)
    waiting = [each for each in others if each.waits]
    if not waiting:
        return False
    busiest = max(waiting, key=lambda each: (held[each.client[0]] if each.client else 0, each.idle, -each.since))
    busiest.give_way()
    return True
