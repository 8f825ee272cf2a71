"""``pipeplan serve``."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.cli.answers import tell
from pipeplan.cli.options import command
from pipeplan.costs import Options, Range, option
from pipeplan.web.server import PORT
from pipeplan.web.server import serve as serve_app


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """Where the web app listens."""

    host: str = option(
        "127.0.0.1", kind="text", title="Host", group="output", longest=400,
        help="The address to listen on. Others than loopback are open to everyone who can reach them; there is no password.",
    )  # fmt: skip
    port: int = option(
        PORT, kind="count", title="Port", group="output", help="The port; 0 for a free one.", range=Range(0, most=65_535)
    )  # fmt: skip
    open: bool = option(False, kind="flag", title="Open", group="output", help="Open the page in a browser.")
    allow_host: tuple[str, ...] = option(
        (), kind="names", title="Names", group="output", longest=400,
        help="Another name that the server is known by, for a proxy before it; repeatable.",
    )  # fmt: skip


@command
def serve(*, options: ServeOptions) -> int:
    """The web app: sliders, comparison, timeline, reasons and downloads in a browser. It needs the extra `web`."""
    serve_app(options.host, options.port, open_page=options.open, tell=tell, names=options.allow_host)
    return 0
