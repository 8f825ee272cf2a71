"""Command lines, run where they can do no harm: forked from a warm process, or as a new interpreter.

``ran(["simulate", "zbv"], folder)`` gives how a command ended, ``started`` one that can be killed; ``fresh`` and
``fresh_started`` do the same with a new interpreter, for what happens while Python loads or ends. ``judged`` says what no
command may ever do.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.torture.box import MARK
from tests.torture.judging import Ran, judged

__all__ = ["Ran", "Running", "fresh", "fresh_started", "judged", "ran", "started"]

_GRACE = 10.0
"""Seconds in which processes that a command has started may end after it."""


def ran(arguments: Sequence[str], folder: Path, *, seconds: float = 20.0, **how: Any) -> Ran:
    """How a command line ended, run in ``folder`` by a forked child; for what else is said, see :func:`started`.

    A command that takes longer than ``seconds`` is killed with all that it has started.
    """
    return started(arguments, folder, **how).wait(seconds)


def fresh(arguments: Sequence[str], folder: Path, *, seconds: float = 60.0, **how: Any) -> Ran:
    """The same as a new interpreter: about a second."""
    return fresh_started(arguments, folder, **how).wait(seconds)


def started(
    arguments: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str | None] = {},
    stdin: bytes | int = b"",
    stdout: int | None = None,
    stderr: int | None = None,
    closed: Collection[int] = (),
    memory: int | None = None,
    limits: Mapping[str, int] = {},
) -> Running:
    """A command that runs: a forked child of the warm process, in a session of its own.

    Parameters
    ----------
    arguments
        What stands behind ``pipeplan``.
    folder
        Its working folder.
    environment
        What differs from the box's; None takes a name away. What Python and libraries read while they load
        (``NUMBA_CACHE_DIR``, ``MPLCONFIGDIR``, threads) counts only for a fresh interpreter, but for ``PYTHONIOENCODING``.
    stdin
        What stands there, or an open file.
    stdout, stderr
        Open files to write to in place of what :class:`Ran` shows.
    closed
        Which of the descriptors 0, 1 and 2 are closed.
    memory
        Bytes of address space (``RLIMIT_AS``).
    limits
        Others, by name: ``{"RLIMIT_NOFILE": 10}``.
    """
    with ExitStack() as stack:
        request = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": _environment(environment),
            "closed": list(closed),
            "limits": _limits(memory, limits),
        }
        asked = _file(json.dumps(request).encode())
        stack.callback(asked.close)
        streams = _Streams(stdin, stdout, stderr)
        told, tell = os.pipe()
        try:
            socket.send_fds(_warm().channel, [b"!"], [asked.fileno(), *streams.numbers, tell])
        finally:
            os.close(tell)
            streams.started()
    status = os.fdopen(told, "rb")
    return Running(tuple(arguments), _number(status), streams, _Forked(status))


def fresh_started(
    arguments: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str | None] = {},
    stdin: bytes | int = b"",
    stdout: int | None = None,
    stderr: int | None = None,
    closed: Collection[int] = (),
    memory: int | None = None,
    limits: Mapping[str, int] = {},
    interpreter: Sequence[str] = (),
) -> Running:
    """The same in a new interpreter, to which ``interpreter`` are options such as ``-O``."""
    streams = _Streams(stdin, stdout, stderr)
    most = _limits(memory, limits)

    def prepare() -> None:
        for name, value in most.items():
            resource.setrlimit(getattr(resource, name), (value, value))
        for number in closed:
            os.close(number)

    process = subprocess.Popen(
        [sys.executable, *interpreter, "-m", "pipeplan", *arguments],
        cwd=folder,
        env=_environment(environment),
        stdin=streams.numbers[0],
        stdout=streams.numbers[1],
        stderr=streams.numbers[2],
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 - a worker has no threads
    )
    streams.started()
    return Running(tuple(arguments), process.pid, streams, _Fresh(process))


class _Streams:
    """What a command reads and where it writes: files without a name, where it is not said otherwise."""

    def __init__(self, stdin: bytes | int, stdout: int | None, stderr: int | None) -> None:
        self._given = _file(stdin) if isinstance(stdin, bytes) else None
        self._files = [_file(b"") if each is None else None for each in (stdout, stderr)]
        first = self._given.fileno() if self._given is not None else stdin
        others = [each.fileno() if each is not None else said for each, said in zip(self._files, (stdout, stderr))]  # noqa: B905
        self.numbers: list[Any] = [first, *others]

    def started(self) -> None:
        """The command has its own now."""
        if self._given is not None:
            self._given.close()

    def text(self, number: int) -> bytes:
        """What was written to stdout (1) or stderr (2); empty where it went into a file of the caller's."""
        file = self._files[number - 1]
        if file is None:
            return b""
        file.seek(0)
        return file.read()

    def close(self) -> None:
        """No more is wanted."""
        for file in self._files:
            if file is not None:
                file.close()


