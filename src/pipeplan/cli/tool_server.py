"""Server of the Model Context Protocol on the standard streams. Needs the extra ``mcp``."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

from pipeplan import __version__
from pipeplan.cli.tool_calls import called
from pipeplan.cli.tools import Tool
from pipeplan.errors import PipeplanError, UnknownNameError

AT_ONCE = 2
"""Maximum number of calls that run at the same time; further calls wait."""

INSTRUCTIONS = """pipeplan answers questions about pipeline-parallel training: which schedule, layout and degrees of \
parallelism to train with, how long a step takes, how much memory each rank needs, and why ranks idle.

- plan: a model, a cluster and a batch to a training configuration; estimate: time and memory of given configurations.
- compare: all schedules for a shape and costs; simulate: one of them; explain: why its ranks idle, and what would help.
- search: a better schedule under a memory limit; pareto: time against memory; steady-state: time per further microbatch.
- check: is a schedule valid, and does a trainer run it; export: files of PyTorch, torchtitan, Megatron, ...
- list: what exists.

All times have the same unit, any one; without costs, a forward takes 1 and a backward 2. A list has one value per stage, \
or one per rank, which its chunks share. Sizes are bytes, or texts such as 12GiB; a memory limit may also be in \
activations, such as 8act. Paths are relative to the server's folder. A file to read may also be its content: \
{"name": "x.csv", "text": "..."}, or any other object as JSON. Select parts of a long answer with `fields`. \
At the time limit, a search or a plan returns its best result so far."""


def create_server(tools: Mapping[str, Tool], *, seconds: float) -> Server[Any]:
    """Return a server with these tools, whose calls end after so many seconds."""
    turn = asyncio.Semaphore(AT_ONCE)
    listed = [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in tools.values()
    ]

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: ServerRequestContext[Any], call: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if call.name not in tools:
                raise UnknownNameError("tool", call.name, tools)
            async with turn:
                answer = await called(tools[call.name], call.arguments or {}, seconds=seconds)
        except PipeplanError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        content: list[types.ContentBlock] = [types.TextContent(text=answer.text)]
        if answer.messages:
            content.append(types.TextContent(text="\n".join(answer.messages)))
        if answer.picture is not None:
            content.append(types.ImageContent(data=base64.b64encode(answer.picture).decode(), mime_type="image/png"))
        return types.CallToolResult(content=content, structured_content=answer.document)

    return Server(
        "pipeplan",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(server: Server[Any]) -> None:
    """Serve on the standard streams until the client closes them."""
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())
