"""Server of the Model Context Protocol on the standard streams. Needs the extra ``mcp``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import anyio
import mcp_types as types
from anyio import to_process
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

from pipeplan import __version__
from pipeplan.extensions.web.mcp.tools import TOOLS, answer_of
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import UnknownNameError

AT_ONCE = 2
"""Maximum number of calls that run at the same time; further calls wait."""

GRACE = 10.0
"""Seconds that a call has after its time limit to answer with what it has."""

PATIENCE = 2.0
"""Seconds that calls have to end after a signal."""

INSTRUCTIONS = """pipeplan answers questions about pipeline-parallel training: which schedule, layout and degrees of \
parallelism to train with, how long a step takes, how much memory each rank needs, and why ranks idle.

All times have the same unit, any one; without costs, a forward takes 1 and a backward 2. A list has one value per stage, \
or one per rank, which its chunks share. Sizes are bytes, or texts such as 12GiB; a memory limit may also be in \
activations, such as 8act. Paths are relative to the server's folder. An answer is short: of a value for each rank, it has \
the largest; `details` returns everything. At the time limit, a search or a plan returns its best result so far."""


def create_server(*, seconds: float) -> Server[Any]:
    """Return a server whose calls end after so many seconds."""
    turn, processes = anyio.Semaphore(AT_ONCE), anyio.CapacityLimiter(AT_ONCE)
    listed = [types.Tool(name=name, description=tool.about, input_schema=tool.schema) for name, tool in TOOLS.items()]

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: ServerRequestContext[Any], call: types.CallToolRequestParams) -> types.CallToolResult:
        if call.name not in TOOLS:
            return _error(str(UnknownNameError("tool", call.name, TOOLS)))
        async with turn:
            try:
                with anyio.fail_after(seconds + GRACE):
                    answer = await to_process.run_sync(
                        answer_of, call.name, call.arguments or {}, seconds, cancellable=True, limiter=processes
                    )
            except TimeoutError:
                return _error(f"no answer within {seconds:g} s: try a smaller request")
            except anyio.BrokenWorkerProcess:
                return _error("the process ended early, probably out of memory; try a smaller request")
        if isinstance(answer, str):
            return _error(answer)
        text = f"{answer['headline']}\n{json_text(answer, compact=True)}"
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    return Server(
        "pipeplan",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def serve(*, seconds: float) -> None:
    """Serve on the standard streams until the client closes them, or Ctrl-C or SIGTERM ends the server."""
    # Modules in the working directory must not take the place of Python's own in the processes of calls.
    os.environ["PYTHONSAFEPATH"] = "1"
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end() -> None:
        """Cancel the calls, which kills their processes."""
        task.cancel()
        # A call whose process is just being started may outlive the cancellation; that process ends with its pipe.
        loop.call_later(PATIENCE, os._exit, 130)

    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
    server = create_server(seconds=seconds)
    async with stdio_server() as (reader, writer):
        try:
            await server.run(reader, writer, server.create_initialization_options())
        except asyncio.CancelledError:
            # A thread still waits for standard input: a regular exit would wait for it.
            os._exit(130)
