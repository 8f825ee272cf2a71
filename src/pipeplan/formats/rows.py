"""Schedules as plain rows of ops: one line per rank, ops separated by blanks, easy to type and paste.

This is the text notation of messages and of the web app's editor. Parsing is lenient: commas and tabs also separate ops,
all line ends are accepted, and blank lines around the rows are skipped.

PyTorch prints orders in errors and logs the other way around, with a line per step and a column per rank::

            Rank 0 Rank 1
    Step 0: 0F0
    Step 1: 0F1    1F0
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeplan.formats.format import Format
from pipeplan.foundation.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.model import Schedule, format_schedule, schedule_from_cells

_APART = re.compile(r"[ ,\t\f\v\u00a0]+")
"""Separators of ops; the web app's editor must accept the same ones."""


_STEP = re.compile(r"\bStep +(\d+):(?: |$)")
"""Beginning of a line that PyTorch prints, behind what a launcher or a logger puts before it."""

_HEADING = re.compile(r".*?((?:Rank \d+ *)+)")
"""Line above the steps."""

_ERROR = "<-- ERROR HERE"
"""Mark of PyTorch's behind the step that it complains about."""


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
    if is_printed_by_torch(text):
        return _printed_rows(lines)
    cells = [[word for word in _APART.split(line) if word] for line in lines]
    while len(cells) > (ranks or 0) and not cells[-1]:
        cells.pop()
    numbers = range(len(cells)) if len(cells) == ranks else [number for number, row in enumerate(cells) if row]
    return Rows([cells[number] for number in numbers], list(numbers))


def is_printed_by_torch(text: str) -> bool:
    """Return True for an order as PyTorch prints it (``_format_pipeline_order``)."""
    return _STEP.search(text) is not None


def _printed_rows(lines: Sequence[str]) -> Rows:
    """Return the rows of an order that PyTorch printed; other lines, such as those of an error, are skipped.

    Every rank of a job may have printed the same order: repeated steps count once.

    Raises
    ------
    FormatError
        If a step is missing or is there with other ops, or blanks are lost, so that the rank of an op is unknown.
    """
    found: dict[int, tuple[int, str]] = {}
    contradicted = set[int]()
    for place, line in enumerate(lines):
        if match := _STEP.search(line):
            number, ops = int(match[1]), line[match.end() :].partition(_ERROR)[0].rstrip()
            if found.setdefault(number, (place, ops))[1] != ops:
                contradicted.add(number)
    for expected, number in enumerate(sorted(found)):
        if number != expected:
            raise FormatError(f"the printed order has step {number} where step {expected} is expected")
    if contradicted:
        raise FormatError(f"the text has several printed orders: step {min(contradicted)} is there with other ops, too")
    steps = [found[number] for number in sorted(found)]
    words = [[(word.start(), word[0]) for word in re.finditer(r"\S+", ops)] for _, ops in steps]
    columns = sorted({start for step in words for start, _ in step})
    counts = {len(step) for step in words}
    if len(columns) != max(counts) and len(counts) == 1:
        # Every rank has an op in every step, so the order of the words is enough if their places are lost.
        words = [list(enumerate(word for _, word in step)) for step in words]
        columns = list(range(counts.pop()))
    by_rank = [[word for step in words for start, word in step if start == column] for column in columns]
    heading = next((match[1] for line in lines if (match := _HEADING.fullmatch(line))), None)
    if heading and heading.count("Rank") != len(by_rank):
        raise FormatError(f"the printed order has {heading.count('Rank')} ranks, but ops in {len(by_rank)} columns")
    return Rows(by_rank, [steps[0][0]] * len(by_rank))


def parse_rows(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule:
    """Return the schedule in a text of rows."""
    try:
        cells = rows_of(text).cells
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    return schedule_of_cells(cells, name, keep_duplicates)


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
        help="One line per rank, ops separated by blanks: to read, type and paste. Any `.txt` is read like this, also an "
        "order as PyTorch prints it, with a line per step.",
        ending=".rows.txt",
        media="text/plain; charset=utf-8",
        write_schedule=lambda schedule: format_schedule(schedule) + "\n",
        read=lambda text, name, keep: parse_rows(text, name=name, keep_duplicates=keep),
    ),
)
