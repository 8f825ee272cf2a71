"""Schedules as plain rows of ops: one line per rank, ops separated by blanks, easy to type and paste.

This is the text notation of messages and of the web app's editor. Parsing is lenient: commas and tabs also separate ops,
all line ends are accepted, and blank lines around the rows are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeplan.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.formats.format import Format
from pipeplan.model import Schedule, format_schedule, schedule_from_cells

_APART = re.compile(r"[ ,\t\f\v\u00a0]+")
"""Separators of ops; the web app's editor must accept the same ones."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Ops of a text, row by row.

    Attributes
    ----------
    cells
        Words of each row: an op, or an overlapped pair.
    lines
        Line of the text that contains each row, counted from 0.
    """

    cells: Sequence[Sequence[str]]
    lines: Sequence[int]


def rows_of(text: str, *, ranks: int | None = None) -> Rows:
    """Return the rows of a text.

    Parameters
    ----------
    ranks
        Expected number of rows. If the text has this many lines, each is a row, even if it is empty. Otherwise, and
        without a number, empty lines are skipped.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    cells = [[word for word in _APART.split(line) if word] for line in lines]
    while len(cells) > (ranks or 0) and not cells[-1]:
        cells.pop()
    numbers = range(len(cells)) if len(cells) == ranks else [number for number, row in enumerate(cells) if row]
    return Rows([cells[number] for number in numbers], list(numbers))


def parse_rows(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule:
    """Return the schedule in a text of rows."""
    return schedule_of_cells(rows_of(text).cells, name, keep_duplicates)


def schedule_of_cells(cells: Sequence[Sequence[str]], name: str, keep_duplicates: bool) -> Schedule:
    """Return the schedule with these rows of ops; ``keep_duplicates`` leaves duplicate ops to the checker."""
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
        help="One line per rank, ops separated by blanks: to read, type and paste. Any `.txt` is read like this.",
        ending=".rows.txt",
        media="text/plain; charset=utf-8",
        write_schedule=lambda schedule: format_schedule(schedule) + "\n",
        read=lambda text, name, keep: parse_rows(text, name=name, keep_duplicates=keep),
    ),
)
