"""Labels of a front: places next to its points, a key if there are too many points to name, and truncated axes.

A label covers no line, no point and no other label. If a few values lie far beyond the others, the axis ends before
them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from pipeplan.drawing.style import width_of
from pipeplan.drawing.theme import Theme

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points of the page."""

_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, 1), (-1, 0), (-1, -1))
"""Directions of a label from its point; the first free one is used."""

_DISTANCES = (0.55, 1.3, 2.2, 3.2, 4.4)
"""Distances of a label, relative to the font size; from the third on, a thin line leads to the label."""

_LED = 2
_STEPS = 24
"""Number of positions along such a line to check."""

_APART = 0.5
"""Space between two labels side by side, relative to the font size."""

_HEIGHT = 1.05
"""Height of a label, relative to the font size."""


@dataclass(frozen=True, slots=True)
class Label:
    """A placed label: its center, and whether a line leads to it from its point."""

    text: str
    point: Point
    middle: Point
    led: bool


class Room:
    """Free space of some axes, in points of the page."""

    def __init__(self, ax: Axes, points: Sequence[Point], lines: Sequence[tuple[Point, Point]], size: float) -> None:
        self._scale = 72 / ax.figure.dpi
        self._ax, self._size = ax, size
        box = ax.get_window_extent()
        self._whole = tuple(self._scale * edge for edge in (box.x0, box.y0, box.x1, box.y1))
        half = 0.42 * size
        self._taken: list[Box] = []
        for point in points:
            x, y = self.place(point)
            self._taken.append((x - half, y - half, x + half, y + half))
        for begin, end in lines:
            (x0, y0), (x1, y1) = self.place(begin), self.place(end)
            self._taken.append((min(x0, x1) - 0.8, min(y0, y1) - 0.8, max(x0, x1) + 0.8, max(y0, y1) + 0.8))

    def place(self, point: Point) -> Point:
        """Return a point on the page, limited to the axes."""
        x, y = self._ax.transData.transform(point) * self._scale
        left, low, right, high = self._whole
        return min(max(float(x), left), right), min(max(float(y), low), high)

    def label(self, text: str, point: Point) -> Label | None:
        """Return a label at its nearest free place, which is then taken; None if there is none."""
        x, y = self.place(point)
        wide, high = width_of(text, self._size), _HEIGHT * self._size
        for turn, distance in enumerate(_DISTANCES):
            away = distance * self._size
            for across, up in _DIRECTIONS:
                middle = x + across * (away + wide / 2), y + up * (away + high / 2 - 0.1 * self._size)
                box = middle[0] - wide / 2, middle[1] - high / 2, middle[0] + wide / 2, middle[1] + high / 2
                led = turn >= _LED
                if self._within(box) and self._is_free(box) and not (led and self._crosses((x, y), middle)):
                    pad = _APART * self._size
                    self._taken.append((box[0] - pad, box[1], box[2] + pad, box[3]))
                    return Label(text, (x, y), middle, led)
        return None

    def _is_free(self, box: Box) -> bool:
        return not any(_overlap(box, other) for other in self._taken)

    def _crosses(self, point: Point, middle: Point) -> bool:
        """Return True if a line from a point to the center of its label would cross anything else."""
        steps = [step / _STEPS for step in range(_STEPS)]
        there = [(point[0] + step * (middle[0] - point[0]), point[1] + step * (middle[1] - point[1])) for step in steps]
        own = 0.5 * self._size
        away = [(x, y) for x, y in there if abs(x - point[0]) > own or abs(y - point[1]) > own]
        return not all(self._is_free((x, y, x, y)) for x, y in away)

    def _within(self, box: Box) -> bool:
        left, low, right, high = self._whole
        inside: bool = left <= box[0] and low <= box[1] and box[2] <= right + self._size and box[3] <= high + self._size
        return inside


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def write_labels(ax: Axes, labels: Sequence[Label], size: float, color: str, faint: str) -> None:
    """Write labels at their places."""
    for label in labels:
        offset = label.middle[0] - label.point[0], label.middle[1] - label.point[1]
        pixels = label.point[0] * ax.figure.dpi / 72, label.point[1] * ax.figure.dpi / 72
        share = tuple(ax.transAxes.inverted().transform(pixels))
        if label.led:
            ax.annotate(
                "",
                share,
                offset,
                xycoords="axes fraction",
                textcoords="offset points",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": faint, "linewidth": 0.5, "shrinkA": 0.4 * size, "shrinkB": 0},
            )
        ax.annotate(
            label.text,
            share,
            offset,
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            va="center_baseline",
            fontsize=size,
            color=color,
            annotation_clip=False,
            parse_math=False,
        )


