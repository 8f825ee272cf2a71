"""What is done to a command before it begins, and while it runs."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.torture.machine.namespaces import be_nobody_special, enter, leave_the_others, make_read_only

FILE_EVENTS = frozenset(
    {
        *("open", "os.chmod", "os.chown", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir"),
        *(
            "os.scandir",
            "os.symlink",
            "os.truncate",
            "os.utime",
            "shutil.rmtree",
            "sqlite3.connect",
            "tempfile.mkstemp",
        ),
    }
)
"""What Python tells of what a process does with files (``sys.addaudithook``)."""

_FAILING = frozenset({"open", "os.chmod", "os.mkdir", "os.rename", "tempfile.mkstemp"})
"""Which of these fail here: what cannot even be removed stays, whoever is to blame, and importing lists folders too."""

_OF_TWO = frozenset({"os.link", "os.rename", "os.symlink"})
"""Which of these are about two paths; the others' first argument is the path."""

START_EVENTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "socket.bind"})
"""What it tells of processes that are started, and of addresses."""


@dataclass(frozen=True)
class Fault:
    """What happens to a command at the n-th time that it touches a file of its folder, or starts a process.

    Attributes
    ----------
    at
        Which time: 0 is the first.
    signal
        What it is sent then, by itself, so that the moment is the same in each run; 0: nothing.
    group
        Whether those that it has started get it too, as from a terminal.
    error
        The number of the error that the operation fails with instead; 0: none.
    again
        Whether every further one fails as well.
    """

    at: int
    signal: int = 0
    group: bool = False
    error: int = 0
    again: bool = False


@dataclass(frozen=True)
class Conditions:
    """What a command finds when it begins.

    Attributes
    ----------
    watched
        The folder whose files count for a fault.
    fault
        What happens to it; None: nothing.
    counted
        Where the number of times is written that a fault could have happened at; None: nowhere.
    umask
        The mask for new files; None: as it is.
    powerless
        Whether root's right to pass by the modes of files is given up.
    user
        Whose process it is; None: the same.
    left
        Bytes of address space that it may take beside those that it begins with; None: as many as there are.
    gone
        A folder that it works in, and that is removed before it begins.
    mounts
        The process whose mounts it sees; 0: those of all.
    work
        Its working folder, where that is one of those mounts; None: as it is.
    read_only
        Folders that are shown as those of a read-only disk.
    """

    watched: str | None = None
    fault: Fault | None = None
    counted: str | None = None
    umask: int | None = None
    powerless: bool = False
    user: int | None = None
    left: int | None = None
    gone: str | None = None
    mounts: int = 0
    work: str | None = None
    read_only: tuple[str, ...] = ()

    def asked(self) -> tuple[str, dict[str, Any]]:
        """As the process that forks commands takes it: a function, and its argument as JSON has it."""
        return f"{__name__}:prepare", asdict(self)


def prepare(asked: dict[str, Any]) -> None:
    """Make it so for this process, whose environment and working folder are set already."""
    fault = asked.pop("fault")
    conditions = Conditions(**asked, fault=None if fault is None else Fault(**fault))
    folder = conditions.work or os.getcwd()
    tempfile.tempdir = None  # what the environment says now
    if conditions.mounts:
        enter(conditions.mounts)
    if conditions.read_only:
        leave_the_others()
        for each in conditions.read_only:
            make_read_only(Path(each))
    os.chdir(folder)
    if conditions.umask is not None:
        os.umask(conditions.umask)
    if conditions.gone is not None:
        os.mkdir(conditions.gone)
        os.chdir(conditions.gone)
        os.rmdir(conditions.gone)
    if conditions.user is not None:
        os.setgroups([])
        os.setgid(conditions.user)
        os.setuid(conditions.user)
    elif conditions.powerless and os.getuid() == 0:
        be_nobody_special()
    if conditions.left is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + conditions.left
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if conditions.watched is not None:
        watch = _Watch(conditions.watched, conditions.fault, conditions.counted)
        sys.addaudithook(watch)
        connect = sqlite3.connect

        def watched(*arguments: Any, **how: Any) -> sqlite3.Connection:
            opened: sqlite3.Connection = connect(*arguments, **how)
            opened.set_trace_callback(watch.statement)
            return opened

        sqlite3.connect = watched  # type: ignore[assignment]


class _Watch:
    """Counts what a process does with the files of a folder, and lets the fault happen."""

    def __init__(self, folder: str, fault: Fault | None, counted: str | None) -> None:
        self._folder, self._fault, self._counted = folder, fault, counted
        self._process = os.getpid()
        self._seen = 0
        self._busy = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._busy or not (event in FILE_EVENTS or event in START_EVENTS) or os.getpid() != self._process:
            return
        self._busy = True
        try:
            if event in START_EVENTS or self._is_inside(arguments[: 2 if event in _OF_TWO else 1]):
                self._happen(self._count(), event in _FAILING)
        finally:
            self._busy = False

    def _count(self) -> int:
        """The number of this moment."""
        self._seen += 1
        if self._counted is not None:
            Path(self._counted).write_text(str(self._seen))
        return self._seen - 1

    def statement(self, _: str) -> None:
        """Each statement of a database is a moment to be killed at; of other signals SQLite would swallow what comes."""
        if self._busy or os.getpid() != self._process:
            return
        self._busy = True
        try:
            seen = self._count()
            if self._fault is not None and self._fault.signal == signal.SIGKILL:
                self._happen(seen, False)
        finally:
            self._busy = False

    def _is_inside(self, arguments: tuple[object, ...]) -> bool:
        """Whether a path among what is told of an event leads into the folder; where it stands there, without one too."""
        paths = (os.fsdecode(each) for each in arguments if isinstance(each, str | bytes | os.PathLike))
        return any(os.path.abspath(path).startswith(self._folder) for path in paths)

    def _happen(self, seen: int, may_fail: bool) -> None:
        fault = self._fault
        if fault is None or not (seen == fault.at or (fault.again and seen > fault.at)):
            return
        if fault.error and may_fail:
            raise OSError(fault.error, os.strerror(fault.error))
        if fault.signal:
            (os.killpg if fault.group else os.kill)(0 if fault.group else self._process, signal.Signals(fault.signal))
