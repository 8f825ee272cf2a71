"""Lanes whose ops are too narrow to draw: at each time they show the share of time of each kind of op.

The height of a lane is then a whole: from below, the share of each kind of op (and chunk) in a window of time, and at
the top the share of idle time. Colors are not blended, as they would be if several ops fell on one pixel. If there are
too many ranks for lanes of visible height, neighbors share a lane, which shows their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from pipeplan.drawing.theme import Theme, codes_of, fill_of
from pipeplan.drawing.view import LanePart, View, busy_until
from pipeplan.foundation.readable import Times
from pipeplan.model import Floats

NARROWEST = 1.5
"""Median width of ops in points below which they are not drawn individually."""

_OPS = 12
"""Number of ops in the window: several rounds of what a rank repeats."""

_DOTS = 2.5
"""Pixels of the image per point, about the resolution of a screen."""

_APART = 12.0
"""Lane height in points from which on a line separates it from the next lane."""

_LOWEST = 1.6
"""Minimum lane height that shows shares, relative to the font size."""

_MOST_SHADES = 24
"""Maximum number of shades of a kind of op; beyond it, neighbors share a shade."""

IDLE = -1
REASONS = 1_000_000
"""Codes without an op: idle time, and idle time by reason from this number on."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Shares of time of each kind of work.

    Attributes
    ----------
    codes
        ``kind * shades + shade`` of each share, or ``REASONS`` plus the reason for idle time, in the order in which
        they are stacked; idle time without a reason comes last.
    share
        Shape (codes, lanes, moments); they sum to 1 over the codes.
    window
        Length of time over which the shares are averaged.
    together
        Number of ranks that share a lane.
    """

    codes: NDArray[np.int64]
    share: Floats
    window: float
    together: int


def too_narrow(view: View, points_per_time: float) -> bool:
    """Return True if ops would be drawn too narrow to see."""
    bars = view.bars
    widths = (bars.end - bars.start)[bars.compute] * points_per_time
    return len(widths) > 0 and float(np.median(widths)) < NARROWEST


def together_in(lanes: int, height: float, font: float, *, one: bool = False) -> int:
    """Return how many neighbors share a lane if ``lanes`` have a height in points; with ``one``, all if they do not fit."""
    room = max(1, int(height / (_LOWEST * font)))
    return lanes if one and room < lanes else -(-lanes // room)


def window_of(view: View) -> float:
    """Return the length of time over which shares are averaged."""
    bars = view.bars
    return min(_OPS * float(np.median((bars.end - bars.start)[bars.compute])), view.makespan)


def shares_of(view: View, moments: int, together: int = 1) -> Shares:
    """Return the shares at evenly spaced times from 0 to the makespan, for ``together`` neighboring ranks at a time."""
    lanes, window = len(view.lanes.label), window_of(view)
    middle = (np.arange(moments) + 0.5) * (view.makespan / moments)
    begin, end = np.maximum(middle - window / 2, 0.0), np.minimum(middle + window / 2, view.makespan)
    spans = _spans(view)
    codes, code = np.unique(spans.code, return_inverse=True)
    groups = -(-lanes // together)
    share = np.zeros((len(codes) + 1, groups, moments))
    ranks_in = np.bincount(np.arange(lanes) // together, minlength=groups)
    key = (spans.lane * len(codes) + code) * 2 + (spans.weight == 1.0)
    order = np.lexsort((spans.start, key))
    for here in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        done = busy_until(spans.start[here], spans.end[here], np.stack((begin, end)))
        group = spans.lane[here[0]] // together
        busy = spans.weight[here[0]] * (done[1] - done[0]) / np.maximum(end - begin, np.finfo(float).tiny)
        share[code[here[0]], group] += busy / ranks_in[group]
    share[-1] = np.maximum(1.0 - share[:-1].sum(axis=0), 0.0)
    return Shares(np.append(codes, IDLE), share, window, together)


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """Parts of lanes, in columns; ``weight`` is the share of its lane that a span occupies."""

    lane: NDArray[np.int64]
    start: Floats
    end: Floats
    code: NDArray[np.int64]
    weight: Floats


def _spans(view: View) -> _Spans:
    bars, gaps = view.bars, view.gaps
    chosen = bars.compute
    code = _distinct_codes(view, codes_of(view)[chosen])
    weight = np.where(bars.part[chosen] == LanePart.FULL, 1.0, 0.5)
    columns = [(bars.lane[chosen], bars.start[chosen], bars.end[chosen], code, weight)]
    if gaps is not None:
        columns.append(
            (gaps.lane, gaps.start, gaps.end, REASONS + gaps.reason.astype(np.int64), np.ones(len(gaps.lane)))
        )
    lane, start, end, code, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    return _Spans(lane.astype(np.int64), start, end, code, weight)


def _distinct_codes(view: View, code: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the codes of bars with indistinguishable shades merged, because the time is proportional to the codes."""
    shades = view.copies * view.chunks
    if view.ratios is not None or shades <= _MOST_SHADES:
        return code
    together = -(-shades // _MOST_SHADES)
    shade = code % shades
    return code - shade + shade // together * together


def draw_shares(view: View, ax: Axes, theme: Theme, per_lane: float, together: int) -> None:
    """Draw lanes of ``per_lane`` points each as shares, in one image from 0 to the makespan; the limits do not change."""
    box = ax.get_window_extent()
    width = box.width * 72 / ax.figure.dpi * view.makespan / (ax.get_xlim()[1] - ax.get_xlim()[0])
    moments = max(1, round(width * _DOTS))
    rows = max(1, round(per_lane * _DOTS))
    shares = shares_of(view, moments, together)
    colors = np.array([to_rgb(_fill(view, theme, code)) for code in shares.codes.tolist()])
    tops = np.cumsum(shares.share, axis=0)[:-1]
    height = (np.arange(rows)[::-1] + 0.5) / rows
    # The index of a pixel's share is the number of tops below the pixel.
    lanes = tops.shape[1]
    place = np.zeros((lanes, rows, moments), np.int32)
    for top in tops:
        place += top[:, None, :] <= height[None, :, None]
    image = np.round(255 * colors).astype(np.uint8)[place.reshape(lanes * rows, moments)]
    if per_lane >= _APART:
        image[::rows] = np.round(255 * np.array(to_rgb(theme.page))).astype(np.uint8)
    right, bottom = ax.get_xlim(), ax.get_ylim()
    extent = (0.0, view.makespan, lanes - 0.5, -0.5)
    ax.imshow(image, extent=extent, aspect="auto", interpolation="nearest", zorder=1)
    ax.set_xlim(right)
    ax.set_ylim(bottom)


def _fill(view: View, theme: Theme, code: int) -> str:
    if code == IDLE:
        return theme.lane
    if code >= REASONS:
        assert view.gaps is not None
        return theme.reasons[view.gaps.reasons[code - REASONS]]
    return fill_of(view, theme, code)


def narrow_note(views: Sequence[View], points_per_time: float, times: Times) -> str:
    """Return the legend's note if some views are drawn as shares, else an empty string."""
    windows = [window_of(view) for view in views if too_narrow(view, points_per_time)]
    if not windows:
        return ""
    which = "ops" if len(windows) == len(views) else "some ops"
    unit = "" if times.unit else " time units"
    return (
        f"{which} are too narrow to draw: heights are shares of the ranks' time, "
        f"averaged over {times.text(max(windows))}{unit}"
    )
