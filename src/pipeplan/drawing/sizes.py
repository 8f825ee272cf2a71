"""How large pictures are: a screen, a slide, a paper's column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeplan.errors import UnknownNameError

SizeName = Literal["default", "slide", "column"]

TALLEST = 7200.0
"""The height that the lanes of a page may take together, in points: more pixels than that no bitmap can have."""


@dataclass(frozen=True, slots=True)
class Size:
    """A page, its letters and its lanes, in points (1/72 inch) unless said otherwise.

    Attributes
    ----------
    width, height
        Of the page; where the height is None, the page is as high as its lanes need.
    font, smallest
        The size of its text, and of the smallest label in a bar.
    lane, lowest_lane
        The height of a lane where there are few, and of the lowest one where there are many.
    lanes
        The height that all lanes of one view share before lanes shrink.
    memory
        The height of the memory below a view.
    dpi
        Pixels an inch in PNG.
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

    def lane_height(self, lanes: int) -> float:
        """The height of each of so many lanes of one view."""
        return min(max(self.lowest_lane, min(self.lane, self.lanes / lanes)), TALLEST / lanes)


SIZES: dict[str, Size] = {
    "default": Size(792, None, 9, 4.5, 22, 4, 400, 80, 150),
    "slide": Size(960, 540, 13, 5, 80, 2.5, 360, 96, 144),
    "column": Size(243, None, 6.5, 4, 10, 1.6, 170, 44, 400),
}
"""``slide`` is 16:9 at 1920 x 1080 pixels; ``column`` is a column of a two-column paper, 3.375 inches."""


def size_named(name: str) -> Size:
    """The size of this name.

    Raises
    ------
    UnknownNameError
        For any other name.
    """
    if name not in SIZES:
        raise UnknownNameError("picture size", name, SIZES)
    return SIZES[name]
