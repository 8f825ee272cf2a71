"""``pipeplan mcp``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pipeplan.cli.options import command
from pipeplan.costs import MOST_SECONDS, Options, Range, option
from pipeplan.foundation.errors import MissingExtraError


@dataclass(frozen=True, kw_only=True)
class McpOptions(Options):
    """Time limit of the server's tools."""

    seconds: float = option(
        45.0,
        kind="number",
        group="output",
        unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="Time limit of a call, after which a search or a plan returns its best result so far. Many clients wait 60 s.",
    )


@command
def mcp(*, options: McpOptions) -> int:
    """Serve tools of an agent, over the Model Context Protocol.

    The tools are compare, simulate, explain, search, plan and review; their arguments have the names of Python and of config
    files. A client, such as a coding agent, starts this command in the folder whose files the tools read and write, and
    talks to it on the standard streams. Needs the extra `mcp` (`pip install '.[mcp]'` in a checkout).
    """
    try:
        from pipeplan.extensions.web.mcp.tool_server import serve
    except ImportError:
        raise MissingExtraError("mcp", "mcp") from None

    asyncio.run(serve(seconds=options.seconds))
    return 0
