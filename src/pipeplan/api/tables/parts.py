"""What the tables are made of: plain where the output is no terminal, within 80 columns."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from html import escape

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeplan.model import one_line

MOST_RANKS = 32
"""With more ranks than this only the first and the last are listed."""


def show(*parts: RenderableType) -> None:
    """Print to stdout; where that is no terminal, without the blanks that fill lines. Plain texts keep their lines whole."""
    console = Console(highlight=False, markup=False, emoji=False)
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
    """A time or a size for a table: ``1,234.5``, at most three decimals; none from 100,000 on."""
    if 0 < abs(value) < 1:
        return f"{value:.6g}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}"
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def figure(value: float) -> str:
    """A prediction, which is not worth more than four digits: ``14.20``, ``0.3942``, ``12,345``."""
    if not value:
        return "0"
    decimals = 3 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(decimals, 0), 6)}f}"


def size(value: float) -> str:
    """Bytes as a person reads them: ``11.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def line(text: str, style: str = "") -> Text:
    """A text in one line, in which a name does nothing."""
    return Text(one_line(text), style=style)


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names with what they are."""
    table = Table.grid(padding=(0, 3))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, line(text))
    return table


def columns(*headings: str, padding: int = 0) -> Table:
    """A table whose first column is text, which is folded where the lines are too short, and whose others are numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, padding), pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    return table


def shown_ranks(ranks: int) -> Sequence[int]:
    """The ranks that are listed."""
    if ranks <= MOST_RANKS:
        return range(ranks)
    return [*range(MOST_RANKS // 2), *range(ranks - MOST_RANKS // 2, ranks)]


def html(*parts: RenderableType) -> str:
    """The same as an HTML fragment for notebooks: lines of one width, in the page's own colours."""
    console = Console(
        highlight=False, markup=False, emoji=False, width=100, file=io.StringIO(), record=True, force_terminal=False
    )
    # Plain texts hold names, which are no markup.
    console.print(Group(*(Text(part) if isinstance(part, str) else part for part in parts)))
    return f"<pre>{escape(console.export_text())}</pre>"
