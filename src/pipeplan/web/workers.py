"""Processes that do the work, so that an answer that takes too long or too much memory can be ended.

Each works on one request at a time. Whoever stops waiting leaves the queue at once, and work that nobody waits for any more
is ended. A process that died takes no request with it: what it was asked is asked once more of another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pipeplan.web.processes import DiedError, Tell, Telling, WorkerProcess, WorkError

__all__ = ["BusyError", "TooSlowError", "WorkError", "Workers"]

_Result = TypeVar("_Result")

_GRACE = 1.0
"""Seconds in which work that nobody waits for may still end by itself; on a slow machine, as long as its processes take to
start: what is ended earlier costs more than it spares."""

_PATIENCE = 30.0
"""Seconds that a request waits for its turn."""

_BEGIN = 10.0
"""Seconds after which a process that has not begun with a request hangs."""

_START = 60.0
"""The same of a process that is started."""

_LIVES = 2
"""How many processes a request may cost."""


class BusyError(WorkError):
    """Too many requests are waiting."""


class TooSlowError(WorkError):
    """The answer took too long."""


_BUSY = "too many requests at once; try again in a moment"


class Workers:
    """A few processes and a bounded queue in front of them.

    Parameters
    ----------
    count
        How many processes, and so how many requests are worked on at once.
    seconds
        How long a request may take.
    waiting
        How many more requests may wait for their turn.
    begin
        Seconds after which a process that has not begun with a request is taken for dead.
    patience
        Seconds that a request waits for its turn.
    """

    def __init__(
        self,
        count: int = 2,
        *,
        seconds: float = 30.0,
        waiting: int = 16,
        begin: float = _BEGIN,
        patience: float = _PATIENCE,
    ) -> None:
        self._count, self._seconds, self._most, self._begin = count, seconds, count + waiting, begin
        self._patience, self._grace = patience, _GRACE
        self._free: list[WorkerProcess] = []
        self._turn = asyncio.Semaphore(count)
        self._asked = 0
        self._warm: tuple[Callable[[Any], object], object] | None = None
        self._behind: set[asyncio.Task[None]] = set()

    async def ask(self, work: Callable[[Any], _Result], argument: object) -> _Result:
        """The result of ``work(argument)``, which must be a function of a module that may be called twice.

        Who is cancelled leaves the queue at once; work under way has a second to end, and then its process is ended.

        Raises
        ------
        BusyError
            If too many wait, or this one for too long.
        TooSlowError
            After ``seconds`` of work.
        WorkError
            If two processes died of it, most likely for lack of memory.
        """
        with self._counted():
            await self._take_turn()
            tidy: Coroutine[Any, Any, None] | None = None
            process: WorkerProcess | None = None
            try:
                for _ in range(_LIVES):
                    try:
                        process = await self._process(work, argument)
                        async with asyncio.timeout(self._seconds):
                            answer = await process.receive()
                    except DiedError:
                        self._ended(process)
                        process = None
                        continue
                    self._free.append(process)
                    process = None
                    result: _Result = _result(answer)
                    return result
                raise WorkError(_died(work))
            except TimeoutError:
                tidy = self._replaced()
                raise TooSlowError(_too_slow(self._seconds)) from None
            except asyncio.CancelledError:
                if process is not None:
                    tidy, process = self._given_up(process), None
                raise
            finally:
                self._ended(process)
                self._pass_on(tidy)

    async def stream(self, work: Callable[[Any, Tell], None], argument: object) -> AsyncGenerator[bytes]:
        """What ``work(argument, tell)`` tells, as it comes; ``work`` must be a function of a module.

        Whoever stops listening ends the work.

        Raises
        ------
        BusyError, TooSlowError, WorkError
            As :meth:`ask` does; ``seconds`` are from one part to the next. What has begun to tell is not begun again.
        """
        with self._counted():
            await self._take_turn()
            process: WorkerProcess | None = None
            try:
                process, part = await self._first(work, argument)
                while isinstance(part, bytes):
                    yield part
                    async with asyncio.timeout(self._seconds):
                        part = await process.receive()
                self._free.append(process)
                process = None
                _result(part)
            except TimeoutError:
                raise TooSlowError(_too_slow(self._seconds)) from None
            except DiedError:
                raise WorkError("the process at work on this ended, and with it the answer; ask again") from None
            finally:
                self._ended(process)
                self._turn.release()

    async def _first(self, work: Callable[[Any, Tell], None], argument: object) -> tuple[WorkerProcess, Any]:
        """A process at work, and the first part of what it tells."""
        for _ in range(_LIVES):
            process = None
            try:
                process = await self._process(Telling(work), argument)
                async with asyncio.timeout(self._seconds):
                    return process, await process.receive()
            except DiedError:
                self._ended(process)
            except BaseException:
                self._ended(process)
                raise
        raise WorkError(_died(work))

    async def _process(self, work: object, argument: object) -> WorkerProcess:
        """A process that has begun with this: one that is free, or a new one. Raises DiedError where none does.

        Those that ended while they were free, whoever ended them, are no fault of the work.
        """
        while self._free:
            process = self._free.pop()
            try:
                await self._begun(process, work, argument, self._begin)
            except DiedError:
                continue
            return process
        process = await self._started()
        await self._begun(process, work, argument, _START)
        return process

    async def _started(self) -> WorkerProcess:
        """A new process; notes how long that takes here."""
        clock = asyncio.get_running_loop().time
        since = clock()
        process = await WorkerProcess.begun(_START)
        self._grace = max(_GRACE, clock() - since)
        return process

    async def _begun(self, process: WorkerProcess, work: object, argument: object, seconds: float) -> None:
        try:
            await process.send(work, argument, seconds)
        except BaseException:
            process.end()
            raise

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._turn.acquire()
        except TimeoutError:
            raise BusyError(_BUSY) from None

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._asked >= self._most:
            raise BusyError(_BUSY)
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    def _ended(self, process: WorkerProcess | None) -> None:
        if process is not None:
            process.end()

    def _pass_on(self, first: Coroutine[Any, Any, None] | None) -> None:
        """Give the turn to the next one, after what has to be done ``first``."""
        if first is None:
            self._turn.release()
            return
        task = asyncio.get_running_loop().create_task(first)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        task.add_done_callback(lambda _: self._turn.release())

    async def _given_up(self, process: WorkerProcess) -> None:
        """Let work that nobody waits for end within its grace; otherwise end it, and start another process."""
        try:
            async with asyncio.timeout(self._grace):
                await process.receive()
        except (TimeoutError, DiedError):
            process.end()
            await self._replaced()
        except BaseException:
            process.end()
            raise
        else:
            self._free.append(process)

    async def _replaced(self) -> None:
        """Start a process where one was ended, so that the next request finds it warm."""
        if self._warm is None or len(self._free) >= self._count:
            return
        process: WorkerProcess | None = None
        try:
            async with asyncio.timeout(self._seconds):
                process = await self._started()
                await process.send(*self._warm, _START)
                await process.receive()
        except (TimeoutError, DiedError):
            self._ended(process)
        except BaseException:
            self._ended(process)
            raise
        else:
            self._free.append(process)

    async def start(self, work: Callable[[Any], object], argument: object) -> None:
        """Start all processes and give each some work, so that the first request finds them warm."""
        self._warm = (work, argument)
        await asyncio.gather(*(self.ask(work, argument) for _ in range(self._count)))

    def end(self) -> None:
        """End all processes that are not at work for somebody."""
        for task in self._behind:
            task.cancel()
        while self._free:
            self._free.pop().end()


def _result(answer: tuple[Any, Exception | None]) -> Any:
    result, error = answer
    if error is not None:
        raise error
    return result


def _too_slow(seconds: float) -> str:
    return f"this takes more than {seconds:g} seconds; ask for less"


def _died(work: Callable[..., object]) -> str:
    name = work.__name__.replace("_", " ")
    return f"two processes ended over this ({name}), probably for lack of memory; ask for less"
