"""The key of a chart whose points are too many to be named in it: a number a place, and who stands there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from pipeplan.drawing.naming import Point
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.words import width_of

_SHORT = 8
"""Letters of a name that stands in the chart itself, number or not."""

_UNBROKEN = "\N{NO-BREAK SPACE}"

_ENTRY = 25.0
"""Width of a short entry, in the size of its letters."""

_SMALLEST = 5.0
"""Size in points below which a key is not read."""

_LINE = 1.3
"""From one line of the key to the next, in the size of its letters."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is written in the chart, each with its place, and what it stands for.

    Attributes
    ----------
    labels
        Numbers, and names that are short.
    entries
        Each number with the names that it stands for.
    """

    labels: Sequence[tuple[str, Point]]
    entries: Sequence[tuple[str, str]]


def key_of(marks: Sequence[tuple[str, float, float]], points: Sequence[tuple[str, float, float]]) -> Key:
    """Numbers for marks, by memory and time, and for points whose names are long; those at one place share a number.

    Variants of a schedule at one place are counted, not listed.
    """
    places: dict[Point, list[str]] = {}
    for name, x, y in marks:
        places.setdefault((x, y), []).append(name)
    long = [point for point in points if len(point[0]) > _SHORT]
    for name, x, y in long:
        places.setdefault((x, y), []).insert(0, name)
    ordered = sorted(places)
    numbers = {place: str(number) for number, place in enumerate(ordered, start=1)}
    short = [(name, (x, y)) for name, x, y in points if (x, y) not in numbers]
    entries = [(numbers[place], ", ".join(counted_names(places[place]))) for place in ordered]
    return Key([*((numbers[place], place) for place in ordered), *short], entries)


def counted_names(names: Sequence[str]) -> Iterator[str]:
    """Names without a limit (``zbv-heuristic at 8 activations``: the axis shows it), variants of one schedule together."""
    variants: dict[str, list[str]] = {}
    for name in names:
        variants.setdefault(name.split(" at ")[0].split(" (")[0], []).append(name)
    for name, several in variants.items():
        short = several[0].split(" at ")[0]
        yield short if len(several) == 1 else f"{name} ({len(several)}{_UNBROKEN}variants)"


def key_height(entries: Sequence[tuple[str, str]], width: float, size: float) -> tuple[int, float]:
    """In how many columns short entries stand on a width in points, and how high they are then."""
    columns = max(1, int(width / (_ENTRY * size)))
    return columns, (-(-len(entries) // columns) + 0.5) * _LINE * size


def write_key(ax: Axes, entries: Sequence[tuple[str, str]], theme: Theme, size: float, columns: int = 1) -> None:
    """Write a key into axes of its own, from their top; smaller where it would not fit."""
    box = ax.get_window_extent()
    wide, high = box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi
    lines = _lines(entries, wide / columns, size)
    while len(lines) * _LINE * size > columns * high and size > _SMALLEST:
        size *= 0.95
        lines = _lines(entries, wide / columns, size)
    rows = -(-len(lines) // columns)
    indent = max((width_of(number, size, bold=True) for number, _ in entries), default=0.0) + 0.2 * size
    for place, (number, text) in enumerate(lines):
        column, row = divmod(place, rows)
        x, y = column * wide / columns, 1 - (row + 0.5) * _LINE * size / high
        look: dict[str, Any] = {
            "transform": ax.transAxes,
            "fontsize": size,
            "va": "center_baseline",
            "parse_math": False,
        }
        ax.text((x + indent) / wide, y, number, ha="right", color=theme.text, fontweight="bold", **look)
        ax.text((x + indent + 0.6 * size) / wide, y, text, color=theme.text, **look)


def _lines(entries: Sequence[tuple[str, str]], wide: float, size: float) -> list[tuple[str, str]]:
    letters = max(8, int((wide - 2.2 * size) / (width_of("n" * 20, size) / 20)))
    found = []
    for number, text in entries:
        first, *rest = textwrap.wrap(text, letters) or [""]
        found += [(number, first), *(("", line) for line in rest)]
    return found
