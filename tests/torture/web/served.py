"""A server of one's own, on a free port of loopback, and what the system knows about it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


class Served:
    """``pipeplan serve`` as a process.

    Parameters
    ----------
    folder
        Its working folder, and where its log is.
    environment
        Of the process.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.log = folder / "served.txt"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeplan", "serve", "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        self.port = self._told()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def _told(self) -> int:
        """The port that it says it listens on, once it does."""
        until = time.monotonic() + 120
        while time.monotonic() < until and self._process.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.log.read_text(errors="replace"))
            if found:
                return int(found.group(1))
            time.sleep(0.05)
        raise RuntimeError(f"the server does not start: {self.log.read_text(errors='replace')[-500:]}")

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None where it runs."""
        return self._process.poll()

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """What it wrote beside where it listens."""
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[1:]).strip()

    def end(self, seconds: float = 30.0) -> tuple[int | None, list[int]]:
        """End it as Ctrl-C does; its exit code, None where it had to be killed, and the processes that outlived it."""
        children = _children(self.pid)
        self._process.send_signal(signal.SIGINT)
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
        until = time.monotonic() + 5
        while (left := [pid for pid in children if _runs(pid)]) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in (*left, *([self.pid] if code is None else [])):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        return code, left


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _runs(pid: int) -> bool:
    about = _read(pid, "stat").rpartition(b")")[2].split()
    return bool(about) and about[0] != b"Z"
