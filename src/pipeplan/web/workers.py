"""Processes that do the work, so that an answer that takes too long or too much memory can be ended.

A thread cannot be stopped; a process can. Each works on one request at a time, and one that was killed is replaced when
the next request comes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Tell = Callable[[bytes], None]
"""Takes the next part of an answer."""

_Result = TypeVar("_Result")
_Context = multiprocessing.get_context("spawn")


class WorkError(Exception):
    """A request that was not answered; the message says why."""


class BusyError(WorkError):
    """Too many requests are waiting."""


class TooSlowError(WorkError):
    """The answer took too long."""


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
    """

    def __init__(self, count: int = 2, *, seconds: float = 30.0, waiting: int = 16) -> None:
        self._count, self._seconds, self._most = count, seconds, count + waiting
        self._free: list[_Process] = []
        self._turn = asyncio.Semaphore(count)
        self._asked = 0

    async def ask(self, work: Callable[[Any], _Result], argument: object) -> _Result:
        """The result of ``work(argument)``, which must be a function of a module.

        Raises
        ------
        BusyError
            If too many wait.
        TooSlowError
            After ``seconds`` of work.
        WorkError
            If the process died, most likely for lack of memory.
        """
        if self._asked >= self._most:
            raise BusyError("too many requests at once; try again in a moment")
        self._asked += 1
        try:
            async with self._turn:
                process = self._free.pop() if self._free else _Process()
                # Shielded, so that a client that disconnects does not leave a process with an answer that nobody reads.
                return await asyncio.shield(asyncio.to_thread(self._run, process, work, argument))
        finally:
            self._asked -= 1

    async def stream(self, work: Callable[[Any, Tell], None], argument: object) -> AsyncGenerator[bytes]:
        """What ``work(argument, tell)`` tells, as it comes; ``work`` must be a function of a module.

        Whoever stops listening ends the work.

        Raises
        ------
        BusyError, TooSlowError, WorkError
            As :meth:`ask` does; ``seconds`` are from one part to the next.
        """
        if self._asked >= self._most:
            raise BusyError("too many requests at once; try again in a moment")
        self._asked += 1
        try:
            async with self._turn:
                process = self._free.pop() if self._free else _Process()
                whole = False
                try:
                    process.send(_Telling(work), argument)
                    while (part := await asyncio.to_thread(process.receive, self._seconds)) is not None:
                        yield part
                    whole = True
                finally:
                    if whole:
                        self._free.append(process)
                    else:
                        process.end()
        finally:
            self._asked -= 1

    def _run(self, process: _Process, work: Callable[[Any], _Result], argument: object) -> _Result:
        try:
            result, error = process.ask(work, argument, self._seconds)
        except WorkError:
            process.end()
            raise
        self._free.append(process)
        if error is not None:
            raise error
        answer: _Result = result
        return answer

    async def start(self, work: Callable[[Any], object], argument: object) -> None:
        """Start all processes and give each some work, so that the first request finds them warm."""
        await asyncio.gather(*(self.ask(work, argument) for _ in range(self._count)))

    def end(self) -> None:
        """End all processes that are not at work."""
        while self._free:
            self._free.pop().end()


_ENDED_EARLY = "the work on this ended early, probably for lack of memory; ask for less"


@dataclass(frozen=True, slots=True)
class _Telling:
    """Work that tells parts of its answer before it is done."""

    work: Callable[[Any, Tell], None]


class _Process:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, far = _Context.Pipe()
        self._process = _Context.Process(target=_answer_all, args=(far,), daemon=True)
        self._process.start()
        far.close()

    def send(self, work: _Telling, argument: object) -> None:
        """Have something done. Raises WorkError where the process has died."""
        try:
            self._pipe.send((work, argument))
        except OSError:
            raise WorkError(_ENDED_EARLY) from None

    def receive(self, seconds: float) -> bytes | None:
        """The next part of what is told, None at its end. Raises WorkError where there is none in time, or it failed."""
        try:
            if not self._pipe.poll(seconds):
                raise TooSlowError(f"this takes more than {seconds:g} seconds; ask for less")
            part = self._pipe.recv()
        except (EOFError, OSError):
            raise WorkError(_ENDED_EARLY) from None
        if isinstance(part, bytes):
            return part
        _, error = part
        if error is not None:
            raise error
        return None

    def ask(self, work: Callable[[Any], Any], argument: object, seconds: float) -> tuple[Any, Exception | None]:
        """The result, and the error where there is one."""
        try:
            self._pipe.send((work, argument))
            if not self._pipe.poll(seconds):
                raise TooSlowError(f"this takes more than {seconds:g} seconds; ask for less")
            answer: tuple[Any, Exception | None] = self._pipe.recv()
            return answer
        except (EOFError, OSError):
            raise WorkError(_ENDED_EARLY) from None

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _answer_all(pipe: Connection) -> None:
    """Answer requests until the pipe is closed, as a worker process does. Ctrl-C is for the server alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            work, argument = pipe.recv()
        except EOFError:
            return
        try:
            if isinstance(work, _Telling):
                work.work(argument, pipe.send)
                pipe.send((None, None))
            else:
                pipe.send((work(argument), None))
        except MemoryError:
            pipe.send((None, WorkError("this does not fit into the server's memory; ask for less")))
        except Exception as error:
            pipe.send((None, RuntimeError(f"{type(error).__name__}: {error}")))
