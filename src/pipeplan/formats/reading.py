"""Schedules, timelines and costs from files: the ending, and what is in it, say which format a file is in."""

from __future__ import annotations

import os
from pathlib import Path

from pipeplan.costs import Costs
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.formats.format import Readable
from pipeplan.formats.kineto import SIZE_LIMIT as TRACE_LIMIT
from pipeplan.formats.kineto import parse_kineto
from pipeplan.formats.registry import formats
from pipeplan.model import Schedule, Timeline

SIZE_LIMIT = 64 * MEBIBYTE
"""No schedule file is larger than this, in bytes: about five million ops as CSV."""

FilePath = str | os.PathLike[str]


def endings() -> tuple[str, ...]:
    """The endings of files that can hold a schedule."""
    return tuple(sorted({each.suffix for each in formats().values() if each.read is not None}))


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
    if path.suffix.lower() not in endings():
        raise UnknownNameError("ending of a schedule file", path.suffix or path.name, endings())
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    name = os.fsencode(path.name).decode("utf-8", "replace")
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
    """The schedule that a file holds, or the one of its timeline; see :func:`read_file` for what it raises."""
    found = read_schedule_or_timeline(path, keep_duplicates=keep_duplicates)
    return found.schedule if isinstance(found, Timeline) else found


def read_timelines(path: FilePath) -> tuple[Timeline, ...]:
    """The timelines that a file holds, or a folder with the traces of a run: one a step.

    A folder's ``.json`` files are traces of PyTorch's profiler, one of every rank.

    Raises
    ------
    InputError
        If something cannot be read, or the file holds a schedule, which has no times.
    PipeplanError
        For what :func:`read_file` and :func:`~pipeplan.formats.kineto.parse_kineto` raise it.
    """
    path = Path(path)
    if path.is_dir():
        return parse_kineto({str(file): _trace_text(file) for file in sorted(path.glob("*.json"))})
    if path.suffix.lower() == ".json" and '"traceEvents"' in (text := _trace_text(path)):
        return parse_kineto({str(path): text})
    found = read_schedule_or_timeline(path)
    if not isinstance(found, Timeline):
        raise InputError(f"{path} holds a schedule, which has no times; a timeline or the traces of a run have them")
    return (found,)


def _trace_text(path: Path) -> str:
    return read_text(path, limit=TRACE_LIMIT, what="trace")
