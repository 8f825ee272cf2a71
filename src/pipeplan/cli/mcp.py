"""``pipeplan mcp``."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pipeplan.cli.options import command
from pipeplan.cli.process import SIGNALS, Terminated
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
        asyncio.run(_until_signal(serve(create_server(tools(options.tools), seconds=options.seconds))))
    except (KeyboardInterrupt, Terminated) as end:
        # A thread still waits for standard input: a regular exit would wait for it.
        os._exit(end.code if isinstance(end, Terminated) else 130)
    return 0


async def _until_signal(serving: Coroutine[Any, Any, None]) -> None:
    """Serve, and raise the exception of a signal outside the server's tasks.

    Raised by the handler itself, it could end a task in the middle of a call. The server would then wait for its other
    tasks, of which one reads standard input for as long as the client keeps it open.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(number)

    for number in SIGNALS:
        if callable(signal.getsignal(number)):  # neither ignored nor left to the system
            with suppress(NotImplementedError):  # Windows' loops take no signals
                loop.add_signal_handler(number, end, number)
    server = asyncio.ensure_future(serving)
    first: tuple[asyncio.Future[Any], ...] = (server, ended)
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        raise Terminated(ended.result())
    await server
