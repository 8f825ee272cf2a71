"""Schedules, timelines and costs from files: the ending, and what is in it, say which format a file is in."""

from __future__ import annotations

import os
from pathlib import Path

from pipeplan.costs import Costs
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.formats.format import Readable
from pipeplan.formats.registry import formats
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
    path = Path(path)
    unpacked = Path(unpacked_name(path.name))
    if unpacked.suffix.lower() not in endings():
        raise UnknownNameError("ending of a schedule file", path.suffix or path.name, endings())
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    name = os.fsencode(unpacked.name).decode("utf-8", "replace")
    found = parse(text, name, keep_duplicates=keep_duplicates)
    return found.renamed(Path(name).stem) if isinstance(found, Schedule) and found.name == name else found


def parse(text: str, name: str, *, keep_duplicates: bool = False) -> Readable:
    """What the text of a file of this name holds; see :func:`read_file` for what it raises."""
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
