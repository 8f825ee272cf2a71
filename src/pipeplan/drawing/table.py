"""Several views as rows of a table: name, timeline, makespan and bubble, peak memory against the limit.

All timelines share one axis, so the length of a row is its makespan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeplan.drawing.axes import (
    draw_legend,
    draw_time_axis,
    legend_entries,
    legend_rows,
    memory_unit,
    note_height,
)
from pipeplan.drawing.labels import SEPARATOR, about_all, times_of
from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.narrow import narrow_note
from pipeplan.drawing.sizes import TALLEST, Size
from pipeplan.drawing.style import fitted, width_of
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import View
from pipeplan.foundation.readable import change, percent
from pipeplan.model import counted, tolerances

FEWEST = 3
"""Minimum number of views for a table."""

_WIDE = 60
"""Minimum width of a page for a table, relative to the font size."""

_SMALL = 0.85
"""Font size of small text, relative to that of the page."""

_LANE = 0.6
_LOWEST, _HIGHEST = 2.5, 6.0
"""Minimum and maximum total height of a row's lanes, relative to the font size."""

_MANY = 8
"""Number of rows above which each is at most two thirds as high."""

_MARGIN, _FIGURES, _MEMORY = 1.0, 11.6, 12.0
"""Widths of the margin, of the column of times and of that of memory, relative to the font size."""


def is_wide(size: Size) -> bool:
    """Return True if a page has room for a table."""
    return size.width >= _WIDE * size.font


def drawn_table(views: Sequence[View], size: Size, theme: Theme, *, plain: bool = False) -> Figure:
    """Return a figure of views as rows, in their order; a ``plain`` one has no title.

    Raises InputError if the units of their times differ.
    """
    return _Table(views, size, theme, plain).draw()


@dataclass(frozen=True, slots=True)
class _Look:
    """Style of a line: its room in points, its font size relative to that of the page."""

    room: float
    size: float = 1.0
    bold: bool = False
    faint: bool = False
    right: bool = False


