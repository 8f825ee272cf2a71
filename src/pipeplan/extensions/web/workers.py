"""Worker processes, so that an answer that takes too long can be stopped.

Requests share a pool of warm processes, which kills a process after its time limit or when its client disconnects. Plans and
searches, which report their progress, run in a process of their own, which serves the next one if it ended in time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from pipeplan.foundation.errors import PipeplanError

Tell = Callable[[bytes], None]
"""Receives the next part of an answer."""

_Result = TypeVar("_Result")

_SPAWN = multiprocessing.get_context("spawn")


class WorkError(Exception):
    """A request that was not answered; the message gives the reason."""


class BusyError(WorkError):
    """Too many requests are waiting."""


class TooSlowError(WorkError):
    """The answer took too long."""


class Workers:
    """Worker processes with a bounded queue.

    Parameters
    ----------
    count
        Number of requests that are worked on at once.
    seconds
        Time limit of a request, or of the wait from one part of an answer to the next.
    waiting
        Number of further requests that may wait for their turn.
    """

    def __init__(self, count: int = 2, *, seconds: float = 30.0, waiting: int = 16) -> None:
        self._count, self._seconds, self._most = count, seconds, count + waiting
        self._turn = asyncio.Semaphore(count)
        self._asked = 0
        self._pool: ProcessPool | None = None
        self._idle: list[tuple[BaseProcess, Connection]] = []

    async def ask(self, work: Callable[[Any], _Result], argument: object) -> _Result:
        """Return ``work(argument)``; ``work`` must be a function of a module. Cancelling ends its process."""
        if self._pool is None:
            self._pool = ProcessPool(max_workers=self._count, initializer=_ignore_interrupts, context=_SPAWN)
        with self._counted():
            try:
                result: _Result = await asyncio.wrap_future(
                    self._pool.schedule(work, args=(argument,), timeout=self._seconds)
                )
            except TimeoutError:
                raise TooSlowError(f"this takes more than {self._seconds:g} seconds; try a smaller request") from None
            except (ProcessExpired, MemoryError):
                raise WorkError(_DIED) from None
            return result

    async def stream(self, work: Callable[[Any, Tell], None], argument: object) -> AsyncGenerator[bytes]:
        """Yield the parts of an answer that ``work(argument, tell)`` sends. Closing the generator stops the work.

        Raises BusyError, TooSlowError or WorkError as :meth:`ask` does.
        """
        with self._counted():
            async with self._turn:
                process, connection = self._waiting() or _teller()
                part: bytes | Exception | None = WorkError(_DIED)
                try:
                    with suppress(OSError):  # it has died, as the first answer tells
                        await asyncio.to_thread(connection.send, (work, argument))
                    while isinstance(part := await self._next(connection), bytes):
                        yield part
                finally:
                    if part is None or isinstance(part, PipeplanError):
                        self._idle.append((process, connection))
                    else:
                        process.kill()  # the connection's end of file, for which a thread may still wait
                        await asyncio.to_thread(process.join)
                        connection.close()
                if part is not None:
                    raise part

    def _waiting(self) -> tuple[BaseProcess, Connection] | None:
        """Return a living process that waits for work, if there is one."""
        while self._idle:
            process, connection = self._idle.pop()
            if process.is_alive():
                return process, connection
            connection.close()
        return None

    async def _next(self, connection: Connection) -> bytes | Exception | None:
        """Return the next part of an answer, the error that ended it, or None at its end."""
        try:
            async with asyncio.timeout(self._seconds):
                part: bytes | Exception | None = await asyncio.to_thread(connection.recv)
        except TimeoutError:
            return TooSlowError(f"this takes more than {self._seconds:g} seconds; try a smaller request")
        except (EOFError, OSError):
            return WorkError(_DIED)
        return part

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._asked >= self._most:
            raise BusyError("server busy: too many requests, retry later")
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    async def start(self, work: Callable[[Any], object], argument: object) -> None:
        """Warm up each process of the pool with some work."""
        await asyncio.gather(*(self.ask(work, argument) for _ in range(self._count)))

    def end(self) -> None:
        """End the processes that wait for work, and those of the pool."""
        for process, connection in self._idle:
            process.kill()
            process.join()
            connection.close()
        self._idle.clear()
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()


@dataclass(frozen=True, slots=True)
class Pools:
    """Worker processes of the app: plans and searches have their own, and delay no other request."""

    answers: Workers
    plans: Workers
    searches: Workers

    def end(self) -> None:
        """End all processes."""
        for workers in (self.answers, self.plans, self.searches):
            workers.end()


_DIED = "the process that worked on this ended, probably out of memory; try a smaller request"


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the server handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _teller() -> tuple[BaseProcess, Connection]:
    """Start a process that tells the parts of answers, and return it with the connection to it."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_tell_all, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _tell_all(connection: Connection) -> None:
    """Receive work until the server closes the connection or ends."""
    _ignore_interrupts()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            work, argument = connection.recv()
            connection.send(_told(work, argument, connection.send))


def _told(work: Callable[[Any, Tell], None], argument: object, tell: Tell) -> Exception | None:
    """Send each part of an answer, and return the error that ended it."""
    try:
        work(argument, tell)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except MemoryError:
        return WorkError(_DIED)
    except PipeplanError as error:
        return error
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return None
