"""The one folder in which everything happens, and what was written outside it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pipeplan
from tests.torture.guarded.sitecustomize import FOLDERS, SAID

ROOT = Path(__file__).parents[2]
"""The repository."""

MARK = "PIPEPLAN_TORTURE"
"""The environment's name for the box: every process of a run has it, and no other."""

_PASSED = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")
"""What a boxed process has of the environment around: the rest of it is the box's own."""


GUARD = ROOT / "tests" / "torture" / "guarded"
"""What every Python process of a box loads at its start."""


def environment(box: Path, *folders: Path) -> dict[str, str]:
    """The environment of processes in a box: home, settings, caches and temporary files are inside it.

    What is written outside it, and outside of further ``folders``, is told in a file of the box.
    """
    for name in ("home", "temporary", "cache", "settings", "kernels"):
        (box / name).mkdir(parents=True, exist_ok=True)
    return {name: os.environ[name] for name in _PASSED if name in os.environ} | {
        MARK: str(box),
        FOLDERS: os.pathsep.join(map(str, (box, *folders))),
        SAID: str(box / "strays.txt"),
        "HOME": str(box / "home"),
        "TMPDIR": str(box / "temporary"),
        "XDG_CACHE_HOME": str(box / "cache"),
        "XDG_CONFIG_HOME": str(box / "settings"),
        "XDG_DATA_HOME": str(box / "home" / "data"),
        "XDG_STATE_HOME": str(box / "home" / "state"),
        "NUMBA_CACHE_DIR": str(box / "kernels"),
        "MPLCONFIGDIR": str(box / "settings"),
        "PYTHONPATH": os.pathsep.join(map(str, (GUARD, Path(pipeplan.__file__).parents[1], ROOT))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # a case is made from its seed alone, also where it goes through a set
        "OPENBLAS_NUM_THREADS": "1",  # a process with threads cannot be forked safely
        "OMP_NUM_THREADS": "1",
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "PYTHON_COLORS": "0",
    }


def strays() -> list[str]:
    """What processes of the box around have written outside it so far, or whom they wanted to reach."""
    said = Path(os.environ.get(SAID, os.devnull))
    return said.read_text().splitlines() if said.exists() else []


def remove(folder: Path) -> None:
    """Remove a folder and all in it, also what a case has made unreadable."""

    def again(_: object, path: str, __: object) -> None:
        for each in (Path(path).parent, Path(path)):
            with suppress(OSError):
                each.chmod(0o700)
        with suppress(OSError):
            shutil.rmtree(path) if Path(path).is_dir() and not Path(path).is_symlink() else Path(path).unlink()

    for _ in range(3):  # one closed folder in another
        if not folder.exists():
            return
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=again)
        else:
            shutil.rmtree(folder, onerror=again)


PREFIX = "pipeplan-torture-"
"""Of temporary boxes."""

_HELD = ".held"
"""In a box: locked by the process whose it is for as long as that lives."""


@contextmanager
def held(box: Path) -> Iterator[None]:
    """The box is in use in the block; one that is not any more, as its process was killed, is removed by the next run."""
    with (box / _HELD).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        (box / _HELD).unlink(missing_ok=True)


def remove_dead() -> None:
    """Remove the temporary boxes of this user's runs that were killed, with what still runs there."""
    for lock in Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*/{_HELD}"):
        with suppress(OSError), lock.open() as file:
            if lock.stat().st_uid == os.getuid():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_processes(lock.parent)
                remove(lock.parent)


def end_processes(box: Path) -> list[int]:
    """Kill what still runs of a box, and say which processes these were."""
    found = list(processes(box))
    for pid in found:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return found


def processes(box: Path) -> Iterator[int]:
    """The processes whose environment has the box's mark, of the box itself or of one inside it."""
    mark = f"{MARK}={box}".encode()
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            told = (entry / "environ").read_bytes().split(b"\0")
            if any(line == mark or line.startswith(mark + b"/") for line in told):
                yield int(entry.name)


_OURS = ("__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "node_modules", "build")
"""Folders that other programs write while a run goes on."""

_DEEP = 3
"""Folders within folders that are listed: what a stray path names is near the top."""

_HOME_DEEP = 1
"""The same at home, where others write what is further down: ``~/.cache/pipeplan`` is seen, and what it holds is not."""


def listing(folders: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """What stands in some folders, with size and time of change; at home, where others are at work, by name alone."""
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        home = folder == Path.home()
        for path in _below(folder, _HOME_DEEP if home else _DEEP):
            with suppress(OSError):
                about = path.lstat()
                found.setdefault(str(path), (0, 0) if home or path.is_dir() else (about.st_size, about.st_mtime_ns))
    return found


def _below(folder: Path, deep: int) -> Iterator[Path]:
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name in _OURS or path.name.startswith(".venv"):
                continue
            yield path
            if deep and path.is_dir() and not path.is_symlink():
                yield from _below(path, deep - 1)


def written_outside(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> list[str]:
    """What is new, changed or gone, in order."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
