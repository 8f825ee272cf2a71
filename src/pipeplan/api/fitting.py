"""Tables for lines of any length: columns are dropped, or names move above their values, before text is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_NARROWEST_TEXT = 16
"""Minimum number of characters per line at which a text in a column is still easy to read."""

_APART = 3
"""Blanks between a name and its value."""

_MOST_OF_A_NAME = 0.6
"""The share of a line beyond which the names of the first column are folded."""


class FittingFacts:
    """Names and values, side by side if the lines are long enough to read both."""

    def __init__(self, rows: Sequence[tuple[str, Text]]) -> None:
        self.rows = tuple(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = max((_letters(name) for name, _ in self.rows), default=0)
        if longest + _APART + _NARROWEST_TEXT > options.max_width:
            for name, text in self.rows:
                yield Text.assemble(f"{name}: ", text)
            return
        table = Table.grid(padding=(0, _APART))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        yield table


class FittingTable(Table):
    """A table with a head that first moves its columns together, then shows as many as the lines have room for.

    Parameters
    ----------
    padding
        Blanks on either side of a cell.
    least
        The headings of the columns that are left out first, in this order; after them the others, from the last one on. The
        first column always stays.
    """

    def __init__(self, *, padding: int, least: Sequence[str] = ()) -> None:
        super().__init__(
            box=SIMPLE_HEAD, show_edge=False, padding=(0, padding), pad_edge=False, header_style="bold", highlight=False
        )
        self._least = tuple(least)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        everything = self._width(range(len(self.columns)), options.max_width, self.padding[1])
        return Measurement(min(everything, options.max_width), min(everything, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        everything, width = range(len(self.columns)), options.max_width
        if self._width(everything, width, self.padding[1]) <= width:
            yield from super().__rich_console__(console, options)
            return
        places = self._fitting(width)
        yield from self._of(places)._whole(console, options)
        missing = [column for place, column in enumerate(self.columns) if place not in places]
        if missing:
            yield Text(f"… no room for: {', '.join(map(_heading, missing))}", style="dim")

    def _whole(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return super().__rich_console__(console, options)

    def _of(self, places: Iterable[int]) -> FittingTable:
        """Return the same table with these columns only, close together."""
        table = FittingTable(padding=0)
        kept = [self.columns[place] for place in places]
        for column in kept:
            table.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
        for row, *cells in zip(self.rows, *(column.cells for column in kept), strict=True):
            table.add_row(*cells, end_section=row.end_section)
        return table

    def _fitting(self, width: int) -> list[int]:
        """Return the positions of the columns that fit."""
        headings = [str(column.header) for column in self.columns]
        first = [headings.index(heading) for heading in self._least if heading in headings]
        rest = [place for place in range(len(headings) - 1, 0, -1) if place not in first]
        shown = list(range(len(headings)))
        for place in (*first, *rest):
            if self._width(shown, width, 0) <= width:
                break
            shown.remove(place)
        return shown

    def _width(self, places: Iterable[int], width: int, padding: int) -> int:
        """Return the minimum width of some columns: numbers in full, texts wide enough to be read."""
        between = 1 + 2 * padding
        needs = []
        for place in places:
            column = self.columns[place]
            longest = max(map(_letters, (column.header, *column.cells)), default=0)
            if not column.no_wrap:
                longest = min(longest, int(width * _MOST_OF_A_NAME) if place == 0 else _NARROWEST_TEXT)
            needs.append(longest)
        return sum(needs) + between * (len(needs) - 1)


def _letters(cell: object) -> int:
    """Return the length of the longest line of a cell."""
    return max(map(cell_len, (cell.plain if isinstance(cell, Text) else str(cell)).split("\n")), default=0)


def _heading(column: Column) -> str:
    return " ".join(str(column.header).split()).replace("/ ", "/")
