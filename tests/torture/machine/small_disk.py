"""A disk of a few hundred kilobytes that only commands of one case see, and that is gone with the process that holds it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HOLD = """
import sys
from pathlib import Path
from tests.torture.machine.namespaces import leave_the_others, mount_small_disk
try:
    leave_the_others()
    mount_small_disk(Path(sys.argv[1]), int(sys.argv[2]))
except OSError as error:
    print(error.strerror, flush=True)
else:
    print("ready", flush=True)
    sys.stdin.read()
"""

_FILLER = ".filler"
_BLOCK = 4096


@dataclass(frozen=True)
class SmallDisk:
    """A disk that can be filled.

    Attributes
    ----------
    process
        The one that holds it: :class:`~tests.torture.machine.conditions.Conditions` takes it as ``mounts``.
    path
        Where commands see it.
    here
        Where this process does.
    """

    process: int
    path: Path
    here: Path

    def fill(self, free: int) -> None:
        """Leave about so many bytes (a multiple of a block)."""
        blocks = max(0, free // _BLOCK)
        with (self.here / _FILLER).open("ab", buffering=0) as file:
            with suppress(OSError):
                while file.write(bytes(_BLOCK)) == _BLOCK:
                    pass
            file.truncate(max(0, file.tell() // _BLOCK - blocks) * _BLOCK)

    def empty(self) -> None:
        """Make all the room that there was."""
        (self.here / _FILLER).unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[SmallDisk]:
    """A disk of ``size`` bytes on an empty folder. Raises OSError where this machine gives none."""
    code = [sys.executable, "-c", _HOLD, str(path), str(size)]
    with subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            said = holder.stdout.readline().strip()
            if said != "ready":
                raise OSError(said or "the process that would hold it ended")
            yield SmallDisk(holder.pid, path, Path(f"/proc/{holder.pid}/root{path}"))
        finally:
            holder.stdin.close()
            holder.wait()


@cache
def why_none(folder: Path) -> str | None:
    """Why this machine gives no small disk, or None where it does."""
    folder.mkdir(exist_ok=True)
    try:
        with small_disk(folder, 1 << 16):
            return None
    except OSError as error:
        return f"no file system in memory can be mounted here ({error})"
