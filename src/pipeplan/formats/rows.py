"""A schedule as rows of ops: a line a rank, ops apart by blanks, as people type and paste it.

This is the text notation as it stands in messages and in the web app's editor. Read leniently: ops may stand apart by commas
or tabs too, lines end as on any system, and blank lines around the rows are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeplan.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.formats.format import Format
from pipeplan.model import Schedule, format_schedule, schedule_from_cells

_APART = re.compile(r"[ ,\t\f\v\u00a0]+")
"""Separators of ops; the web app's editor knows the same ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The ops of a text, row by row.

    Attributes
    ----------
    cells
        The words of each row: an op, or an overlapped pair.
    lines
        The line of the text on which each row stands, from 0.
    """

    cells: Sequence[Sequence[str]]
    lines: Sequence[int]


def rows_of(text: str, *, ranks: int | None = None) -> Rows:
    """The rows of a text.

    Parameters
    ----------
    ranks
        How many rows are expected. A text of as many lines has a row a line, with rows that hold nothing; of any other text,
        and without a number, lines that hold nothing are passed over.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    cells = [[word for word in _APART.split(line) if word] for line in lines]
    while len(cells) > (ranks or 0) and not cells[-1]:
        cells.pop()
    numbers = range(len(cells)) if len(cells) == ranks else [number for number, row in enumerate(cells) if row]
    return Rows([cells[number] for number in numbers], list(numbers))


def parse_rows(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule:
    """The schedule that a text of rows holds.

    Parameters
    ----------
    name
        What to call the schedule, also in messages.
    keep_duplicates
        Whether an op that stands twice is left for the checker to report.

    Raises
    ------
    FormatError
        For a text without ops, a word that is no op, and numbers that are too large to be planned.
    InvalidScheduleError
        For stages that no rank holds.
    """
    return schedule_of_cells(rows_of(text).cells, name, keep_duplicates)


def schedule_of_cells(cells: Sequence[Sequence[str]], name: str, keep_duplicates: bool) -> Schedule:
    """Return the schedule of rows of ops; see :func:`parse_rows` for parameters and errors."""
    try:
        return schedule_from_cells(cells, name=name, keep_duplicates=keep_duplicates)
    except (NotationError, ShapeError) as error:
        raise FormatError(f"{name}: {error}") from None
    except InvalidScheduleError as error:
        raise type(error)(f"{name}: {error}") from None


FORMATS = (
    Format(
        name="rows",
        title="Rows of ops",
        help="A line a rank, ops apart by blanks: to read, to type and to paste. Any `.txt` is read so.",
        ending=".rows.txt",
        media="text/plain; charset=utf-8",
        write_schedule=lambda schedule: format_schedule(schedule) + "\n",
        read=lambda text, name, keep: parse_rows(text, name=name, keep_duplicates=keep),
    ),
)
