"""Reading and writing files so that a failure is one clear sentence and never a half-written file."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path

from pipeplan.errors import FormatError, InputError

MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30

_LONGEST_NAME = 200
"""Of a text in a file's name: file systems take no more than 255 bytes."""

_LONGEST_ENDING = 32
"""Of a temporary file: known ones are shorter, and the name of a file may be all ending."""

_GZIP = b"\x1f\x8b"
"""How a file starts that gzip has packed."""


class Written(tuple[Path, ...]):
    """The files that were written: the requested one, then those that it names.

    Attributes
    ----------
    warnings
        What the user must know of a schedule in their format, such as a change to its order, a sentence each.
    """

    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, *paths: Path, warnings: tuple[str, ...] = ()) -> Written:
        """Return these files with these warnings."""
        written = cls(paths)
        written.warnings = warnings
        return written


def file_name(text: str) -> str:
    """A text as part of a file's name: letters, digits, dots, dashes and underscores only, and not too long."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:_LONGEST_NAME]


def path_of(path: str | os.PathLike[str], what: str = "the file", *, field: str = "") -> Path:
    """A path that can be one on this system: of a file, or of a folder that is there.

    Parameters
    ----------
    what
        What it names, for messages.
    field
        The setting that it comes from, for the error.

    Raises
    ------
    InputError
        For what is no path of letters; for one that is empty or longer than the system takes, that holds a zero byte, or
        that ends like a folder's and leads to none: such an ending would be lost.
    """
    given: object = path
    text: object = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InputError(f"{what} must be a path, not {_short(repr(path))}", field=field)
    try:
        os.lstat(text)
    except ValueError:
        held = "a zero byte" if "\0" in text else "half a letter"
        raise InputError(f"{what} {_short(text)} is no path: it cannot hold {held}", field=field) from None
    except OSError as error:
        if not text:
            raise InputError(f"{what} is an empty path", field=field) from None
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise InputError(f"{what} {_short(text)} is no path: {_reason(error)}", field=field) from None
    if text.endswith(_SEPARATORS) and not os.path.isdir(text):
        raise InputError(f"{what} {_short(text)} is named like a folder, and there is none", field=field)
    return Path(path)


_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:60]}…{text[-60:]}"


def read_text(path: Path, *, limit: int, what: str) -> str:
    """The text of a file of at most ``limit`` bytes, unpacked where gzip packed it.

    The size is looked at before anything is read.

    Parameters
    ----------
    limit
        The most bytes that a file of this sort can have.
    what
        What it should be, for messages: ``config file``, ``schedule``.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read.
    FormatError
        If it is empty, larger than the limit, packed by gzip and cut off or damaged, or not text (UTF-8).
    """
    try:
        data = _read_limited(path, limit, what)
        if data.startswith(_GZIP):
            data = _unpacked(data, path, limit, what)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the {what} {path}: {_reason(error)}") from None
    if not data.strip():
        raise FormatError(f"the {what} {path} is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"the {what} {path} is not text: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise FormatError(f"the {what} {path} is not text: byte {data.index(0)} is zero")
    return text


def _unpacked(data: bytes, path: Path, limit: int, what: str) -> bytes:
    """What gzip has packed into a file, whatever its name."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            pieces = iter(lambda: file.read(min(MEBIBYTE, limit + 1)), b"")
            found = b"".join(islice(pieces, limit // MEBIBYTE + 1))
    except EOFError:
        raise FormatError(
            f"the {what} {path} is cut off: its gzip stream has no end; copy it again as a whole"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"the {what} {path} is damaged: {_reason(error)}; copy it again") from None
    if len(found) > limit:
        raise FormatError(f"the {what} {path} unpacks to more than {limit:,} bytes; a {what} has at most that many")
    return found


def _read_limited(path: Path, limit: int, what: str) -> bytes:
    """The bytes of a file; one that has no size of its own (a pipe) is read up to the limit."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # A read takes the memory of all that it may bring.
        pieces = iter(lambda: file.read(min(MEBIBYTE, limit + 1)), b"")
        data = b"" if size > limit else b"".join(islice(pieces, limit // MEBIBYTE + 1))
    if max(size, len(data)) > limit:
        raise FormatError(f"the {what} {path} has {max(size, len(data)):,} bytes; a {what} has at most {limit:,}")
    return data


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all. Raises what :func:`replacing` does."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file with the ending of ``path``; its content is put there once the block has ended well.

    A file is replaced at once by one of its mode and, where that is allowed, of its owner; a link stays, and the file that
    it leads to is replaced. Into what is no file, such as a pipe or ``/dev/null``, the content is written. A failure leaves
    what was there, and no temporary file.

    Raises
    ------
    InputError
        For what :func:`require_writable` raises it, and if the disk is full or nobody reads a pipe any more.
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
    """Make an empty folder that only this user can read; it is removed after the block with everything in it.

    Raises
    ------
    InputError
        If the system's folder for temporary files cannot be written.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="pipeplan-"))
    except OSError as error:
        raise InputError(f"cannot make a temporary folder: {_reason(error)}; set TMPDIR to another folder") from None
    try:
        yield folder
    finally:
        _certainly(partial(shutil.rmtree, folder, ignore_errors=True))


@contextmanager
def _temporary(ending: str, folder: Path | None) -> Iterator[Path]:
    """Make a temporary file that only this user can read; it is removed after the block unless it was moved."""
    descriptor, name = tempfile.mkstemp(prefix=".pipeplan-", suffix=ending[:_LONGEST_ENDING], dir=folder)
    temporary = Path(name)
    try:
        os.close(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            _certainly(partial(temporary.unlink, missing_ok=True))


def _certainly(clear_up: Callable[[], None]) -> None:
    """Clear up, also where a signal or Ctrl-C comes meanwhile: it ends the command after that."""
    try:
        clear_up()
    except BaseException:
        clear_up()
        raise


def _replace(target: Path, temporary: Path) -> None:
    """Put a file in its place; it takes over the mode and owner of a file that is there."""
    try:
        old = target.stat()
    except FileNotFoundError:
        mask = os.umask(0)  # it can be read only by setting it
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    else:
        # Only root gives files away; a file of somebody else's becomes ours, as it would by being deleted and written anew.
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
        temporary.chmod(stat.S_IMODE(old.st_mode))
    temporary.replace(target)


def _pour(content: Path, stream: Path) -> None:
    """Write what a file holds into a pipe, a device or an open descriptor."""
    descriptor = _descriptor(stream)
    target = os.open(stream, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
    with open(target, "wb") as sink, content.open("rb") as source:
        shutil.copyfileobj(source, sink)


def is_stream(path: Path) -> bool:
    """Whether an output takes once, in order, what is written: a pipe, a device such as a terminal, an open descriptor."""
    return _descriptor(path) is not None or (path.exists() and not path.is_file())


def _descriptor(path: Path) -> int | None:
    """The number of this process's descriptor that a path such as ``/dev/stdout`` or ``/dev/fd/3`` leads to.

    What is opened by such a name anew has a place of its own in the file, and would write over what stands there.
    """
    own = {os.path.realpath("/dev/fd"), "/dev/fd"}
    for _ in range(40):  # as many links in a row go round in a circle
        if path.name.isdecimal() and os.path.realpath(path.parent) in own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _followed(path: Path) -> Path:
    """The file that a link leads to, existing or not; any other path as it stands, for messages."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def require_writable(path: Path) -> None:
    """Check before any work is done that an output can be written.

    Raises
    ------
    InputError
        If its folder is missing, is a file or is read-only; if it is itself a folder, read-only, or something that is
        neither a file nor a pipe nor a device that takes characters.
    """
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
        return "a name cannot hold a zero byte"
    if target.is_symlink():
        return "its links go round in a circle"
    if target.exists() and not target.is_file():
        return _obstacle_to_stream(target)
    return _obstacle_to_file(target)


def _obstacle_to_stream(target: Path) -> str | None:
    if target.is_dir():
        return "it is a folder"
    if not (target.is_fifo() or target.is_char_device()):
        return "it is neither a file nor a pipe"
    return None if os.access(target, os.W_OK) else "it is read-only"


def _obstacle_to_file(target: Path) -> str | None:
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    if not os.access(target.parent, os.W_OK):
        return f"the folder {target.parent} is read-only"
    return "it is read-only" if target.exists() and not os.access(target, os.W_OK) else None


def require_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, or to write two things to one file.

    A file is the same under every name: links, relative paths and descriptors are followed. A folder that is read stands for
    the files in it.

    Raises
    ------
    InputError
        If an output is one of the inputs, or another output.
    """
    read = {_identity(file) for path in inputs for file in _files(path)}
    written: dict[tuple[int, int] | str, Path] = {}
    for output in outputs:
        identity = _identity(output)
        if identity in read:
            raise InputError(f"{output} is an input; an input is never overwritten: choose another output")
        if identity in written:
            other = written[identity]
            names = f"{output} is given twice" if other == output else f"{other} and {output} are one file"
            raise InputError(f"{names}; choose another file for one of the outputs")
        written[identity] = output


_MOST_BELOW = 100_000
"""Files in one folder that is read: the traces of more ranks and steps than any run keeps. A whole disk has more."""


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in those below it, not in those that links lead to; what cannot be read is left out.

    Raises
    ------
    InputError
        For more than 100,000: reading these was not meant.
    """
    found: list[Path] = []
    for place, _, names in os.walk(folder):
        found += [Path(place, name) for name in names]
        if len(found) > _MOST_BELOW:
            raise InputError(f"{folder} holds more than {_MOST_BELOW:,} files: name the folder of one run")
    return found


def _files(path: Path) -> Iterator[Path]:
    """A file, or a folder and the files in it; what cannot be read is left out, and reading it will say so."""
    with suppress(OSError):
        if path.exists():
            yield path
        if path.is_dir():
            yield from files_below(path)


def _identity(path: Path) -> tuple[int, int] | str:
    """What identifies a file under every name: device and number, or the real path of one that does not exist yet."""
    try:
        found = path.stat()
    except OSError:
        with suppress(OSError):  # where the working folder itself is gone, which writing will say
            return os.path.realpath(path)
        return os.fspath(path)
    return found.st_dev, found.st_ino


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
