"""``pipeplan serve``."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.cli.answers import tell
from pipeplan.cli.options import command
from pipeplan.costs import Options, Range, option
from pipeplan.extensions.web.server import PORT
from pipeplan.extensions.web.server import serve as serve_app


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
