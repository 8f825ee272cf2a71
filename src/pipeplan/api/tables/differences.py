"""Planned against measured for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from pipeplan.api.differing.difference_words import LEGEND, headings_of, table_of
from pipeplan.api.differing.differences import Diff
from pipeplan.api.tables.parts import columns, line

MOST_KINDS = 40
"""How many rows are listed: those with the largest effect."""


def diff_parts(found: Diff) -> tuple[RenderableType, ...]:
    """What came out in sentences, and each kind on each stage."""
    heading = f"{found.planned.schedule.name or 'the schedule'}: planned against measured"
    of = [line(f"of {found.measured_of}, the one of median length")] if found.several else []
    notes = tuple(line(f"note: {note}") for note in found.notes)
    return line(heading, "bold"), *of, Padding(_sentences(found), (1, 0)), _kinds(found), line(LEGEND), *notes


def _sentences(found: Diff) -> Table:
    """A sentence a paragraph, folded at words."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in found.sentences:
        table.add_row("-", line(sentence))
    return table


def _kinds(found: Diff) -> Table:
    table = columns(*headings_of(found), padding=1)
    rows = table_of(found)
    if len(rows) > MOST_KINDS:
        largest = sorted(range(len(rows)), key=lambda place: -abs(found.kinds[place].effect))
        rows = [rows[place] for place in largest[:MOST_KINDS]]
    for row in rows:
        table.add_row(*row)
    return table
