"""Answers sent line by line while the work goes on, one at a time for each page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fastapi.responses import Response, StreamingResponse

from pipeplan.extensions.web.faults import UNFORESEEN, fault, json_line
from pipeplan.extensions.web.records import Fault, Faults
from pipeplan.extensions.web.workers import BusyError, WorkError
from pipeplan.foundation.errors import PipeplanError

_LOG = logging.getLogger("pipeplan.extensions.web")

NDJSON = "application/x-ndjson"

_PATIENCE = 5.0
"""Seconds that new work of a page waits for its previous work to end, which closing the connection triggers."""


async def streamed(lines: AsyncGenerator[bytes]) -> Response:
    """Return an answer of these lines. Raises the error of work that fails before its first line."""
    first = await anext(lines)
    return StreamingResponse(_all(first, lines), media_type=NDJSON)


async def _all(first: bytes, others: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Yield all lines; once the answer has begun, an error is a line, too."""
    async with aclosing(others):
        yield first
        try:
            async for line in others:
                yield line
        except WorkError as error:
            yield _last(Fault(field="", message=str(error)))
        except PipeplanError as error:
            yield _last(fault(error))
        except Exception as error:
            _LOG.error(UNFORESEEN, exc_info=error)
            yield _last(Fault(field="", message=f"{UNFORESEEN}; please report it"))


def _last(fault: Fault) -> bytes:
    return json_line(Faults(errors=(fault,)))


class Sessions:
    """Pages whose work is in progress."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._running: dict[str, asyncio.Event] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def alone(self, session: str, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the lines as the only work of this session; without a session, independently.

        Raises BusyError if the previous work of the session does not end in time.
        """
        async with aclosing(lines), self._turn(session):
            async for line in lines:
                yield line

    @asynccontextmanager
    async def _turn(self, session: str) -> AsyncIterator[Any]:
        if not session:
            yield
            return
        try:
            async with asyncio.timeout(self._patience):
                while (other := self._running.get(session)) is not None:
                    await other.wait()
        except TimeoutError:
            raise BusyError("this page is searching already: stop that search first") from None
        ended = self._running[session] = asyncio.Event()
        try:
            yield
        finally:
            del self._running[session]
            ended.set()
