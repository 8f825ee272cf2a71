"""Reading and writing files so that a failure is one clear sentence and never a half-written file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeplan.errors import FormatError, InputError

MEBIBYTE = 1 << 20


def read_text(path: Path, *, limit: int, what: str) -> str:
    """The text of a file of at most ``limit`` bytes; the size is looked at before anything is read.

    Parameters
    ----------
    path
        The file.
    limit
        The most bytes that a file of this sort can have.
    what
        What it should be, for messages: ``config file``, ``schedule``.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read.
    FormatError
        If it is empty, larger than the limit, or not text (UTF-8).
    """
    try:
        data = _read_limited(path, limit, what)
    except OSError as error:
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


def _read_limited(path: Path, limit: int, what: str) -> bytes:
    """The bytes of a file; one that has no size of its own (a pipe) is read up to the limit."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(limit + 1)
    if max(size, len(data)) > limit:
        raise FormatError(
            f"the {what} {path} has {max(size, len(data)):,} bytes; more than {limit:,} cannot be a {what}"
        )
    return data


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all. Raises InputError where that cannot be."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path``, with the same ending, that takes its place when the block ends well.

    A failure leaves what was there, and no temporary file.

    Raises
    ------
    InputError
        If the folder is missing or read-only, the path is a folder, the disk is full.
    """
    temporary: Path | None = None
    try:
        require_folder(path)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Check before any work is done that an output has a folder to go to.

    Raises
    ------
    InputError
        If the folder is missing or is a file, or the path itself is a folder.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: the folder {path.parent} is read-only")


def require_no_input(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse to write over a file that is read.

    Raises
    ------
    InputError
        If an output is one of the inputs, under whatever name.
    """
    read = [path for path in inputs if path.exists()]
    for output in outputs:
        if output.exists() and any(output.samefile(path) for path in read):
            raise InputError(f"{output} is an input; an input is never overwritten: choose another output")


def _umask() -> int:
    """The mask of new files, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
