"""A schedule from standard input: its text says which format it is in."""

from __future__ import annotations

import sys
from typing import BinaryIO

from pipeplan.costs import Costs
from pipeplan.errors import FormatError, InputError
from pipeplan.files import MEBIBYTE
from pipeplan.formats.reading import SIZE_LIMIT, parse
from pipeplan.model import Schedule, Timeline

STANDARD_INPUT = "/dev/stdin"
"""What stands for it in place of a file, as ``-`` does."""

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
    """As many bytes as there are, up to one over the limit."""
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