@dataclass(frozen=True)
class Sheet:
    """Views on one page, with its size and theme; a plain one has no title."""

    views: Sequence[View]
    size: Size
    theme: Theme
    plain: bool = False

    @cached_property
    def end(self) -> float:
        """End of the time axis: the longest makespan, or 1 if that is 0."""
        return max(view.makespan for view in self.views) or 1.0

    def blank(self, height: float) -> Figure:
        """Return an empty figure of the page's width and this height, in points."""
        figure = Figure((self.size.width / 72, height / 72), facecolor=self.theme.page)
        FigureCanvasAgg(figure)
        return figure

    def axes(self, figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
        """Return axes at a place of the page, in points from its left and top."""
        across, whole = self.size.width, figure.get_figheight() * 72
        return figure.add_axes((left / across, 1 - (top + height) / whole, width / across, height / whole))


class _Table(Sheet):
    """Rows, in points from the left and top of the page."""

    def draw(self) -> Figure:
        size, entries = self.size, legend_entries(self.views, self.theme)
        below = size.font * (3.8 + 1.7 * legend_rows(entries, size)) + note_height(self._note, size)
        pitch = self._pitch((size.height or 0.0) - below - self._top)
        rows = pitch * len(self.views)
        height = size.whole(max(size.height or 0.0, self._top + rows + below))
        figure = self.blank(height)
        self._write_head(figure)
        back = self.axes(figure, self._name, self._top, self._timeline, rows)
        self._draw_back(back)
        for place, view in enumerate(self.views):
            top = self._top + place * pitch
            gap = min(0.7 * size.font, 0.2 * pitch)
            ax = self.axes(figure, self._name, top + gap / 2, self._timeline, pitch - gap)
            draw_lanes(view, ax, self.theme, self.size, self.end, named=False)
            ax.patch.set_visible(False)
            ax.tick_params(axis="x", bottom=False, labelbottom=False)
            self._write_row(figure, view, top + pitch / 2, pitch)
        if self._has_memory:
            self._draw_memory(figure, rows)
        draw_time_axis(back, self.views, size, self.theme)
        draw_legend(figure, entries, size, self.theme, self._note)
        return figure

    @cached_property
    def _has_memory(self) -> bool:
        units = {None if view.memory is None else view.memory.unit for view in self.views}
        return len(units) == 1 and None not in units

    @cached_property
    def _note(self) -> str:
        return narrow_note(self.views, self._timeline / self.end, times_of(self.views))

    @cached_property
    def _name(self) -> float:
        """Start of the timelines: after the margin and the longest name, or the line below it."""
        font, most = self.size.font, self.size.width
        names = [width_of(fitted(view.title, font, most, bold=True), font, True) for view in self.views]
        longest = max(*names, *(width_of(_kind_of(view), _SMALL * font) for view in self.views))
        return min(longest + (_MARGIN + 1.0) * self.size.font, 0.26 * self.size.width)

    @cached_property
    def _timeline(self) -> float:
        right = _MARGIN + _FIGURES + (_MEMORY if self._has_memory else 0.0)
        return self.size.width - self._name - right * self.size.font

    @property
    def _top(self) -> float:
        return (1.8 if self.plain else 5.6) * self.size.font

    def _pitch(self, room: float) -> float:
        font, rows = self.size.font, len(self.views)
        lanes = max(len(view.lanes.label) for view in self.views)
        highest = _HIGHEST * (1.0 if rows <= _MANY else 2 / 3)
        wanted = (min(max(_LANE * lanes, _LOWEST), highest) + 0.7) * font
        if self.size.height is not None:
            wanted = min(max(room / rows, 1.5 * font), 3 * wanted)
        return min(wanted, TALLEST / rows)

    def _write(self, figure: Figure, text: str, x: float, y: float, look: _Look) -> None:
        """Write a line that starts, or ends, at ``x``, with its middle ``y`` below the top of the page."""
        size = look.size * self.size.font
        line = fitted(text, size, look.room, bold=look.bold)
        figure.text(
            x / self.size.width,
            1 - y / (figure.get_figheight() * 72),
            line,
            ha="right" if look.right else "left",
            va="center_baseline",
            fontsize=size,
            fontweight="bold" if look.bold else "normal",
            color=self.theme.faint if look.faint else self.theme.text,
            parse_math=False,
        )

    def _write_head(self, figure: Figure) -> None:
        font = self.size.font
        left, room = _MARGIN * font, self.size.width - 2 * _MARGIN * font
        if not self.plain:
            title = counted(len(self.views), "schedule") + self._order
            self._write(figure, title, left, 1.5 * font, _Look(room, size=1.3, bold=True))
            self._write(figure, about_all(self.views), left, 3.1 * font, _Look(room, size=0.95, faint=True))
        heads = [("schedule", left, False), ("timeline", self._name, False), ("makespan", self._figures_end, True)]
        for text, x, right in heads:
            look = _Look(room, size=_SMALL, faint=True, right=right)
            self._write(figure, text, x, self._top - 0.7 * font, look)

    @property
    def _order(self) -> str:
        keys = [(self._over(view), view.makespan) for view in self.views]
        if keys != sorted(keys):
            return ""
        if keys[0][0]:
            return ", all over the memory limit, fastest first"
        return ", fastest first" + (", over the memory limit last" if keys[-1][0] else "")

    @property
    def _figures_end(self) -> float:
        return self._name + self._timeline + _FIGURES * self.size.font

    def _write_row(self, figure: Figure, view: View, middle: float, pitch: float) -> None:
        """Write name and chunks on the left, makespan and bubble on the right, in two lines if there is room."""
        font, room = self.size.font, self._name - (_MARGIN + 0.6) * self.size.font
        tall = pitch >= 2.5 * font
        up = 0.62 * font if tall else 0.0
        left, right = _MARGIN * font, self._figures_end
        makespan = times_of(self.views).text(view.makespan) if view.source != "order" else ""
        self._write(figure, view.title, left, middle - up, _Look(room, bold=True, faint=self._over(view)))
        self._write(figure, makespan, right, middle - up, _Look(_FIGURES * font, right=True))
        if tall:
            small = _Look(room, size=_SMALL, faint=True)
            self._write(figure, _kind_of(view), left, middle + up, small)
            self._write(
                figure, self._beside(view), right, middle + up, replace(small, room=_FIGURES * font, right=True)
            )

    def _beside(self, view: View) -> str:
        if view.source == "order":
            return ""
        best = self._fastest
        more = change(view.makespan / best - 1) if view.makespan != best > 0 else ""
        return SEPARATOR.join(part for part in (more, f"bubble {percent(view.idle_over_total)}") if part)

    @property
    def _fastest(self) -> float:
        """Smallest makespan within the memory limit, or of all if none is."""
        return min(
            [view.makespan for view in self.views if not self._over(view)] or [view.makespan for view in self.views]
        )

    def _over(self, view: View) -> bool:
        curves = view.memory
        if curves is None or curves.limit is None:
            return False
        return bool((curves.peak > curves.limit * (1 + tolerances.MEMORY)).any())

    def _draw_back(self, ax: Axes) -> None:
        """Draw the axis that the rows share, and a line at the end of the fastest that fits."""
        ax.set_xlim(0, self.end)
        ax.set_facecolor("none")
        ax.spines[:].set_visible(False)
        ax.set_yticks([])
        ax.grid(axis="x", color=self.theme.grid, linewidth=0.4)
        ax.set_axisbelow(True)
        ax.axvline(self._fastest, color=self.theme.faint, linewidth=0.8, ls=(0, (4, 3)))

    def _draw_memory(self, figure: Figure, rows: float) -> None:
        font, theme = self.size.font, self.theme
        curves = [view.memory for view in self.views if view.memory is not None]
        peaks = np.array([held.peak.max() for held in curves])
        limits = np.array([np.nan if held.limit is None else held.limit.max() for held in curves])
        scale, unit = memory_unit(peaks, curves[0].unit)
        left, right = self._figures_end + 1.6 * font, self.size.width - _MARGIN * font
        ax = self.axes(figure, left, self._top, right - left - 2.8 * font, rows)
        ax.set_facecolor("none")
        ax.set_axis_off()
        ax.set_ylim(len(curves) - 0.5, -0.5)
        ax.set_xlim(0, float(np.nanmax(np.append(peaks, limits))) / scale or 1.0)
        colors = [theme.limit if self._over(view) else theme.faint for view in self.views]
        ax.barh(range(len(curves)), peaks / scale, height=0.34, color=colors)
        decimals = 0 if np.equal(np.mod(peaks / scale, 1), 0).all() else 1
        for place, peak in enumerate((peaks / scale).tolist()):
            y = self._top + (place + 0.5) * rows / len(curves)
            self._write(figure, f"{peak:,.{decimals}f}", right, y, _Look(3 * font, size=_SMALL, right=True))
        limit = float(np.nanmax(np.append(limits, -np.inf)))
        if np.isfinite(limit):
            ax.axvline(limit / scale, color=theme.limit, linewidth=1.0, ls=(0, (4, 2)))
            ax.annotate(
                f"limit {limit / scale:.4g}",
                (limit / scale, len(curves) - 0.5),
                (0, -0.4 * font),
                ha="center",
                va="top",
                textcoords="offset points",
                fontsize=_SMALL * font,
                color=theme.limit,
            )
        look = _Look(right - left, size=_SMALL, faint=True)
        self._write(figure, f"peak ({unit})", left, self._top - 0.7 * font, look)


def _kind_of(view: View) -> str:
    both = ", two directions" if view.copies > 1 else ""
    return f"{counted(view.chunks, 'chunk')} per rank{both}"
