"""Starting the server: on loopback unless told otherwise."""

from __future__ import annotations

import ipaddress
import socket
import webbrowser
from collections.abc import Callable
from contextlib import closing

from pipeplan.errors import InputError, MissingExtraError

PORT = 8377
"""The default port."""

_CONNECTIONS = 64


def serve(
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    open_page: bool = False,
    tell: Callable[[str], None] = print,
    names: tuple[str, ...] = (),
) -> None:
    """Serve the app until interrupted.

    Parameters
    ----------
    host
        The address to listen on. Any other than loopback is open to everyone who can reach it.
    port
        The port; 0 for a free one.
    open_page
        Whether to open the page in a browser.
    tell
        Is told the page's address when the server listens.
    names
        More names that the server is known by, for a proxy in front of it.

    Raises
    ------
    MissingExtraError
        If the extra ``web`` is not installed.
    InputError
        If the port is in use, or the address is not one of this machine.
    """
    try:
        import uvicorn

        from pipeplan.web.app import LOOPBACK, create_app
    except ImportError as error:
        raise MissingExtraError("web", error.name or "fastapi") from None
    with closing(listen(host, port)) as listener:
        port = listener.getsockname()[1]
        everywhere = host in ("0.0.0.0", "::", "")
        app = create_app(hosts=(*LOOPBACK, _in_url(host), socket.gethostname(), *names), any_address=everywhere)
        page = f"http://{_in_url('localhost' if everywhere else host)}:{port}/"
        tell(f"pipeplan is at {page} (Ctrl-C ends it)")
        if not _is_loopback(host):
            tell("warning: everyone who can reach this address can use it; there is no password")
        if open_page:
            webbrowser.open(page)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=64 << 10,
        )
        uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that a port in use is noticed before anything is started."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must be 0 to 65535, not {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(f"cannot listen on {host}: {_reason(error)}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on {host} port {port}: {_reason(error)}; choose another port") from None
    return listener


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
