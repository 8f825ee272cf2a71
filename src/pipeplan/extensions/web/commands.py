"""``pipeplan serve`` and ``mcp``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pipeplan.cli.answers import tell
from pipeplan.cli.options import command
from pipeplan.costs import MOST_SECONDS, Options, Range, option
from pipeplan.extensions.web.server import PORT
from pipeplan.extensions.web.server import serve as serve_app
from pipeplan.foundation.errors import MissingExtraError


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """Address of the web app."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    host: str = option(
        "127.0.0.1", kind="text", group="output", longest=400,
        help="Address to listen on. Any address except loopback is open to anyone who can reach it, without a password.",
    )
    port: int = option(
        PORT, kind="count", group="output", help="Port to listen on; 0 for any free one.",
        range=Range(0, most=65_535),
    )
    open: bool = option(False, kind="flag", group="output", help="Open the page in a browser.")
    allow_host: tuple[str, ...] = option(
        (), kind="names", group="output", longest=400,
        help="Further host name of the server, such as that of a reverse proxy; repeatable.",
    )
    # fmt: on


@command
def serve(*, options: ServeOptions) -> int:
    """Serve the web app: forms, comparisons and timelines in a browser.

    Needs the extra `web` (`pip install '.[web]'` in a checkout).
    """
    serve_app(options.host, options.port, open_page=options.open, tell=tell, names=options.allow_host)
    return 0


@dataclass(frozen=True, kw_only=True)
class McpOptions(Options):
    """Time limit of the server's tools."""

    seconds: float = option(
        45.0, kind="number", title="Seconds", group="output", unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="Time limit of a call, after which a search or a plan returns its best result so far. Many clients wait 60 s.",
    )  # fmt: skip


@command
def mcp(*, options: McpOptions) -> int:
    """Serve tools of an agent, over the Model Context Protocol.

    The tools are compare, simulate, explain, search, plan and review; their arguments have the names of Python and of config
    files. A client, such as a coding agent, starts this command in the folder whose files the tools read and write, and
    talks to it on the standard streams. Needs the extra `mcp` (`pip install '.[mcp]'` in a checkout).
    """
    try:
        from pipeplan.extensions.web.mcp.tool_server import serve as serve_tools
    except ImportError:
        raise MissingExtraError("mcp", "mcp") from None

    asyncio.run(serve_tools(seconds=options.seconds))
    return 0
