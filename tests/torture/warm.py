"""A process that has loaded all of the command line, and forks for each command: about ten milliseconds, not a second.

It stands alone, without threads, so that forking is safe. A request is five open files over a Unix socket: the request as
JSON, the command's stdin, stdout and stderr, and a pipe that is told the number of the process and how it ended.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_REQUEST, _STATUS = 0, 4
_FILES = 5


def serve(descriptor: int) -> None:
    """Fork for each request until whoever asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks; it ends us by hanging up
    channel = socket.socket(fileno=descriptor)
    _load()
    running = selectors.DefaultSelector()
    running.register(channel, selectors.EVENT_READ)
    while True:
        for key, _ in running.select():
            if key.fileobj is not channel:
                process, status = key.data
                _, ended = os.waitpid(process, 0)
                _tell(status, ended)
                os.close(status)
                running.unregister(key.fileobj)
                os.close(key.fd)
                continue
            word, files, _, _ = socket.recv_fds(channel, 1, _FILES)
            if not word:
                return
            process = os.fork()
            if process == 0:
                for other in list(running.get_map().values()):
                    os.close(other.fd)
                _become(files)
            _tell(files[_STATUS], process)
            for file in files[:_STATUS]:
                os.close(file)
            running.register(os.pidfd_open(process), selectors.EVENT_READ, (process, files[_STATUS]))


def _tell(pipe: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(pipe, f"{number}\n".encode())


def _load() -> None:
    """All that commands import, except what starts threads or takes seconds."""
    from pipeplan.cli import app

    for name in (*app._COMMANDS, "terminal_picture"):
        with suppress(ImportError):
            import_module(f"pipeplan.cli.{name}")
    for name in (
        "drawing.static",
        "drawing.html",
        "api.planning.planned",
        "api.searching.searches",
        "api.tables.parts",
    ):
        import_module(f"pipeplan.{name}")
    for name in (
        "cyclopts.help",
        "docstring_parser",
        "pygments.lexers",
        "rich.console",
        "rich.markdown",
    ):  # pages of help
        import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()  # a child that collects would copy every page of what is loaded


def _become(files: list[int]) -> NoReturn:
    """Be the command: what ``python -m pipeplan`` does from here on, its end included."""
    os.close(files[_STATUS])
    with open(files[_REQUEST], "rb") as text:
        asked: dict[str, Any] = json.loads(text.read())
    os.setsid()
    for number, file in enumerate(files[1:_STATUS]):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    if "PYTHONIOENCODING" in os.environ:
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.reconfigure(encoding=os.environ["PYTHONIOENCODING"])  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, most in asked["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if number in asked["closed"]:
            os.close(number)
            setattr(sys, name, None)
            setattr(sys, f"__{name}__", None)
    sys.argv = ["pipeplan", *asked["arguments"]]
    os._exit(_ended(_code()))


def _code() -> int:
    """The command's exit code, as the interpreter understands what ``sys.exit`` is given."""
    import traceback

    from pipeplan.cli import main

    try:
        raise SystemExit(main())
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1


def _ended(code: int) -> int:
    """What the interpreter does at its end, in its order; 120 where its last output is lost."""
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with suppress(BaseException):
        atexit._run_exitfuncs()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:
        with suppress(BaseException):
            print(f"Exception ignored in: {sys.stdout}: {error}", file=sys.stderr)
        code = 120
    with suppress(BaseException):
        if sys.stderr is not None:
            sys.stderr.flush()
    return code


def started_by(argument: str) -> None:
    """Serve the descriptor that the command line names, in a session of our own."""
    os.chdir(Path(os.environ["HOME"]))
    serve(int(argument))
