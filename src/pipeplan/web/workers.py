"""Worker processes, so that an answer that takes too long can be stopped.

Requests share a pool of warm processes, which kills a process after its time limit or when its client disconnects. Plans and
searches, which report their progress, run in one process each.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from pipeplan.errors import PipeplanError

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
                reader, writer = _SPAWN.Pipe(duplex=False)
                process = _SPAWN.Process(target=_tell_all, args=(work, argument, writer), daemon=True)
                process.start()
                writer.close()
                try:
                    while isinstance(part := await self._next(reader), bytes):
                        yield part
                finally:
                    process.kill()  # the reader's end of file, for which a thread may still wait
                    await asyncio.to_thread(process.join)
                    reader.close()
                if part is not None:
                    raise part

    async def _next(self, reader: Connection) -> bytes | Exception | None:
        """Return the next part of an answer, the error that ended it, or None at its end."""
        try:
            async with asyncio.timeout(self._seconds):
                part: bytes | Exception | None = await asyncio.to_thread(reader.recv)
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
        """End the processes of the pool."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()


_DIED = "the process that worked on this ended, probably out of memory; try a smaller request"


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the server handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tell_all(work: Callable[[Any, Tell], None], argument: object, writer: Connection) -> None:
    """Send each part of an answer, then None or the error that ended it."""
    _ignore_interrupts()
    end: Exception | None = None
    try:
        work(argument, writer.send)
    except BrokenPipeError:
        return  # the server has ended
    except MemoryError:
        end = WorkError(_DIED)
    except PipeplanError as error:
        end = error
    except Exception as error:
        end = RuntimeError(f"{type(error).__name__}: {error}")
    writer.send(end)
