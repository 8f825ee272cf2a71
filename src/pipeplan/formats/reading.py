"""Schedules and timelines from files: the ending, and what is in it, say which format a file is in."""

from __future__ import annotations

from pathlib import Path

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.formats.kineto import SIZE_LIMIT as TRACE_LIMIT
from pipeplan.formats.kineto import parse_kineto
from pipeplan.formats.pipeplan_json import parse_json
from pipeplan.formats.timeline_table import COLUMNS, parse_timeline_csv
from pipeplan.formats.torch_csv import parse_torch_csv
from pipeplan.model import Schedule, Timeline

SIZE_LIMIT = 64 * MEBIBYTE
"""No schedule file is larger than this, in bytes: about five million ops as CSV."""

ENDINGS = (".csv", ".json")
"""Of files that hold a schedule."""


def read_plan(path: Path, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """The schedule, or the timeline, that a file holds; a CSV with a timeline's header is one.

    A schedule whose format holds no name is called after the file.

    Raises
    ------
    InputError
        If the file cannot be read.
    UnknownNameError
        For an ending other than ``ENDINGS``.
    FormatError
        If it is empty, over ``SIZE_LIMIT``, binary, cut off, or not in the format of its ending.
    InvalidScheduleError
        If it is read well but ranks or stages hold nothing, or an op is out of range.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UnknownNameError("ending of a schedule file", path.suffix or path.name, ENDINGS)
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    if ending == ".csv":
        if text.startswith(",".join(COLUMNS)):
            return parse_timeline_csv(text, name=path.name)
        return parse_torch_csv(text, name=path.name, keep_duplicates=keep_duplicates).renamed(path.stem)
    return parse_json(text, name=path.name, keep_duplicates=keep_duplicates)


def read_schedule(path: Path, *, keep_duplicates: bool = False) -> Schedule:
    """The schedule that a file holds, or the one of its timeline; see :func:`read_plan` for what it raises."""
    plan = read_plan(path, keep_duplicates=keep_duplicates)
    return plan.schedule if isinstance(plan, Timeline) else plan


def read_timelines(path: Path) -> tuple[Timeline, ...]:
    """The timelines that a file holds, or a folder with the traces of a run: one a step.

    A folder's ``.json`` files are traces of PyTorch's profiler, one of every rank.

    Raises
    ------
    InputError
        If something cannot be read, or the file holds a plan, which has no times.
    PipeplanError
        For what :func:`read_plan` and :func:`~pipeplan.formats.kineto.parse_kineto` raise it.
    """
    if path.is_dir():
        return parse_kineto({str(file): _trace_text(file) for file in sorted(path.glob("*.json"))})
    if path.suffix.lower() == ".json" and '"traceEvents"' in (text := _trace_text(path)):
        return parse_kineto({str(path): text})
    plan = read_plan(path)
    if not isinstance(plan, Timeline):
        raise InputError(f"{path} holds a plan, which has no times; a timeline or the traces of a run have them")
    return (plan,)


def _trace_text(path: Path) -> str:
    return read_text(path, limit=TRACE_LIMIT, what="trace")
