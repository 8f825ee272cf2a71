"""One process that works, and how the server talks to it without ever waiting for it in a thread.

A thread cannot be stopped; a process can. The server and the process share a pair of sockets. What is sent over it are
pickled objects with their length before them; what the process sends is

- :class:`Taken` when it is ready, and when it begins with a request, so that one which hangs is noticed,
- bytes for each part of an answer that is told before it is whole,
- a pair at the end of each: the result, and the error where there is one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from pipeplan.errors import PipeplanError

Tell = Callable[[bytes], None]
"""Takes the next part of an answer."""

_Context = multiprocessing.get_context("spawn")
_LENGTH = struct.Struct("!Q")
_BUFFER = 1 << 20
"""Bytes of an answer that are read ahead."""


class WorkError(Exception):
    """A request that was not answered; the message says why."""


class DiedError(Exception):
    """The process is gone, or does not answer at all."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The process has begun with what it was sent last."""


@dataclass(frozen=True, slots=True)
class Telling:
    """Work that tells parts of its answer before it is done."""

    work: Callable[[Any, Tell], None]


class WorkerProcess:
    """A process that does one thing at a time; :meth:`begun` starts it."""

    def __init__(self, process: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    @classmethod
    async def begun(cls, seconds: float) -> WorkerProcess:
        """A new process that is ready. Raises DiedError where it is not within ``seconds``."""
        near, far = socket.socketpair()
        process = _Context.Process(target=_answer_all, args=(far,), daemon=True)
        try:
            with far:
                process.start()
            found = cls(process, *await asyncio.open_connection(sock=near, limit=_BUFFER))
        except BaseException as error:
            near.close()
            _end(process)
            if isinstance(error, OSError):
                raise DiedError(f"a process cannot be started: {error}") from None
            raise
        try:
            await found._taken(seconds)
        except BaseException:
            found.end()
            raise
        return found

    async def send(self, work: object, argument: object, seconds: float) -> None:
        """Have something done. Raises DiedError where it has not begun within ``seconds``."""
        content = pickle.dumps((work, argument))
        try:
            async with asyncio.timeout(seconds):
                self._writer.writelines((_LENGTH.pack(len(content)), content))
                await self._writer.drain()
        except TimeoutError:
            raise DiedError("it does not take what it is sent") from None
        except OSError:
            raise DiedError("it is gone") from None
        await self._taken(seconds)

    async def receive(self) -> Any:
        """What it sends next. Raises DiedError where it has died."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            raise DiedError("it is gone") from None

    async def _taken(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.receive()
        except TimeoutError:
            raise DiedError("it does not begin") from None

    def end(self) -> None:
        """End it at once, whatever it does; what the system keeps of it goes with a thread's help."""
        _end(self._process)
        self._writer.transport.abort()


def _end(process: Any) -> None:
    """End a process, and have a thread wait until the system has forgotten it."""
    if process.pid is not None:
        process.kill()
        threading.Thread(target=process.join, daemon=True).start()


def _answer_all(near: socket.socket) -> None:
    """Answer requests until the socket is closed, as a worker process does. Ctrl-C is for the server alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()
    with near, near.makefile("rb") as incoming:
        send = _Sender(near)
        with suppress(EOFError, OSError):
            send(Taken())
            while True:
                work, argument = _read(incoming)
                send(Taken())
                send(_answer(work, argument, send))


def _answer(work: Any, argument: Any, send: Tell) -> tuple[Any, Exception | None]:
    try:
        if not isinstance(work, Telling):
            return work(argument), None
        work.work(argument, send)
    except MemoryError:
        return None, WorkError("this does not fit into the server's memory; ask for less")
    except PipeplanError as error:
        return None, error
    except ConnectionError:
        raise
    except Exception as error:
        return None, RuntimeError(f"{type(error).__name__}: {error}")
    return None, None


class _Sender:
    """Sends objects to the server, from any thread of the work."""

    def __init__(self, near: socket.socket) -> None:
        self._near, self._lock = near, threading.Lock()

    def __call__(self, message: object) -> None:
        content = pickle.dumps(message)
        with self._lock:
            self._near.sendall(_LENGTH.pack(len(content)))
            self._near.sendall(content)


def _read(incoming: Any) -> Any:
    """The next request. Raises EOFError where the server is gone."""
    head = incoming.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = incoming.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def _end_with_server() -> None:
    """End this process with the server's, also where that was killed while work is under way here."""
    server = multiprocessing.parent_process()
    if server is not None:
        connection.wait([server.sentinel])
        os._exit(1)
