"""A server of one's own, on a free port of loopback, and what the system knows about it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """What a server holds at a moment: resident memory in bytes, of itself and of its workers together, and counts."""

    server: int
    workers: int
    processes: int
    descriptors: int
    threads: int


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

    def workers(self) -> list[int]:
        """The processes that work for it."""
        return [pid for pid in _children(self.pid) if b"spawn_main" in _read(pid, "cmdline")]

    def said(self) -> str:
        """What it wrote beside where it listens."""
        return "".join(self.log.read_text(errors="replace").splitlines(keepends=True)[1:]).strip()

    def figures(self) -> Figures:
        """What it holds now."""
        workers = self.workers()
        return Figures(
            _resident(self.pid),
            sum(map(_resident, workers)),
            len(_children(self.pid)),
            len(os.listdir(f"/proc/{self.pid}/fd")),
            len(os.listdir(f"/proc/{self.pid}/task")),
        )

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


def _resident(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _runs(pid: int) -> bool:
    about = _read(pid, "stat").rpartition(b")")[2].split()
    return bool(about) and about[0] != b"Z"