_SHORT = 8
"""Maximum length of a name that is written in the chart itself, with or without a key."""

_UNBROKEN = "\N{NO-BREAK SPACE}"

_ENTRY = 25.0
"""Width of a short entry, relative to the font size."""

_SMALLEST = 5.0
"""Minimum font size of a key, in points."""

_LINE = 1.3
"""Distance of the lines of a key, relative to the font size."""


@dataclass(frozen=True, slots=True)
class Key:
    """Labels in a chart with their places, and the names that they represent.

    Attributes
    ----------
    labels
        Numbers and short names.
    entries
        Numbers with the names that they represent.
    """

    labels: Sequence[tuple[str, Point]]
    entries: Sequence[tuple[str, str]]


def key_of(marks: Sequence[tuple[str, float, float]], points: Sequence[tuple[str, float, float]]) -> Key:
    """Return numbers for marks, by memory and time, and for points with long names; one number per place.

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
    """Yield names without their limit (``zbv-heuristic at 8 activations``: the axis shows it), variants together."""
    variants: dict[str, list[str]] = {}
    for name in names:
        variants.setdefault(name.split(" at ")[0].split(" (")[0], []).append(name)
    for name, several in variants.items():
        short = several[0].split(" at ")[0]
        yield short if len(several) == 1 else f"{name} ({len(several)}{_UNBROKEN}variants)"


def key_height(entries: Sequence[tuple[str, str]], width: float, size: float) -> tuple[int, float]:
    """Return the number of columns of short entries for a width in points, and their height."""
    columns = max(1, int(width / (_ENTRY * size)))
    return columns, (-(-len(entries) // columns) + 0.5) * _LINE * size


def write_key(ax: Axes, entries: Sequence[tuple[str, str]], theme: Theme, size: float, columns: int = 1) -> None:
    """Write a key into its own axes, from their top; in a smaller font if it would not fit."""
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
    lines = []
    for number, text in entries:
        first, *rest = textwrap.wrap(text, letters) or [""]
        lines += [(number, first), *(("", line) for line in rest)]
    return lines


_FAR = 2.2
"""Ratio of the whole range to that of the other values from which on an axis is truncated."""

_FEW = 0.25
"""Maximum share of values beyond the end of a truncated axis."""


def cut_above(values: Sequence[float]) -> float | None:
    """Return the largest value to show if a few values lie so far beyond it that the others would coincide, else None."""
    ordered = sorted(set(values))
    least = ordered[0]
    first = max(1, len(ordered) - max(1, int(_FEW * len(ordered))) - 1)
    for value in ordered[first:-1]:
        if ordered[-1] - least > _FAR * (value - least) > 0:
            return value
    return None


def mark_cut(ax: Axes, color: str, size: float, *, upper: bool) -> None:
    """Draw two strokes across the end of the left or lower axis to mark it as truncated."""
    slanted = [(-0.5, -0.35), (0.5, 0.35)]
    for near in (1.0, 1.9):
        across = [x * 0.9 * size for x, _ in slanted]
        along = [y * 0.9 * size - near * 0.45 * size for _, y in slanted]
        ends = list(zip(across, along, strict=True)) if upper else list(zip(along, across, strict=True))
        corner = (0, 1) if upper else (1, 0)
        begin, end = (_pixels(ax, corner, offset) for offset in ends)
        to_share = ax.transAxes.inverted().transform
        (x0, y0), (x1, y1) = to_share(begin), to_share(end)
        ax.plot([x0, x1], [y0, y1], transform=ax.transAxes, color=color, linewidth=1.0, clip_on=False, zorder=5)


def _pixels(ax: Axes, corner: tuple[float, float], offset: tuple[float, float]) -> tuple[float, float]:
    x, y = ax.transAxes.transform(corner)
    scale = ax.figure.dpi / 72
    return x + offset[0] * scale, y + offset[1] * scale
