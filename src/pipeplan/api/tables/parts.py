"""What the tables are made of: plain where the output is no terminal, within 80 columns."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from html import escape

from rich.console import Console, Group, RenderableType
from rich.text import Text

from pipeplan.api.tables.fitting import Facts, FittingTable
from pipeplan.model import one_line
from pipeplan.readable import size_text

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


size = size_text
"""Bytes as a person reads them: ``11.5 GiB``."""


def sizes(values: Sequence[float]) -> list[str]:
    """The bytes of one column, in the unit in which the largest is read best: ``11.5 GiB``, ``0.2 GiB``."""
    largest = max(map(abs, values), default=0.0)
    unit, scale = "TiB", 1024.0**4
    for power, name in enumerate(("B", "KiB", "MiB", "GiB")):
        if largest < 1024.0 ** (power + 1):
            unit, scale = name, 1024.0**power
            break
    return [f"{value / scale:,.1f} {unit}" for value in values]


def line(text: str, style: str = "") -> Text:
    """A text in one line, in which a name does nothing."""
    return Text(one_line(text), style=style)


def facts(rows: Iterable[tuple[str, str]]) -> Facts:
    """Names with what they are."""
    return Facts([(name, line(text)) for name, text in rows])


def columns(*headings: str, padding: int = 0, least: Sequence[str] = ()) -> FittingTable:
    """A table whose first column is text and whose others are numbers.

    Where the lines are too short for all of them columns are left out, which a line below says: those whose headings are in
    ``least`` first, then from the last one on. The first column always stays.
    """
    table = FittingTable(padding=padding, least=least)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    return table


def left_out(ranks: int) -> tuple[Text, ...]:
    """A line on how many ranks are not listed, and where they are; none where all are listed."""
    if ranks <= MOST_RANKS:
        return ()
    return (line(f"{ranks - MOST_RANKS:,} ranks are not listed here: --json has them, in Python to_dict()"),)


def shown_ranks(ranks: int) -> Sequence[int]:
    """The ranks that are listed."""
    if ranks <= MOST_RANKS:
        return range(ranks)
    return [*range(MOST_RANKS // 2), *range(ranks - MOST_RANKS // 2, ranks)]


def html(*parts: RenderableType) -> str:
    """The same as an HTML fragment for notebooks: lines of one width, in the page's own colours."""
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
    # Plain texts hold names, which are no markup.
    console.print(Group(*(Text(part) if isinstance(part, str) else part for part in parts)))
    return f"<pre>{escape(console.export_text())}</pre>"
