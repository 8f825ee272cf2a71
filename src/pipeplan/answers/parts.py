"""The parts of tables: plain text within 80 columns if the output is not a terminal.

A part is turned into what rich prints when it is printed, so that an answer describes its table without loading rich.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal

from pipeplan.foundation.readable import Times
from pipeplan.model import one_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

MOST_ROWS = 10
"""Maximum number of rows of a table without ``--all``."""

MOST_RANKS = 32
"""With more ranks than this only the first and the last are listed."""

_NARROWEST_TEXT = 16
"""Minimum number of characters per line at which a text in a column is still easy to read."""

_APART = 3
"""Blanks between a name and its value."""

_MOST_OF_A_NAME = 0.6
"""The share of a line beyond which the names of the first column are folded."""


@dataclass(frozen=True, slots=True)
class Line:
    """A text in one line, wrapped on a narrow terminal; markup in it is printed literally."""

    text: str
    style: str = ""
    indent: int = 0

    def __rich__(self) -> RenderableType:
        from rich.padding import Padding
        from rich.text import Text

        text = Text(one_line(self.text), style=self.style)
        return Padding(text, (0, 0, 0, self.indent)) if self.indent else text


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and their values, with blank lines above and below: side by side if the lines are long enough to read both."""

    rows: Sequence[tuple[str, str]]
    above: int = 0
    below: int = 0
    indent: int = 0

    def __rich__(self) -> RenderableType:
        from rich.padding import Padding

        return Padding(_FactRows(self.rows), (self.above, 0, self.below, self.indent))


