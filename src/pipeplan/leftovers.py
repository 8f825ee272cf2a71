"""Temporary files and folders that say whose they are, and what is left of those whose process is dead.

A process that is killed clears nothing up. So a name tells the process: its number, when it started (numbers are used
again), and among which processes of which machine and boot the number counts, since others may write into a shared folder.
Whoever next writes into that folder removes what is left of the dead.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

MOST_LOOKED_AT = 10_000
"""Entries of a folder among which leftovers are looked for: about ten milliseconds."""

_NAME = re.compile(r"\.?pipeplan-([0-9a-f]{12})-(\d{1,10})-(\d{1,20})-[0-9a-f]{8}(\..*)?", re.DOTALL)

_PROCESSES = Path("/proc")

_UNKNOWN = "0" * 12
"""A machine that does not tell which it is."""

_DEAD = ("Z", "X", "x")
"""States of a process that has ended, and whose parent has not looked yet."""


def name_of_ours(*, hidden: bool, ending: str = "") -> str:
    """A new name for a temporary file or folder of this process: ``.pipeplan-MACHINE-PROCESS-START-RANDOM.png``."""
    start = _start(os.getpid()) or "0"
    return f"{'.' * hidden}pipeplan-{_machine()}-{os.getpid()}-{start}-{secrets.token_hex(4)}{ending}"


def clear_leftovers(folder: Path) -> None:
    """Remove what dead processes of this machine and user have left in a folder; once per folder and process.

    What is not plainly that stays: other names, other machines, other users, links, what lies beyond the first entries of
    a large folder, and everything where the system does not tell when a process started (all but Linux).
    """
    with suppress(OSError):
        _clear_once(os.path.realpath(folder), os.getpid())


@lru_cache(maxsize=64)
def _clear_once(folder: str, _process: int) -> None:
    if _machine() == _UNKNOWN or _start(os.getpid()) is None:
        return
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, MOST_LOOKED_AT) if "pipeplan-" in entry.name]
    for name in names:
        if _is_left(name):
            _remove(Path(folder, name))


def _is_left(name: str) -> bool:
    """Whether a name is one of ours whose process is dead."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] != _machine():
        return False
    start = _start(int(found[2]))
    return start != found[3] and (start is not None or not _is_hidden(int(found[2])))


def _is_hidden(process: int) -> bool:
    """Whether there is a process of this number of which nothing can be seen."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return not _PROCESSES.joinpath(str(process), "stat").exists()


def _remove(path: Path) -> None:
    """Remove a file or a folder of this user; of a link, neither it nor what it leads to."""
    with suppress(OSError):
        found = path.lstat()
        if found.st_uid != os.geteuid():
            return
        if stat.S_ISREG(found.st_mode):
            path.unlink()
        elif stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path, ignore_errors=True)


def _start(process: int) -> str | None:
    """When a process started, in ticks of its machine; None where it is dead, or the system does not tell."""
    try:
        fields = _PROCESSES.joinpath(str(process), "stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in _DEAD else fields[19]
    except (OSError, IndexError):
        return None


@cache
def _machine() -> str:
    """The boot of this machine, and the set of numbers of processes, of which each container has its own."""
    try:
        boot = _PROCESSES.joinpath("sys/kernel/random/boot_id").read_text()
        numbers = os.readlink(_PROCESSES / "self/ns/pid")
    except OSError:
        return _UNKNOWN
    return sha256(f"{boot.strip()} {numbers}".encode()).hexdigest()[:12]
