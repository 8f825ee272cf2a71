"""Drawing of a view's lanes into matplotlib axes: one compound path per color, and labels that fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import IdentityTransform
from numpy.typing import NDArray

from pipeplan.drawing.labels import Labels, fit_labels
from pipeplan.drawing.narrow import draw_shares, together_in, too_narrow
from pipeplan.drawing.sizes import Size
from pipeplan.drawing.style import FONT
from pipeplan.drawing.theme import Theme, colored, readable_on
from pipeplan.drawing.view import LanePart, View
from pipeplan.model import Floats

EDGES = {
    LanePart.FULL: (-0.43, 0.43),
    LanePart.UPPER: (-0.43, 0.0),
    LanePart.LOWER: (0.0, 0.43),
    LanePart.STRIP: (0.29, 0.43),
    LanePart.TO_HOST: (0.23, 0.33),
    LanePart.FROM_HOST: (0.33, 0.43),
    LanePart.COLLECTIVE: (-0.43, -0.29),
}
"""Top and bottom of each part, from the center of a lane of height 1; positive is down."""

_LANE = EDGES[LanePart.FULL][1] - EDGES[LanePart.FULL][0]

_TOUCHING = 7.0
"""Lane height in points below which lanes touch, because such narrow gaps would look like idle time."""


def draw_lanes(view: View, ax: Axes, theme: Theme, size: Size, end: float, *, named: bool = True) -> None:
    """Draw lanes, gaps, bars and labels from time 0 to ``end`` into axes of final size.

    Ops that would be too narrow to see are drawn as shares (:mod:`pipeplan.drawing.narrow`).
    """
    lanes = len(view.lanes.label)
    per_time, height = measures(ax, end)
    divided = too_narrow(view, per_time)
    together = together_in(lanes, height, size.font, one=not named) if divided else 1
    shown = -(-lanes // together)
    ax.set_xlim(0, end)
    ax.set_ylim(shown - 0.5, -0.5)
    per_lane = height / shown
    if divided:
        draw_shares(view, ax, theme, per_lane, together)
    else:
        fill = _LANE if per_lane >= _TOUCHING else 1.0
        _draw_idle(view, ax, theme, fill / _LANE)
        _draw_bars(view, ax, theme, fill / _LANE, per_time)
        _draw_labels(view, ax, theme, fit_labels(view.bars, per_time, fill * per_lane, size.font, size.smallest))
        _draw_windows(view, ax, theme, fill / _LANE)
    _label_lanes(_names(view, together) if named else [], ax, theme, size, per_lane)


def measures(ax: Axes, end: float) -> tuple[float, float]:
    """Return the width of a unit of time, for axes from 0 to ``end``, and the height of the axes; in points."""
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    return box.width * points / end, box.height * points


def _names(view: View, together: int) -> list[str]:
    """Return the names of the lanes; a lane of several ranks has those of the first and the last one."""
    names = view.lanes.label
    if together == 1:
        return list(names)
    groups = [names[first : first + together] for first in range(0, len(names), together)]
    numbers = [(group[0].split()[-1], group[-1].split()[-1]) for group in groups]
    return [f"ranks {first}\N{EN DASH}{last}" if first != last else f"rank {first}" for first, last in numbers]


def _draw_idle(view: View, ax: Axes, theme: Theme, stretch: float) -> None:
    lanes = np.arange(len(view.lanes.label))
    top, bottom = EDGES[LanePart.FULL]
    whole = np.zeros(len(lanes)), np.full(len(lanes), view.makespan)
    _fill(ax, _boxes(*whole, lanes, (stretch * top, stretch * bottom)), theme.lane)
    if view.gaps is None:
        return
    gaps = view.gaps
    for code, reason in enumerate(gaps.reasons):
        chosen = gaps.reason == code
        if chosen.any():
            boxes = _boxes(gaps.start[chosen], gaps.end[chosen], gaps.lane[chosen], (-0.2, 0.2))
            _fill(ax, boxes, theme.reasons[reason])


def _draw_bars(view: View, ax: Axes, theme: Theme, stretch: float, per_time: float) -> None:
    bars = view.bars
    compute = bars.compute
    narrow = float(np.quantile((bars.end - bars.start)[compute] * per_time, 0.05)) if compute.any() else 0.0
    edges = stretch * np.array([EDGES[part] for part in LanePart])[bars.part]
    for fill, chosen in colored(view, theme):
        top, bottom = edges[chosen].T
        collection = _fill(ax, _boxes(bars.start[chosen], bars.end[chosen], bars.lane[chosen], (top, bottom)), fill)
        if narrow > 2:
            collection.set_edgecolor(theme.lane)
            collection.set_linewidth(min(0.5, 0.08 * narrow))


def _draw_windows(view: View, ax: Axes, theme: Theme, stretch: float) -> None:
    if view.windows is None:
        return
    windows, (top, bottom) = view.windows, EDGES[LanePart.FULL]
    boxes = _fill(ax, _boxes(windows.start, windows.end, windows.lane, (stretch * top, stretch * bottom)), "none")
    boxes.set_edgecolor(theme.limit)
    boxes.set_linewidth(1.2)
    boxes.set_zorder(3)


def _boxes(
    start: Floats, end: Floats, lane: NDArray[np.integer], edges: tuple[float | Floats, float | Floats]
) -> Floats:
    """Return the corners of rectangles with the first one repeated, shape (boxes, 5, 2)."""
    top, bottom = lane + edges[0], lane + edges[1]
    corners = (start, top, end, top, end, bottom, start, bottom, start, top)
    return np.stack(corners, axis=1).reshape(-1, 5, 2)


def _fill(ax: Axes, boxes: Floats, fill: str) -> PathCollection:
    """Draw rectangles of one color as one compound path."""
    codes = np.tile(np.array([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], Path.code_type), len(boxes))
    path = Path(boxes.reshape(-1, 2), codes)
    collection = PathCollection([path], facecolors=[fill], edgecolors="none", linewidths=0, transform=ax.transData)
    ax.add_collection(collection, autolim=False)
    return collection


def _draw_labels(view: View, ax: Axes, theme: Theme, fitted: Sequence[Labels]) -> None:
    """Draw one collection per text and text color, because it reuses the same glyphs at many places."""
    bars = view.bars
    inks: NDArray[np.str_] = np.full(len(bars), theme.text)
    for fill, chosen in colored(view, theme):
        inks[chosen] = readable_on(fill)
    middles = np.array([sum(EDGES[part]) / 2 for part in LanePart])[bars.part]
    middle = np.stack(((bars.start + bars.end) / 2, bars.lane + middles), axis=1)
    for labels in fitted:
        places: dict[tuple[str, str], list[int]] = {}
        for bar, text, ink in zip(labels.bars.tolist(), labels.text, inks[labels.bars].tolist(), strict=True):
            places.setdefault((text, ink), []).append(bar)
        for (text, ink), here in places.items():
            ax.add_collection(_written(text, ink, labels.size, middle[here], ax), autolim=False)


def _written(text: str, ink: str, size: float, middle: Floats, ax: Axes) -> PathCollection:
    """Return a text at many places, given by their centers in data coordinates."""
    return PathCollection(
        [_glyphs(text)],
        sizes=[size**2],
        offsets=middle,
        offset_transform=ax.transData,
        facecolors=[ink],
        linewidths=0,
        transform=IdentityTransform(),
    )


@lru_cache(maxsize=4096)
def _glyphs(text: str) -> Path:
    """Return the outline of a text in font size 1, centered at the origin."""
    path = TextPath((0, 0), text, size=100, prop=FontProperties(family=FONT))
    left, right = _reach(path)
    return Path((path.vertices - [(left + right) / 2, 36.5]) / 100, path.codes)


def _reach(path: Path) -> tuple[float, float]:
    """Return the minimum and maximum x of an outline of lines and quadratic curves, as in TrueType fonts.

    ``Path.get_extents`` returns the same, but works curve by curve and takes half as long as drawing a small picture.
    """
    x, codes = np.asarray(path.vertices, np.float64)[:, 0], np.asarray(path.codes)
    # A quadratic curve from start to end turns where its derivative vanishes: at turn, if that is between 0 and 1.
    middle = np.flatnonzero(codes == Path.CURVE3)[::2]  # position of each curve's control point
    start, control, end = x[middle - 1], x[middle], x[middle + 1]
    bend = start - 2 * control + end
    turn = np.clip(np.divide(start - control, bend, out=np.zeros_like(bend), where=bend != 0), 0, 1)
    furthest = (1 - turn) ** 2 * start + 2 * turn * (1 - turn) * control + turn**2 * end
    reached = np.concatenate((x[(codes == Path.MOVETO) | (codes == Path.LINETO)], end, furthest))
    return float(reached.min()), float(reached.max())


def _label_lanes(names: Sequence[str], ax: Axes, theme: Theme, size: Size, per_lane: float) -> None:
    """Label as many lanes as there is room for, at even steps, and hide the frame."""
    step = 1
    while step * per_lane < 1.15 * size.font and step < len(names):
        step *= 2
    shown = range(0, len(names), step)
    ax.set_yticks(list(shown), [names[lane] for lane in shown])
    ax.tick_params(colors=theme.text, labelsize=size.font, length=0, axis="y")
    ax.spines[:].set_visible(False)
    ax.set_facecolor(theme.page)
