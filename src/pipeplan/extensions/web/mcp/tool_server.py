"""Server of the Model Context Protocol on the standard streams. Needs the extra ``mcp``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import mcp_types as types
from anyio import to_process
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

from pipeplan import __version__
from pipeplan.extensions.web.mcp.tools import EVERY, TOOLS, answer_of
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
activations, such as 8act. Arguments have Python's names; a tool takes its further options in `settings`, or beside the \
others, and `pipeplan COMMAND --help-all` describes them. Paths are relative to the server's folder; nothing is written \
unless `output` names a file. An answer begins with `headline` and is short: of a value for each rank, it has the largest; \
`not_shown` names the rest, which `detail` returns. At the time limit, a search or a plan returns its best result so far."""


def create_server(*, seconds: float) -> Server[Any]:
    """Return a server whose calls end after so many seconds."""
    turn, processes = anyio.Semaphore(AT_ONCE), anyio.CapacityLimiter(AT_ONCE)
    listed = [
        types.Tool(name=name, description=tool.description, input_schema=tool.schema) for name, tool in TOOLS.items()
    ]

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def answered(name: str, call: dict[str, Any], progress_file: Path | None) -> dict[str, Any] | str:
        """Return the answer of a call, or the message of its error; a cancelled call ends its process."""
        try:
            return await to_process.run_sync(
                answer_of, name, call, seconds, progress_file, cancellable=True, limiter=processes
            )
        except anyio.BrokenWorkerProcess:
            return "the process ended early, probably out of memory; try a smaller request"

    async def call_tool(context: ServerRequestContext[Any], call: types.CallToolRequestParams) -> types.CallToolResult:
        if call.name not in TOOLS:
            return _error(str(UnknownNameError("tool", call.name, TOOLS)))
        async with turn:
            try:
                with anyio.fail_after(seconds + GRACE):
                    async with _reporting_progress(context, call.name) as file:
                        answer = await answered(call.name, call.arguments or {}, file)
            except TimeoutError:
                return _error(f"no answer within {seconds:g} s: try a smaller request")
        if isinstance(answer, str):
            return _error(answer)
        # Once, as text: clients that pass on both the text and structured content would double it.
        return types.CallToolResult(content=[types.TextContent(text=json_text(answer, compact=True))])

    return Server(
        "pipeplan",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@asynccontextmanager
async def _reporting_progress(context: ServerRequestContext[Any], name: str) -> AsyncIterator[Path | None]:
    """Report the progress that a call writes to the yielded file; None for a tool without progress."""
    if TOOLS[name].progress is None:
        yield None
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, "progress.json")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report_progress, context, file)
            yield file
            tasks.cancel_scope.cancel()


async def _report_progress(context: ServerRequestContext[Any], file: Path) -> None:
    """Report the content of a file whenever its share is greater than before."""
    reported = 0.0
    while True:
        await anyio.sleep(EVERY)
        with suppress(FileNotFoundError):
            share, words = json.loads(file.read_text(encoding="utf-8"))
            if share > reported:
                reported = share
                await context.session.report_progress(share, 1.0, words)


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
