"""``pipeplan serve``: where it listens, and what it says when it cannot."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from pipeplan.extensions.web.commands import serve
from pipeplan.extensions.web.server import listen
from pipeplan.foundation.errors import InputError, MissingExtraError

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")


def test_a_port_in_use_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=r"already in use; choose another port"):
            serve(port=taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 70_000), ("no.such.host.invalid", 0), ("192.0.2.1", 0)]
)
def test_where_nobody_can_listen(host, port):
    with pytest.raises(InputError):
        listen(host, port)


@pytest.mark.parametrize("host", ["", "0x0"])
def test_all_interfaces_are_only_listened_on_where_that_is_said(host):
    with pytest.raises(InputError, match=r"use 127\.0\.0\.1, or 0\.0\.0\.0") as caught:
        listen(host, 0)
    assert caught.value.field == "host"


@pytest.mark.parametrize("host", ["a" * 300, "a\0b", "\x1b[2J"])
def test_what_is_no_name_of_a_machine_is_refused(host):
    with pytest.raises(InputError) as caught:
        listen(host, 0)
    assert str(caught.value).isprintable()


def test_without_the_extra_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[web\]'"):
        serve(port=0)


@pytest.mark.slow
def test_it_serves_on_loopback_until_interrupted():
    command = [sys.executable, "-m", "pipeplan", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as server:
        try:
            assert server.stderr is not None
            text = server.stderr.readline()
            address = text.split()[3]
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}api/schedules", timeout=30) as answer:
                assert answer.status == 200
        finally:
            server.send_signal(signal.SIGINT)
            code = server.wait(timeout=30)
        assert code in (0, 130)
        assert "Traceback" not in server.stderr.read()


def test_the_command_line_is_the_same_beside_pydantic(capsys):
    """The argument parser also asks pydantic where something has imported it, as the web app does."""
    import pydantic  # noqa: F401

    from pipeplan.cli import main

    assert (
        main(["compare", "1f1b", "zb-h1", "--memory-limit", "8act", "-f", "1", "-bw", "1", "2", "3", "4", "--json"])
        == 0
    )
    assert capsys.readouterr().out.startswith("{")
