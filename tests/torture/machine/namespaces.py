"""A view of the file system of one's own: mounts that no other process sees, and that end with the last that does.

All of it is Linux's own (``unshare(2)``, ``mount(2)``, ``capset(2)``), by ctypes: Python 3.11 has no names for it. What
cannot be had raises OSError with the system's reason.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NEW_USERS = 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NO_DEVICES, _NO_SETUID = 4, 2
_DETACH = 2
_CAPABILITIES_VERSION = 0x20080522


def _system(name: str, *arguments: object) -> None:
    """A call of the C library that gives 0, or raises OSError."""
    if sys.platform != "linux":
        raise OSError(38, "this takes Linux")
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def leave_the_others() -> None:
    """Take this process into a name space of mounts of its own: as root, or as somebody who may be root in a name space.

    It must not have begun a thread yet.
    """
    user, group = os.getuid(), os.getgid()
    _system("unshare", _NEW_MOUNTS | (_NEW_USERS if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    # What is mounted here must not appear outside.
    _system("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)


def enter(process: int) -> None:
    """See the mounts of another process that has left the others."""
    for kind in ("user", "mnt") if os.getuid() else ("mnt",):
        with open(f"/proc/{process}/ns/{kind}") as namespace:
            _system("setns", namespace.fileno(), 0)


def mount_small_disk(folder: Path, size: int) -> None:
    """A file system of ``size`` bytes in memory on a folder."""
    flags = _NO_DEVICES | _NO_SETUID
    _system("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", flags, f"size={size},mode=0755".encode())


def unmount(folder: Path) -> None:
    """Take it away again."""
    _system("umount2", os.fsencode(folder), _DETACH)


def make_read_only(folder: Path) -> None:
    """Show a folder as one of a read-only disk."""
    name = os.fsencode(folder)
    _system("mount", name, name, None, _BIND | _RECURSIVE, None)
    _system("mount", None, name, None, _BIND | _REMOUNT | _READ_ONLY, None)


def be_nobody_special() -> None:
    """Give up what lets root read and write whatever the modes of files say."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    _system("capset", header, (ctypes.c_uint32 * 6)())
