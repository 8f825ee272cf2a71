"""``pipeplan mcp``."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from pipeplan.cli.options import command
from pipeplan.cli.process import Terminated
from pipeplan.costs import MOST_SECONDS, Options, Range, option
from pipeplan.errors import MissingExtraError


@dataclass(frozen=True, kw_only=True)
class McpOptions(Options):
    """Tools of the server, and their time limit."""

    tools: tuple[str, ...] = option(
        (), kind="names", title="Tools", group="output",
        help="Command to offer as a tool; repeatable.", default="every command",
    )  # fmt: skip
    seconds: float = option(
        45.0, kind="number", title="Seconds", group="output", unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="Time limit of a call, after which a search or a plan returns its best result so far. Many clients wait 60 s.",
    )  # fmt: skip


@command
def mcp(*, options: McpOptions) -> int:
    """Serve the commands as tools of an agent, over the Model Context Protocol.

    A client, such as a coding agent, starts this command in the folder whose files the tools read and write, and talks to it
    on the standard streams. Each command is a tool with the same name and arguments, and answers as with `--json`. Needs the
    extra `mcp` (`pip install '.[mcp]'` in a checkout).
    """
    try:
        from pipeplan.cli.tool_server import create_server, serve
    except ImportError:
        raise MissingExtraError("mcp", "mcp") from None
    from pipeplan.cli.tools import tools

    try:
        asyncio.run(serve(create_server(tools(options.tools), seconds=options.seconds)))
    except (KeyboardInterrupt, Terminated) as end:
        # A thread still waits for standard input: a regular exit would wait for it.
        os._exit(end.code if isinstance(end, Terminated) else 130)
    return 0
