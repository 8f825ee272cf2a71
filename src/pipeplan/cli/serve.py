"""``pipeplan serve``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pipeplan.cli.answers import tell
from pipeplan.cli.options import Debug, parameter_of
from pipeplan.costs import Range, Setting
from pipeplan.web.server import PORT
from pipeplan.web.server import serve as serve_app

_PORT = Setting(
    name="port", kind="count", title="Port", group="work", help="The port; 0 for a free one.", default=f"{PORT}",
    range=Range(0, most=65_535),
)  # fmt: skip


def serve(
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, parameter_of(_PORT)] = PORT,
    open_: Annotated[bool, Parameter(name="--open", show_default=False)] = False,
    allow_host: Annotated[tuple[str, ...], Parameter(show_default=False)] = (),
    debug: Debug = False,
) -> int:
    """The web app: sliders, comparison, timeline, reasons and downloads in a browser. It needs the extra `web`.

    Parameters
    ----------
    host
        The address to listen on. Others than loopback are open to everyone who can reach them; there is no password.
    open_
        Open the page in a browser.
    allow_host
        Another name that the server is known by, for a proxy before it; repeatable.
    """
    serve_app(host, port, open_page=open_, tell=tell, names=allow_host)
    return 0
