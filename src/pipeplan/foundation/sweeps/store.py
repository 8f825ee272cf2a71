"""Store of a sweep: an SQLite database with one row per finished task.

A sweep that is killed at any moment leaves a valid file with everything that was stored. One process at a time can use it.
The lock is the operating system's, so it ends with the process and never needs to be removed. The file also holds the
identity of its sweep, which is everything that the answers depend on, so that it is never used for another sweep.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.foundation.files import is_stream, require_writable
from pipeplan.foundation.sweeps.tasks import Failure, Row

_MAX_NAMED = 3
"""Maximum number of differences listed in an error message."""

_MAX_LETTERS = 40
"""Maximum length of a value in an error message."""


def version() -> str:
    """Return the version of the running package, which may differ from the installed one."""
    return str(sys.modules[__package__.partition(".")[0]].__version__)


def identity(asked: Mapping[str, object]) -> str:
    """Return what the answers depend on, with the version of pipeplan, as JSON."""
    return json_text({"pipeplan": version(), **asked}, compact=True)


def differences(there: str, here: str) -> str:
    """Describe the differences of two identities; empty if they are equal."""
    different = list(_between(json.loads(there), json.loads(here), ""))
    words = [
        f"{place} is {_short(old)} there and {_short(new)} here" for place, old, new in islice(different, _MAX_NAMED)
    ]
    more = len(different) - _MAX_NAMED
    return ", ".join([*words, f"and {more} more"] if more > 0 else words)


_ABSENT = object()


def _between(there: Any, here: Any, place: str) -> list[tuple[str, Any, Any]]:
    """Return the path of every difference, and its two values."""
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            difference
            for name in dict.fromkeys([*there, *here])
            for difference in _between(
                there.get(name, _ABSENT), here.get(name, _ABSENT), f"{place}.{name}" if place else name
            )
        ]
    return [] if there == here else [(place, there, here)]


def _short(value: object) -> str:
    text = "absent" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 3]}..."


_APPLICATION = 0x70706C73
"""``ppls``: identifies the file's application in SQLite's header."""

_LAYOUT = 1
"""Version of the tables."""

_TABLES = """
CREATE TABLE sweep (asked TEXT NOT NULL, begun TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE finished (
    key TEXT PRIMARY KEY, answer TEXT, error TEXT, message TEXT, seconds REAL NOT NULL,
    CHECK ((answer IS NULL) <> (error IS NULL))
) WITHOUT ROWID;
"""


class Store:
    """Finished tasks of one sweep, in a file."""

    def __init__(self, path: Path, identity: str) -> None:
        if is_stream(path):
            raise InputError(f"the store {path} is not a file; name another", field="store")
        require_writable(path)
        self.path = path
        with self._errors("open"):
            # isolation_level=None: every statement is its own transaction. The sweep's lock lets one thread at a time use
            # the connection.
            self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with self._errors("open"):
                self._begin(identity)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, identity: str) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._file.execute("BEGIN EXCLUSIVE")
        if self._file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in _TABLES.split(";\n"):
                self._file.execute(statement)
            self._file.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._file.execute(f"PRAGMA user_version = {_LAYOUT}")
            self._file.execute("INSERT INTO sweep (asked) VALUES (?)", (identity,))
        self._require_same(identity)
        self._file.execute("COMMIT")
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")

    def _require_same(self, identity: str) -> None:
        if self._number("application_id") != _APPLICATION:
            raise FormatError(
                f"{self.path} is a database but not the store of a sweep; name another file", field="store"
            )
        if self._number("user_version") != _LAYOUT:
            raise FormatError(
                f"the store {self.path} was written by another version of pipeplan; name another file, or remove it",
                field="store",
            )
        if self._file.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged()
        (there,) = self._file.execute("SELECT asked FROM sweep").fetchone() or ("",)
        try:
            different = differences(there, identity)
        except (TypeError, ValueError):
            raise self._damaged() from None
        if different:
            raise InputError(
                f"the store {self.path} holds another sweep: {different}; name another file, or remove it",
                field="store",
            )

    def _damaged(self) -> FormatError:
        return FormatError(f"{self.path} is damaged or not a sweep store; name another file", field="store")

    def _number(self, name: str) -> int:
        (number,) = self._file.execute(f"PRAGMA {name}").fetchone()
        return int(number)

    def __len__(self) -> int:
        """Return the number of finished tasks."""
        with self._errors("read"):
            (count,) = self._file.execute("SELECT count(*) FROM finished").fetchone()
        return int(count)

    def get(self, key: str) -> Row | None:
        """Return the row of a task; None if it is not finished."""
        with self._errors("read"):
            row = self._file.execute(
                "SELECT answer, error, message, seconds FROM finished WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            return None
        answer, error, message, seconds = row
        failure = None if error is None else Failure(kind="refused", error=error, message=message or "")
        return key, answer, failure, seconds

    def put(self, row: Row) -> None:
        """Store a row. Raises InputError if the disk is full or the file can no longer be written."""
        key, answer, failure, seconds = row
        reason = (None, None) if failure is None else (failure.error, failure.message)
        with self._errors("write"):
            self._file.execute("INSERT OR IGNORE INTO finished VALUES (?, ?, ?, ?, ?)", (key, answer, *reason, seconds))

    def close(self) -> None:
        """Merge the journal into the file, and release it."""
        # On a full disk, the rows stay in the journal next to the file, where the next sweep reads them.
        with suppress(sqlite3.Error):
            self._file.execute("PRAGMA journal_mode = DELETE")
        self._file.close()

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._refuse(action, error)

    def _refuse(self, action: str, error: sqlite3.Error) -> NoReturn:
        """Raise SQLite's error as a message with a remedy."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise InputError(
                f"the store {self.path} is in use{_owner(self.path)}; wait for that to end, or name another file",
                field="store",
            ) from None
        if code == sqlite3.SQLITE_FULL:
            raise InputError(
                f"no space left for the store {self.path}; its contents are kept: free some space and rerun the same "
                "command to resume",
                field="store",
            ) from None
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise self._damaged() from None
        raise InputError(f"cannot {action} the store {self.path}: {error}", field="store") from None


def _owner(path: Path) -> str:
    """Describe the process that has locked a file; empty if the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        inode = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[5].rpartition(":")[2] == inode and int(words[4]) not in {-1, os.getpid()}:
                return f" by process {words[4]}"
    return ""