@dataclass(frozen=True, slots=True)
class _FactRows:
    rows: Sequence[tuple[str, str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        longest = max((_letters(name) for name, _ in self.rows), default=0)
        if longest + _APART + _NARROWEST_TEXT > options.max_width:
            for name, text in self.rows:
                yield Text.assemble(f"{name}: ", _text(text))
            return
        table = Table.grid(padding=(0, _APART))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in self.rows:
            table.add_row(name, _text(text))
        yield table


@dataclass(frozen=True, slots=True)
class Points:
    """Sentences, each a paragraph after a dash, between two blank lines."""

    sentences: Sequence[str]

    def __rich__(self) -> RenderableType:
        from rich.padding import Padding
        from rich.table import Table

        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for sentence in self.sentences:
            table.add_row("-", _text(sentence))
        return Padding(table, (1, 0))


@dataclass(slots=True)
class TableColumns:
    """A table whose first column is text, and with ``text_last`` its last one too; the others are numbers.

    If lines are too short for all columns, some are dropped, and a line below names them: those whose headings are in
    ``least`` first, then from the last one on. The first column always stays.
    """

    headings: Sequence[str]
    padding: int = 0
    least: Sequence[str] = ()
    text_last: bool = False
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row; a row may have fewer cells than there are columns."""
        self.rows.append(cells)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        width = min(self._width(range(len(self.headings)), options.max_width, self.padding), options.max_width)
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        everything, width = range(len(self.headings)), options.max_width
        if self._width(everything, width, self.padding) <= width:
            yield self._table(everything, self.padding)
            return
        places = self._fitting(width)
        yield self._table(places, padding=0)
        missing = [heading for place, heading in enumerate(self.headings) if place not in places]
        if missing:
            names = ", ".join(" ".join(heading.split()) for heading in missing)
            yield Text(f"… no room for: {names}", style="dim")

    def _table(self, places: Sequence[int], padding: int) -> Table:
        """Return a table of some columns."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(
            box=SIMPLE_HEAD, show_edge=False, padding=(0, padding), pad_edge=False, header_style="bold", highlight=False
        )
        for place in places:
            text = self._is_text(place)
            justify: Literal["left", "right"] = "left" if text else "right"
            table.add_column(self.headings[place], justify=justify, no_wrap=not text, overflow="fold")
        for row in self.rows:
            table.add_row(*(row[place] if place < len(row) else "" for place in places))
        return table

    def _is_text(self, place: int) -> bool:
        return place == 0 or (self.text_last and place == len(self.headings) - 1)

    def _fitting(self, width: int) -> list[int]:
        """Return the positions of the columns that fit."""
        headings = list(self.headings)
        first = [headings.index(heading) for heading in self.least if heading in headings]
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
            cells = [row[place] for row in self.rows if place < len(row)]
            longest = max(map(_letters, (self.headings[place], *cells)))
            if self._is_text(place):
                longest = min(longest, int(width * _MOST_OF_A_NAME) if place == 0 else _NARROWEST_TEXT)
            needs.append(longest)
        return sum(needs) + between * (len(needs) - 1)


def _letters(cell: str) -> int:
    """Return the width of the longest line of a cell."""
    from rich.cells import cell_len

    return max(map(cell_len, cell.split("\n")))


Part = Line | Facts | Points | TableColumns | str
"""Parts of a table; a plain text is printed unchanged, line by line."""


def line(text: str = "", style: str = "", *, indent: int = 0) -> Line:
    """Return a table part with one line of text; a blank line if the text is empty."""
    return Line(text, style, indent)


def facts(rows: Iterable[tuple[str, str]], *, above: int = 0, below: int = 0, indent: int = 0) -> Facts:
    """Return labels and their values as a part of a table."""
    return Facts(list(rows), above, below, indent)


def columns(*headings: str, padding: int = 0, least: Sequence[str] = (), text_last: bool = False) -> TableColumns:
    """Return a table without rows."""
    return TableColumns(headings, padding, least, text_last)


def notes(texts: Iterable[str]) -> tuple[Line, ...]:
    """Return notes on the figures above, one line per note."""
    return tuple(line(f"note: {text}") for text in dict.fromkeys(texts))


def warnings(texts: Iterable[str]) -> tuple[Line, ...]:
    """Return warnings about the figures above, one line per warning."""
    return tuple(line(f"warning: {text}") for text in texts)


def _text(text: str) -> Text:
    from rich.text import Text

    return Text(one_line(text))


def show(*parts: RenderableType) -> None:
    """Print to stdout; if that is not a terminal, without trailing blanks. Lines of plain texts are not wrapped."""
    from rich.console import Console

    # In a notebook, rich would show an empty box of HTML after each table that is captured.
    console = Console(highlight=False, markup=False, emoji=False, force_jupyter=False)
    for part in parts:
        if isinstance(part, str):
            print("\n".join(map(one_line, part.split("\n"))))
        elif console.is_terminal:
            console.print(part)
        else:
            with console.capture() as captured:
                console.print(part)
            print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def number(value: float) -> str:
    """Return a time or a size for a table: ``1,234.5``, at most three decimals; none from 100,000 on."""
    if 0 < abs(value) < 1:
        return f"{value:.6g}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}"
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def figure(value: float) -> str:
    """Return a prediction, which is not worth more than four digits: ``14.20``, ``0.3942``, ``12,345``."""
    if not value:
        return "0"
    decimals = 3 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(decimals, 0), 6)}f}"


def activations_of(values: Sequence[float]) -> list[str]:
    """Return memory in activations, all with the same decimals."""
    form = Times.of(values, "")
    return [form.number(value) for value in values]


def shown_ranks(ranks: int, most: int = MOST_RANKS) -> Sequence[int]:
    """Return the ranks that are listed: all, or the first and the last of more than ``most``."""
    if ranks <= most:
        return range(ranks)
    return [*range(most // 2), *range(ranks - most // 2, ranks)]


def html(*parts: RenderableType) -> str:
    """Return the same as an HTML fragment for notebooks: lines of one width, in the page's own colours."""
    from rich.console import Console, Group
    from rich.text import Text

    console = Console(
        highlight=False,
        markup=False,
        emoji=False,
        width=100,
        file=io.StringIO(),
        record=True,
        force_terminal=False,
        force_jupyter=False,  # in a notebook, rich would display what it prints to the file
    )
    # Plain texts contain names, in which brackets are not markup.
    console.print(Group(*(Text(part) if isinstance(part, str) else part for part in parts)))
    return f"<pre>{escape(console.export_text())}</pre>"
