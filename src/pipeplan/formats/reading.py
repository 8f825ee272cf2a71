"""Schedules and timelines from files: the ending says which format a file is in."""

from __future__ import annotations

from pathlib import Path

from pipeplan.errors import UnknownNameError
from pipeplan.files import MEBIBYTE, read_text
from pipeplan.formats.pipeplan_json import parse_json
from pipeplan.formats.torch_csv import parse_torch_csv
from pipeplan.model import Schedule, Timeline

SIZE_LIMIT = 64 * MEBIBYTE
"""No schedule file is larger than this, in bytes: about five million ops as CSV."""

ENDINGS = (".csv", ".json")
"""Of files that hold a schedule."""


def read_plan(path: Path, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """The schedule, or the timeline, that a file holds.

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
        return parse_torch_csv(text, name=path.name, keep_duplicates=keep_duplicates).renamed(path.stem)
    return parse_json(text, name=path.name, keep_duplicates=keep_duplicates)


def read_schedule(path: Path, *, keep_duplicates: bool = False) -> Schedule:
    """The schedule that a file holds, or the one of its timeline; see :func:`read_plan` for what it raises."""
    plan = read_plan(path, keep_duplicates=keep_duplicates)
    return plan.schedule if isinstance(plan, Timeline) else plan
