"""Options of pictures, and their sizes: a slide, a page, a column of a paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

from pipeplan.costs import Options, option
from pipeplan.foundation.errors import UnknownNameError

ThemeName = Literal["light", "dark"]
SizeName = Literal["slide", "page", "column"]


class Look(TypedDict, total=False):
    """Theme and size of a picture, and whether it is plain, as keywords of functions that draw."""

    theme: ThemeName
    size: SizeName
    plain: bool


@dataclass(frozen=True, kw_only=True)
class LookOptions(Options):
    """Options of pictures."""

    theme: ThemeName | None = option(
        kind="choice",
        group="output",
        usual=False,
        choices=get_args(ThemeName),
        default="light",
        help="Colours of pictures.",
    )
    size: SizeName | None = option(
        kind="choice",
        group="output",
        usual=False,
        choices=get_args(SizeName),
        default="page",
        help="Size of pictures: a 16:9 slide, a page of any height, or the column of a paper.",
    )
    plain: bool = option(
        False,
        kind="flag",
        group="output",
        usual=False,
        help="Draw PNG, SVG and PDF without title and memory, for a paper whose caption has them.",
    )

    @property
    def look(self) -> Look:
        """The options that are set, as keywords of ``save``."""
        look: Look = {}
        if self.theme is not None:
            look["theme"] = self.theme
        if self.size is not None:
            look["size"] = self.size
        if self.plain:
            look["plain"] = True
        return look


TALLEST = 1440.0
"""Maximum total height of the lanes of a page in points (20 inches), because pixels cost time and memory. If there are
too many ranks for it, they share lanes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A page, its font sizes and its lanes, in points (1/72 inch) unless stated otherwise.

    Attributes
    ----------
    width, height
        Size of the page; if the height is None, the lanes determine it.
    font, smallest
        Font size of its text, and of the smallest label in a bar.
    lane, lowest_lane
        Height of a lane if there are few, and minimum height if there are many.
    lanes
        Total height of the lanes of one view above which lanes shrink.
    memory
        Height of the memory below a view.
    dpi
        Pixels per inch in PNG.
    """

    width: float
    height: float | None
    font: float
    smallest: float
    lane: float
    lowest_lane: float
    lanes: float
    memory: float
    dpi: int

    def whole(self, height: float) -> float:
        """Round a height in points up to a whole number of pixels."""
        return math.ceil(height * self.dpi / 72 - 1e-6) * 72 / self.dpi

    def lane_height(self, lanes: int) -> float:
        """Return the height of each lane of a view with this many lanes."""
        return min(max(self.lowest_lane, min(self.lane, self.lanes / lanes)), TALLEST / lanes)


SIZES: dict[str, Size] = {
    "slide": Size(width=960, height=540, font=13, smallest=9, lane=110, lowest_lane=2.5, lanes=360, memory=96, dpi=144),
    "page": Size(width=792, height=None, font=10, smallest=7.5, lane=26, lowest_lane=4, lanes=560, memory=84, dpi=175),
    "column": Size(
        width=243, height=None, font=6.5, smallest=5, lane=11, lowest_lane=1.6, lanes=170, memory=44, dpi=400
    ),
}
"""Sizes by name: ``slide`` is 16:9 at 1920 x 1080 pixels; ``page`` is 11 inches wide and as high as needed; ``column`` is a
column of a two-column paper, 3.375 inches.
"""


def size_named(name: str) -> Size:
    """Return the size with this name. Raises UnknownNameError if there is none."""
    if name not in SIZES:
        raise UnknownNameError("picture size", name, SIZES)
    return SIZES[name]
