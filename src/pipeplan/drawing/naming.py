"""Places labels beside the points of a chart so that none lies on a line, a point or another label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from pipeplan.drawing.words import width_of

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points of the page."""

_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, 1), (-1, 0), (-1, -1))
"""Where a label may stand, seen from its point; the first that is free is taken."""

_DISTANCES = (0.55, 1.3, 2.2, 3.2, 4.4)
"""How far off, in the size of the letters; from the third on a thin line leads there."""

_LED = 2
_STEPS = 24
"""Places along such a line that are looked at."""

_APART = 0.5
"""Between two labels side by side, in the size of their letters."""

_HEIGHT = 1.05
"""Of a label, in the size of its letters."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label that has found its place: its middle, and whether a line leads from its point to it."""

    text: str
    point: Point
    middle: Point
    led: bool


class Room:
    """What of some axes is still free, in points of the page.

    Parameters
    ----------
    ax
        The axes, whose size and scales must be final.
    points
        Points of the chart in data coordinates, to be kept free.
    lines
        Horizontal and vertical lines from one point to another in data coordinates, to be kept free.
    size
        Of the letters.
    """

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
        """A point on the page, within the axes."""
        x, y = self._ax.transData.transform(point) * self._scale
        left, low, right, high = self._whole
        return min(max(float(x), left), right), min(max(float(y), low), high)

    def label(self, text: str, point: Point) -> Label | None:
        """The nearest free place for a label, which it then has; None where there is none."""
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
        """Whether a line from a point to its label's middle would run over anything else."""
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
    """Write labels where they have found room."""
    for label in labels:
        offset = label.middle[0] - label.point[0], label.middle[1] - label.point[1]
        pixels = label.point[0] * ax.figure.dpi / 72, label.point[1] * ax.figure.dpi / 72
        share = tuple(ax.transAxes.inverted().transform(pixels))
        if label.led:
            ax.annotate(
                "", share, offset, xycoords="axes fraction", textcoords="offset points", annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": faint, "linewidth": 0.5, "shrinkA": 0.4 * size, "shrinkB": 0},
            )  # fmt: skip
        ax.annotate(
            label.text, share, offset, xycoords="axes fraction", textcoords="offset points", ha="center",
            va="center_baseline", fontsize=size, color=color, annotation_clip=False, parse_math=False,
        )  # fmt: skip
