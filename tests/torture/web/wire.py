"""HTTP by hand: what is sent is bytes, right or wrong, and what comes back is read as it should be."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.torture.suite import Found

PATIENCE = 100.0
"""Seconds in which a client waits for an answer."""


@dataclass(frozen=True)
class Answer:
    """An answer as it came; ``whole`` where its end was reached as it had been announced."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    whole: bool = True

    def header(self, name: str) -> str:
        """A header's value; empty without one."""
        return next((value for key, value in self.headers if key == name), "")

    def json(self) -> Any:
        """The body as strict JSON. Raises Found."""
        try:
            return json.loads(self.body.decode(), parse_constant=_no_json)
        except (ValueError, RecursionError) as error:
            raise Found(f"an answer is no JSON: {error}: {self.body[:200]!r}") from None


def _no_json(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


class Wire:
    """A connection to the server.

    Parameters
    ----------
    port
        Of 127.0.0.1, where alone anything is sent.
    receive_buffer
        Of the system, in bytes; None for its own.
    """

    def __init__(self, port: int, *, receive_buffer: int | None = None, seconds: float = PATIENCE) -> None:
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(seconds)
        self._socket.connect(("127.0.0.1", port))
        self._ahead = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def reset(self) -> None:
        """Hang up with a reset in place of an end."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()

    def send(self, *parts: bytes) -> None:
        """Send bytes; what the other side does not want any more is dropped."""
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                self._socket.sendall(part)

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def answer(self, *, head: bool = False) -> Answer | None:
        """The next answer; None where the other side has hung up instead. Raises TimeoutError."""
        try:
            start = self._until(b"\r\n\r\n")
        except ConnectionResetError:
            return None
        if start is None:
            return None
        first, *lines = start.decode("latin-1").split("\r\n")
        status = int(first.split()[1])
        if status == 100:
            return self.answer(head=head)
        headers = tuple(
            (name.strip().lower(), value.strip()) for name, _, value in (each.partition(":") for each in lines)
        )
        named = dict(headers)
        if head or status == 304:
            return Answer(status, headers, b"")
        if named.get("transfer-encoding") == "chunked":
            return self._chunked(status, headers)
        if "content-length" in named:
            length = int(named["content-length"])
            body = self._exactly(length)
            return Answer(status, headers, body, len(body) == length)
        return Answer(status, headers, self._rest())

    def _chunked(self, status: int, headers: tuple[tuple[str, str], ...]) -> Answer:
        parts: list[bytes] = []
        while (line := self._until(b"\r\n")) is not None:
            size = int(line, 16)
            part = self._exactly(size)
            if len(part) < size or self._until(b"\r\n") is None:
                break
            if size == 0:
                return Answer(status, headers, b"".join(parts))
            parts.append(part)
        return Answer(status, headers, b"".join(parts), whole=False)

    def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._ahead:
            part = self._socket.recv(1 << 16)
            if not part:
                return None
            self._ahead += part
        found, _, self._ahead = self._ahead.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        parts = [self._ahead]
        have = len(self._ahead)
        with suppress(ConnectionResetError):
            while have < size:
                part = self._socket.recv(min(1 << 20, size - have + 4096))
                if not part:
                    break
                parts.append(part)
                have += len(part)
        all_of = b"".join(parts)
        self._ahead = all_of[size:]
        return all_of[:size]

    def _rest(self) -> bytes:
        parts, self._ahead = [self._ahead], b""
        with suppress(ConnectionResetError):
            while part := self._socket.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)


def request(
    method: str,
    path: str,
    body: bytes = b"",
    *,
    headers: Mapping[str, str | None] | Iterable[tuple[str, str | None]] = (),
    version: str = "HTTP/1.1",
) -> bytes:
    """A request as bytes; what is given among ``headers`` stands for what would be said without, None for nothing."""
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    named = {name.lower() for name, _ in given}
    own: dict[str, str] = {"Host": "localhost"}
    if method != "GET" or body:
        own |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [*((name, value) for name, value in own.items() if name.lower() not in named), *given]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines if value is not None).encode("latin-1")
    return f"{method} {path} {version}\r\n".encode("latin-1", "replace") + head + b"\r\n" + body


def exchange(port: int, sent: bytes, *, head: bool = False) -> Answer | None:
    """What is answered to some bytes on a connection of their own."""
    with Wire(port) as wire:
        wire.send(sent)
        return wire.answer(head=head)