class _Forked:
    """A command's end, as the warm process tells it."""

    def __init__(self, status: IO[bytes]) -> None:
        self._status = status
        self._ended: int | None = None

    def ended(self, seconds: float) -> int | None:
        """The code as :mod:`subprocess` has it, negative for a signal; None where it still runs."""
        import select

        if self._ended is None:
            if not select.select([self._status], [], [], max(seconds, 0))[0]:
                return None
            self._ended = os.waitstatus_to_exitcode(_number(self._status))
            self._status.close()
        return self._ended


class _Fresh:
    """The same of a child of ours."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ended(self, seconds: float) -> int | None:
        try:
            return self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None


@dataclass
class Running:
    """A command that has been started.

    Attributes
    ----------
    arguments
        What stands behind ``pipeplan``.
    pid
        Its process, which leads a session and a process group of its own.
    """

    arguments: tuple[str, ...]
    pid: int
    _streams: _Streams
    _end: _Forked | _Fresh
    _sent: list[int] = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)

    def send(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if not self.has_ended():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            self._sent.append(number)

    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._end.ended(0) is not None

    def wait(self, seconds: float = 20.0) -> Ran:
        """How it ended; what takes longer is killed with all that it has started, and has hung."""
        code = self._end.ended(seconds)
        hung = code is None
        if hung:
            _end_session(self.pid)
            code = self._end.ended(10.0)
        took = time.monotonic() - self._since
        left = _left(self.pid)
        out, err = self._streams.text(1), self._streams.text(2)
        self._streams.close()
        number = -code if code is not None and code < 0 else None
        return Ran(
            self.arguments, code if code is not None else -9, out, err, took, number, hung, left, tuple(self._sent)
        )


def _left(session: int) -> tuple[int, ...]:
    """The processes of a command's session that outlive it, and are killed now."""
    until = time.monotonic() + _GRACE
    while (found := _session(session)) and time.monotonic() < until:
        time.sleep(0.02)
    _end_session(session)
    return found


def _end_session(session: int) -> None:
    for pid in _session(session):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _session(session: int) -> tuple[int, ...]:
    """The processes of a session that run, without those that have ended and wait for their parent."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        with suppress(OSError):
            about = Path("/proc", entry, "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(about[3]) == session and about[0] != "Z":
                found.append(int(entry))
    return tuple(found)


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    if MARK not in os.environ:
        raise RuntimeError("commands are run inside a box: python -m tests.torture, or the fixture `boxed`")
    both: dict[str, str | None] = {**os.environ, **changes}
    return {name: value for name, value in both.items() if value is not None}


def _limits(memory: int | None, limits: Mapping[str, int]) -> dict[str, int]:
    return dict(limits) | ({} if memory is None else {"RLIMIT_AS": memory})


def _file(content: bytes) -> IO[bytes]:
    file: IO[bytes] = tempfile.TemporaryFile(dir=os.environ[MARK])  # noqa: SIM115 - a command's, closed when it has ended
    file.write(content)
    file.seek(0)
    return file


def _number(pipe: IO[bytes]) -> int:
    line = pipe.readline()
    if not line:
        raise RuntimeError("the warm process has ended")
    return int(line)


class _Warm:
    """The warm process, started for the first who asks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        code = f"from tests.torture.warm import started_by; started_by('{theirs.fileno()}')"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=dict(os.environ),
        )
        theirs.close()
        self.channel = ours
        atexit.register(self.end)

    def end(self) -> None:
        """Hang up, upon which it ends."""
        self.channel.close()
        self._process.wait()


@cache
def _warm() -> _Warm:
    return _Warm()
