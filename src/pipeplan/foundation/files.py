"""Reading and writing files: limited in size, written atomically, and with one clear sentence for every failure."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Literal

from pipeplan.foundation.errors import FormatError, InputError

MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30

STANDARD_INPUT = "/dev/stdin"
"""Name of standard input in place of a file; ``-`` is another one."""

_LONGEST_NAME = 200
"""Maximum length of a text in a file's name; file systems take at most 255 bytes."""

_LONGEST_ENDING = 32
"""Maximum length of a temporary file's suffix; a name may consist of its suffix alone."""

_GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""


class Written(tuple[Path, ...]):
    """Paths of written files: the requested one, then those that it refers to.

    Attributes
    ----------
    warnings
        Sentences about the schedule in this format, such as a change to its order.
    """

    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, *paths: Path, warnings: tuple[str, ...] = ()) -> Written:
        """Return these files with these warnings."""
        written = cls(paths)
        written.warnings = warnings
        return written


def file_name(text: str) -> str:
    """Return a text as part of a file's name: shortened, with only letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:_LONGEST_NAME]


def path_of(path: str | os.PathLike[str], what: str = "the file", *, field: str = "") -> Path:
    """Return a path that is valid on this system: of a file, or of an existing folder."""
    value: object = path
    text: object = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InputError(f"{what} must be a path, not {_short(repr(path))}", field=field)
    try:
        os.lstat(text)
    except ValueError:
        fault = "a null byte" if "\0" in text else "an unpaired surrogate"
        raise InputError(
            f"{what} {_short(text)} is an invalid path: a path cannot contain {fault}", field=field
        ) from None
    except OSError as error:
        if not text:
            raise InputError(f"{what} is an empty path", field=field) from None
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise InputError(f"{what} {_short(text)} is an invalid path: {_reason(error)}", field=field) from None
    if text.endswith(_SEPARATORS) and not os.path.isdir(text):
        raise InputError(f"{what} {_short(text)} ends in a path separator, but there is no such folder", field=field)
    return Path(path)


_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:60]}…{text[-60:]}"


def read_text(path: Path, *, limit: int, what: str, errors: Literal["strict", "replace"] = "strict") -> str:
    """Return the text of a file, uncompressed if gzip compressed it. The size is checked before anything is read.

    ``errors="replace"`` accepts bytes that are not UTF-8, such as the torn characters of several writers' logs.
    """
    try:
        data = _read_limited(path, limit, what)
        if data.startswith(_GZIP):
            data = _unpacked(data, path, limit, what)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the {what} {path}: {_reason(error)}{_remedy(path, error)}") from None
    return text_of(data, f"the {what} {path}", errors)


def text_of(data: bytes, what: str, errors: Literal["strict", "replace"] = "strict") -> str:
    """Return the text in some bytes: UTF-8, or UTF-16 with the mark that Excel and PowerShell write at its start.

    ``what`` names the source in messages. Raises FormatError if it is empty or not text.
    """
    if not data.strip():
        raise FormatError(f"{what} is empty")
    if kind := next((kind for start, kind in _BINARY if data.startswith(start)), None):
        raise FormatError(f"{what} is not text: it is {kind}")
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig", errors)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{what} is not text: byte {error.start} is not UTF-8 (line {line}); save it as UTF-8"
        ) from None
    if "\0" in text:
        utf_16 = any(4 * data[start::2].count(0) > len(data) for start in (0, 1))
        remedy = "; save it as UTF-8, it looks like UTF-16" if utf_16 else ""
        raise FormatError(f"{what} is not text: byte {data.index(0)} is zero{remedy}")
    return text


_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""

_BINARY = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet; export a spreadsheet as CSV"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x7fELF", "a program"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
)
"""First bytes of files that users pass by mistake, and what those are."""


def _remedy(path: Path, error: Exception) -> str:
    """Return the remedy for a path that cannot be read: the nearest name in its folder, or that it is a folder."""
    if isinstance(error, IsADirectoryError):
        return "; name a file in it"
    if not isinstance(error, FileNotFoundError):
        return ""
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent}"
    with suppress(OSError):
        names = islice((entry.name for entry in os.scandir(path.parent)), _MOST_COMPARED)
        if near := get_close_matches(path.name, names, n=1, cutoff=0.75):
            return f"; did you mean '{path.with_name(near[0])}'?"
    return ""


_MOST_COMPARED = 1_000
"""Maximum number of files in a folder that are compared with a name."""


def require_no_folder(path: Path, what: str) -> None:
    """Raise InputError if a path in place of a file is a folder."""
    if path.is_dir():
        raise InputError(f"cannot read the {what} {path}: it is a folder; name a file in it")


def _unpacked(data: bytes, path: Path, limit: int, what: str) -> bytes:
    """Return the uncompressed content of a gzip file."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            pieces = iter(lambda: file.read(min(MEBIBYTE, limit + 1)), b"")
            content = b"".join(islice(pieces, limit // MEBIBYTE + 1))
    except EOFError:
        raise FormatError(
            f"the {what} {path} is cut off: its gzip stream has no end; copy it again as a whole"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"the {what} {path} is damaged: {_reason(error)}; copy it again") from None
    if len(content) > limit:
        raise FormatError(f"the {what} {path} unpacks to more than {limit:,} bytes; a {what} has at most that many")
    return content


def _read_limited(path: Path, limit: int, what: str) -> bytes:
    """Return the bytes of a file; a pipe, which has no size, is read up to the limit."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # A single read would allocate the whole limit.
        pieces = iter(lambda: file.read(min(MEBIBYTE, limit + 1)), b"")
        data = b"" if size > limit else b"".join(islice(pieces, limit // MEBIBYTE + 1))
    if max(size, len(data)) > limit:
        raise FormatError(f"the {what} {path} has {max(size, len(data)):,} bytes; a {what} has at most {limit:,}")
    return data


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file with the suffix of ``path``, and move it there after the block.

    An existing file is replaced atomically and keeps its mode and, if permitted, its owner; a link stays, and its target is
    replaced. A pipe or a device such as ``/dev/null`` receives the content. After a failure the previous content stays, and
    no temporary file is left.
    """
    require_writable(path)
    try:
        target = None if is_stream(path) else _followed(path)
        with _temporary(path.suffix, None if target is None else target.parent) as temporary:
            yield temporary
            if target is None:
                _pour(temporary, path)
            else:
                _replace(target, temporary)
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create an empty folder that only this user can read, and remove it with its content after the block."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="pipeplan-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(f"cannot make a temporary folder: {_reason(error)}; set TMPDIR to another folder") from None
    with folder as name:
        yield Path(name)


@contextmanager
def _temporary(suffix: str, folder: Path | None) -> Iterator[Path]:
    """Create a temporary file that only this user can read, and remove it after the block unless it was moved."""
    descriptor, name = tempfile.mkstemp(prefix=".pipeplan-", suffix=suffix[:_LONGEST_ENDING], dir=folder)
    temporary = Path(name)
    try:
        os.close(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _replace(target: Path, temporary: Path) -> None:
    """Move a file into place, with the mode and owner of an existing file."""
    try:
        old = target.stat()
    except FileNotFoundError:
        mask = os.umask(0)  # it can be read only by setting it
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    else:
        # Only root can change the owner; another user's file becomes ours, as if it were deleted and written again.
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
        temporary.chmod(stat.S_IMODE(old.st_mode))
    temporary.replace(target)


def _pour(content: Path, stream: Path) -> None:
    """Write the content of a file to a pipe, a device or an open descriptor."""
    descriptor = _descriptor(stream)
    target = os.open(stream, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
    with open(target, "wb") as sink, content.open("rb") as source:
        shutil.copyfileobj(source, sink)


def is_stream(path: Path) -> bool:
    """Return whether an output can be written only once: a pipe, a device such as a terminal, or an open descriptor."""
    return _descriptor(path) is not None or (path.exists() and not path.is_file())


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as ``/dev/stdout`` or ``/dev/fd/3`` leads to, or None.

    Opening such a name again would start at the beginning of the file and overwrite its content.
    """
    own = {os.path.realpath("/dev/fd"), "/dev/fd"}
    for _ in range(40):  # longer chains of links are cycles
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _followed(path: Path) -> Path:
    """Return the target of a link, existing or not; other paths stay unchanged, for messages."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def require_writable(path: Path) -> None:
    """Check that an output can be written, before any work."""
    try:
        obstacle = _obstacle(path)
    except (OSError, ValueError, OverflowError) as error:
        obstacle = _reason(error)
    if obstacle is not None:
        raise InputError(f"cannot write {path}: {obstacle}")


def _obstacle(path: Path) -> str | None:
    if (descriptor := _descriptor(path)) is not None:
        os.fstat(descriptor)
        return None
    target = _followed(path)
    if "\0" in path.name:
        return "a name cannot contain a null byte"
    if target.is_symlink():
        return "its links go round in a circle"
    if target.exists() and not target.is_file():
        return _obstacle_to_stream(target)
    return _obstacle_to_file(target)


def _obstacle_to_stream(target: Path) -> str | None:
    if target.is_dir():
        return "it is a folder; name a file in it"
    if not (target.is_fifo() or target.is_char_device()):
        return "it is neither a file nor a pipe"
    return None if os.access(target, os.W_OK) else "it is read-only"


def _obstacle_to_file(target: Path) -> str | None:
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}; create it first"
    if not os.access(target.parent, os.W_OK):
        return f"the folder {target.parent} is read-only"
    return "it is read-only" if target.exists() and not os.access(target, os.W_OK) else None


def require_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Check that no output is an input or another output.

    Files are compared by identity: links, relative paths and descriptors are followed. An input folder means all its files.
    """
    read = {_identity(file) for path in inputs for file in _files(path)}
    written: dict[tuple[int, int] | str, Path] = {}
    for output in outputs:
        identity = _identity(output)
        if identity in read:
            raise InputError(f"{output} is also an input, and inputs are never overwritten: choose another output")
        if identity in written:
            other = written[identity]
            names = f"{output} is given twice" if other == output else f"{other} and {output} are the same file"
            raise InputError(f"{names}; choose another file for one of the outputs")
        written[identity] = output


_MOST_BELOW = 100_000
"""Maximum number of files in an input folder; traces of a run have fewer, a whole disk has more."""


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, without following links; unreadable folders are left out."""
    files: list[Path] = []
    for place, _, names in os.walk(folder):
        files += [Path(place, name) for name in names]
        if len(files) > _MOST_BELOW:
            raise InputError(f"{folder} holds more than {_MOST_BELOW:,} files: name the folder of one run")
    return files


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or a folder and its files; unreadable paths are left out, and fail when they are read."""
    with suppress(OSError):
        if path.exists():
            yield path
        if path.is_dir():
            yield from files_below(path)


def _identity(path: Path) -> tuple[int, int] | str:
    """Return the identity of a file: device and inode, or the real path of a file that does not exist yet."""
    try:
        status = path.stat()
    except OSError:
        with suppress(OSError):  # the working folder itself may be gone, which writing reports
            return os.path.realpath(path)
        return os.fspath(path)
    return status.st_dev, status.st_ino


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
