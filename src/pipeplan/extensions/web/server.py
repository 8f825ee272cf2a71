"""Server of the web app, on loopback by default."""

from __future__ import annotations

import ipaddress
import socket
import webbrowser
from collections.abc import Callable
from contextlib import closing

from pipeplan.foundation.errors import InputError, MissingExtraError

PORT = 8377
"""Default port."""


def serve(
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    open_page: bool = False,
    tell: Callable[[str], None] = print,
    names: tuple[str, ...] = (),
) -> None:
    """Serve the app until interrupted."""
    try:
        import uvicorn

        from pipeplan.extensions.web.app import LOOPBACK, create_app
    except ImportError as error:
        raise MissingExtraError("web", error.name or "fastapi") from None
    with closing(listen(host, port)) as listener:
        port = listener.getsockname()[1]
        everywhere = _is_everywhere(host)
        app = create_app(hosts=(*LOOPBACK, _in_url(host), socket.gethostname(), *names), any_address=everywhere)
        page = f"http://{_in_url('localhost' if everywhere else host)}:{port}/"
        tell(f"pipeplan is at {page} (Ctrl-C ends it)")
        if not _is_loopback(str(listener.getsockname()[0])):
            tell("warning: anyone who can reach this address can use it without a password")
        if open_page:
            webbrowser.open(page)
        config = uvicorn.Config(
            app,
            http="h11",
            limit_concurrency=512,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_keep_alive=10,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=64 << 10,
        )
        uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a port in use is reported before anything starts.

    Raises InputError if the address cannot be listened on, and for implicit names of every interface, such as an empty text
    or ``0``; ``0.0.0.0`` and ``::`` are explicit.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"port must be 0 to 65535, not {port}", field="port")
    try:
        if not host:
            raise InputError("host is empty: use 127.0.0.1, or 0.0.0.0 for every interface", field="host")
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if _is_everywhere(str(address[0])) and not _is_everywhere(host):
            raise InputError(
                f"host {host!r} means every interface of this machine: use 127.0.0.1, or 0.0.0.0 if that is intended",
                field="host",
            )
        listener = socket.socket(family, kind, protocol)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot listen on host {host!r}: {_reason(error)}", field="host") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host} port {port}: {_reason(error)}; choose another port", field="port"
        ) from None
    return listener


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return "invalid host name"


def _is_loopback(address: str) -> bool:
    parsed = _address(address)
    return parsed is not None and parsed.is_loopback


def _is_everywhere(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address of a text, None for a name; an IPv4 address in the form of IPv6 is an IPv4 address."""
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return None
    return parsed.ipv4_mapped or parsed if isinstance(parsed, ipaddress.IPv6Address) else parsed


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
