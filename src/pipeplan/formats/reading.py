"""Schedules, timelines and costs from files and standard input: the ending and the content tell the format."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from pipeplan.costs import Costs
from pipeplan.errors import FormatError, InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, path_of, read_text
from pipeplan.formats.format import Readable, formats
from pipeplan.model import Schedule, Timeline

SIZE_LIMIT = 64 * MEBIBYTE
"""No schedule file is larger than this, in bytes: about five million ops as CSV."""

FilePath = str | os.PathLike[str]


def endings() -> tuple[str, ...]:
    """The endings of files that can hold a schedule."""
    return tuple(sorted({each.suffix for each in formats().values() if each.read is not None}))


def unpacked_name(name: str) -> str:
    """The name of a file without the ending that gzip gives it."""
    return name[: -len(".gz")] if name.lower().endswith(".gz") else name


def read_file(path: FilePath, *, keep_duplicates: bool = False) -> Readable:
    """The schedule, the timeline or the costs that a file holds.

    A schedule whose format holds no name is called after the file, as far as that is text.

    Raises
    ------
    InputError
        If the file cannot be read.
    UnknownNameError
        For an ending other than ``endings()``.
    FormatError
        If it is empty, over ``SIZE_LIMIT``, binary, cut off, or not in the format of its ending.
    InvalidScheduleError
        If it is read well but ranks or stages hold nothing, or an op is out of range.
    """
    path = path_of(path, "the schedule file")
    unpacked = Path(unpacked_name(path.name))
    if unpacked.suffix.lower() in {".yaml", ".yml", ".toml"}:
        raise InputError(f"{path} holds no schedule: a file of settings is for --config")
    if unpacked.suffix.lower() not in endings():
        raise UnknownNameError("ending of a schedule file", path.suffix or path.name, endings())
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    name = os.fsencode(unpacked.name).decode("utf-8", "replace")
    found = parse(text, name, keep_duplicates=keep_duplicates)
    return found.renamed(Path(name).stem) if isinstance(found, Schedule) and found.name == name else found


def parse(text: str, name: str, *, keep_duplicates: bool = False) -> Readable:
    """Return the content of the text of a file of this name; see :func:`read_file` for what it raises."""
    suffix = Path(name).suffix.lower()
    readers = [each for each in formats().values() if each.suffix == suffix and each.read is not None]
    chosen = [each for each in readers if each.recognises is not None and each.recognises(text)]
    chosen += [each for each in readers if each.recognises is None]
    if not chosen:
        raise UnknownNameError("ending of a schedule file", suffix or name, endings())
    assert chosen[0].read is not None
    return chosen[0].read(text, name, keep_duplicates)


def read_schedule_or_timeline(path: FilePath, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """The schedule, or the timeline, that a file holds; see :func:`read_file` for what it raises."""
    found = read_file(path, keep_duplicates=keep_duplicates)
    if isinstance(found, Costs):
        raise InputError(f"{path} holds costs, not a schedule: use it as the config file")
    return found


def read_schedule(path: FilePath, *, keep_duplicates: bool = False) -> Schedule:
    """Return the schedule that a file holds, or the schedule of its timeline.

    Parameters
    ----------
    path
        The file; its ending names the format.
    keep_duplicates
        Whether ops that stand twice are kept, for the checker to report, instead of being refused.

    Raises
    ------
    UnknownNameError
        If no format has the file's ending.
    InputError
        If the file cannot be read, or holds costs.
    FormatError
        If its content is not in the format that its ending names.
    """
    found = read_schedule_or_timeline(path, keep_duplicates=keep_duplicates)
    return found.schedule if isinstance(found, Timeline) else found


STANDARD_INPUT = "/dev/stdin"
"""Name of standard input in place of a file; ``-`` is another."""

_NAME = "stdin"


def is_standard_input(source: object) -> bool:
    """Whether a name in place of a file stands for standard input."""
    return isinstance(source, str) and source in ("-", STANDARD_INPUT)


def read_standard_input(source: BinaryIO | None = None, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """The schedule, or the timeline, that is typed or piped: rows of ops, a CSV or JSON.

    Parameters
    ----------
    source
        What to read instead of this process's standard input.
    keep_duplicates
        Whether an op that stands twice is left for the checker to report.

    Raises
    ------
    FormatError
        If it is no text, empty, over ``SIZE_LIMIT``, or in none of these formats.
    InputError
        If it holds costs, or cannot be read.
    InvalidScheduleError
        If its ops make no schedule.
    """
    content = _content(source)
    if len(content) > SIZE_LIMIT:
        raise FormatError(f"standard input holds more than {SIZE_LIMIT // MEBIBYTE} MiB, the limit of a schedule")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("standard input is not text in UTF-8") from None
    if not text.strip():
        raise FormatError("standard input is empty; it takes rows of ops, a CSV or JSON")
    found = parse(text, f"{_NAME}{_suffix(text)}", keep_duplicates=keep_duplicates)
    if isinstance(found, Costs):
        raise InputError("standard input holds costs, not a schedule: save them, and give them as the config file")
    return found.renamed(_NAME) if isinstance(found, Schedule) and found.name.startswith(f"{_NAME}.") else found


def _content(source: BinaryIO | None) -> bytes:
    """Return the bytes of standard input, up to one over the limit."""
    if source is None and sys.stdin is None:
        raise InputError("standard input is closed: pipe a schedule into it, or name a file")
    try:
        return (sys.stdin.buffer if source is None else source).read(SIZE_LIMIT + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"standard input cannot be read ({reason}): pipe a schedule into it, or name a file") from None


def _suffix(text: str) -> str:
    start = text.lstrip()
    if start.startswith(("{", "[")):
        return ".json"
    return ".csv" if "," in start.partition("\n")[0] else ".txt"
