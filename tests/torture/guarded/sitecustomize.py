"""Every Python process of a box says what it writes outside it, and reaches no address but loopback.

Python imports a module of this name at its start; the box puts this folder first on the path. So a new interpreter, a worker
of a sweep or of the web app, and a rank of a run are watched as their parent is.
"""

import contextlib
import os
import sys

FOLDERS, SAID = "PIPEPLAN_TORTURE_FOLDERS", "PIPEPLAN_TORTURE_STRAYS"
"""The environment's names for the folders that may be written in, and for the file that is told of other writes."""

_SYSTEM = ("/dev/", "/proc/", "/sys/")
_COMMON = ("/tmp", "/var/tmp", "/usr/tmp")
"""Where Python tries to write when a temporary folder takes nothing: in a box nothing may, as on a machine that is full."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FIRST = frozenset(
    {
        *("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("sqlite3.connect", "tempfile.mkstemp", "tempfile.mkdtemp"),
    }
)
"""Events whose first argument is what is written; of two names the second is what is made."""

_SECOND = frozenset({"os.link", "os.symlink"})
_SENDING = frozenset({"socket.connect", "socket.sendto", "socket.bind"})


class _Guard:
    """What Python tells of a process's doings, held against what it may do."""

    def __init__(self) -> None:
        self._busy = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _SENDING:
            self._require_loopback(event.rpartition(".")[2], arguments[1])
        elif event == "socket.getaddrinfo":
            self._require_name(arguments[0])
        elif not self._busy:
            for path in _written(event, arguments):
                self._require_own(path, event)
                self._look_at(path, event)

    def _require_own(self, path: object, event: str) -> None:
        """Refuse what Python would write for a trial: it tries the next folder then."""
        if event == "open" and isinstance(path, str) and os.path.dirname(path) in _COMMON and not self._is_inside(path):
            raise PermissionError(f"{path} is refused in a box")

    def _look_at(self, path: object, event: str) -> None:
        self._busy = True
        try:
            with contextlib.suppress(Exception):  # a watch that fails must not change what it watches
                if isinstance(path, str | bytes | os.PathLike):
                    place = os.path.abspath(os.fsdecode(path))
                    if not self._is_inside(place) or (event == "open" and not self._is_inside(os.path.realpath(place))):
                        self._say(f"{place} was written ({event})")
        finally:
            self._busy = False

    def _is_inside(self, place: str) -> bool:
        folders = os.environ.get(FOLDERS, "").split(os.pathsep)  # of a forked command another than at its start
        return place.startswith(_SYSTEM) or any(place == each or place.startswith(each + "/") for each in folders)

    def _say(self, what: str) -> None:
        number = os.open(os.environ[SAID], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(number, f"{what!r}\n".encode())
        finally:
            os.close(number)

    def _require_loopback(self, does: str, address: object) -> None:
        """Addresses with a host; those of one machine alone are texts."""
        if isinstance(address, tuple) and address and not _is_loopback(address[0]):
            self._refuse(f"{does} to {address[0]!r}")

    def _require_name(self, host: object) -> None:
        """Only names that nobody has to be asked for."""
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        if isinstance(name, str) and "." in name.strip(".") and name.rpartition(".")[2].isalpha():
            self._refuse(f"a look-up of {name}")

    def _refuse(self, what: str) -> None:
        self._busy = True
        try:
            with contextlib.suppress(Exception):
                self._say(f"{what}, which is not loopback")
        finally:
            self._busy = False
        raise PermissionError(f"{what} is refused in a box")


def _written(event: str, arguments: tuple[object, ...]) -> tuple[object, ...]:
    if event == "open":
        path, mode, flags = (*arguments, None, None)[:3]
        writes = flags & _WRITING if isinstance(flags, int) else isinstance(mode, str) and set(mode) & set("wax+")
        return (path,) if writes and not isinstance(path, int) else ()
    if event == "os.rename":
        return arguments[:2]
    return arguments[:1] if event in _FIRST else arguments[1:2] if event in _SECOND else ()


def _is_loopback(host: object) -> bool:
    """Whether only this machine is meant; an empty name to bind to stands for every interface."""
    return not isinstance(host, str) or host in ("localhost", "::1") or host.startswith(("127.", "::ffff:127."))


if FOLDERS in os.environ and SAID in os.environ:
    sys.addaudithook(_Guard())
