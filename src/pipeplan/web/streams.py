"""Answers that come line by line while the work goes on, and one of them at a time for a page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fastapi.responses import Response, StreamingResponse

from pipeplan.errors import PipeplanError
from pipeplan.web.faults import UNFORESEEN, fault
from pipeplan.web.json_answers import as_json
from pipeplan.web.records import Fault, Faults
from pipeplan.web.replies import JSON
from pipeplan.web.workers import BusyError, WorkError

_LOG = logging.getLogger("pipeplan.web")

NDJSON = "application/x-ndjson"

_REFUSED = b'{"errors"'
_PATIENCE = 5.0
"""Seconds that a page's new work waits for its former one to end, which it does when its connection is closed."""


async def streamed(lines: AsyncGenerator[bytes]) -> Response:
    """An answer of these lines; a refusal where the first one says what is wrong with the question."""
    first = await anext(lines)
    if first.startswith(_REFUSED):
        # To its end, which is near: what is stopped would cost a process.
        async for _ in lines:
            pass
        return Response(first, 422, media_type=JSON)
    return StreamingResponse(_all(first, lines), media_type=NDJSON)


async def _all(first: bytes, others: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """All lines; an error that comes late is one of them, for the answer has begun."""
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


def _last(found: Fault) -> bytes:
    return as_json(Faults(errors=(found,))) + b"\n"


class Sessions:
    """The pages that have work under way; nothing is kept of one that has none."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._running: dict[str, asyncio.Event] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def alone(self, session: str, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """The lines, as the only work of this session; without a name it has no other.

        Raises
        ------
        BusyError
            If another one does not end.
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
