"""Layout of a page: one or two views below each other, more as a table (:mod:`pipeplan.drawing.table`)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeplan.drawing.axes import (
    NOTE,
    draw_legend,
    draw_memory,
    draw_time_axis,
    legend_entries,
    legend_height,
    legend_rows,
    points_across,
)
from pipeplan.drawing.labels import SEPARATOR, about, about_all, figures_of, times_of
from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.narrow import narrow_note, too_narrow
from pipeplan.drawing.sizes import TALLEST, Size
from pipeplan.drawing.style import fitted, width_of
from pipeplan.drawing.table import FEWEST, Sheet, drawn_table, is_wide
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import View

_LINE = 1.4
"""Distance of lines above a view, relative to the font size."""

_SMALL = 0.9
"""Font size of small text, relative to that of the page."""

_ROW = 6.0
"""Maximum total height of the lanes of a view if there are several views, relative to the font size."""

_MOST_MEMORY = 3.0
"""Maximum height of memory on a page of fixed height, relative to its usual height."""


def drawn_page(views: list[View], size: Size, theme: Theme) -> Figure:
    """Return a figure of views. Raises InputError if the units of their times differ."""
    if len(views) >= FEWEST and is_wide(size):
        return drawn_table(views, size, theme)
    return _Stack(_that_fit(views, size), size, theme).draw()


def _that_fit(views: list[View], size: Size) -> list[View]:
    """Return the views, without memory if there are many, or if it would fill half of a page of fixed height."""
    memory = sum(size.memory + legend_height(view, size) for view in views if view.memory is not None)
    if len(views) < FEWEST and (size.height is None or memory <= 0.5 * size.height):
        return views
    return [replace(view, memory=None) for view in views]


class _Stack(Sheet):
    """Views below each other, in points from the top of the page."""

    def draw(self) -> Figure:
        size, entries = self.size, legend_entries(self.views, self.theme)
        below = size.font * (3.6 + 1.7 * legend_rows(entries, size) + (NOTE if self._note else 0.0))
        lane = self._lane((size.height or 0.0) - below)
        needed = below + sum(self._heights(lane))
        height = size.whole(max(size.height or 0.0, needed))
        more = self._more_memory(height - needed)
        figure = self.blank(height)
        top = 0.0
        lowest = None
        for place, of_view in enumerate(self._heights(lane)):
            lowest = self._draw_view(figure, place, top, lane, more)
            top += of_view + (more if self.views[place].memory is not None else 0.0)
        assert lowest is not None
        draw_time_axis(lowest, self.views, size, self.theme)
        draw_legend(figure, entries, size, self.theme, self._note)
        return figure

    @cached_property
    def _narrow(self) -> bool:
        return any(too_narrow(view, 0.9 * self.size.width / self.end) for view in self.views)

    @cached_property
    def _note(self) -> str:
        across = self.size.width - sum(self._margins)
        return narrow_note(self.views, across / self.end, times_of(self.views))

    @cached_property
    def _margins(self) -> tuple[float, float]:
        """Return the width of the lanes' names and half of that of the last tick."""
        longest = max(len(label) for view in self.views for label in view.lanes.label)
        if self._narrow:
            longest += 2 + len(str(len(self.views[0].lanes.label)))
        return (0.62 * longest + 1.2) * self.size.font, 1.5 * self.size.font

    def _lane(self, room: float) -> float:
        """Return the height of a lane: that of the size, or what a page of fixed height leaves."""
        most = max(len(view.lanes.label) for view in self.views)
        lanes = sum(len(view.lanes.label) for view in self.views)
        if self.size.height is None:
            wanted = self.size.lane_height(most)
            if len(self.views) >= FEWEST:
                wanted = min(wanted, max(_ROW * self.size.font / most, self.size.lowest_lane))
            return min(wanted, TALLEST / lanes)
        room -= sum(self._heights(0.0))
        return min(self.size.lane, max(self.size.lowest_lane, room / lanes), TALLEST / lanes)

    def _more_memory(self, room: float) -> float:
        curves = sum(view.memory is not None for view in self.views)
        return min(room / curves, (_MOST_MEMORY - 1) * self.size.memory) if curves else 0.0

    def _heights(self, lane: float) -> list[float]:
        return [
            self._title(place) + lane * len(view.lanes.label) + self._memory(view)
            for place, view in enumerate(self.views)
        ]

    def _title(self, place: int) -> float:
        return (2.3 + _LINE * len(self._about(place))) * self.size.font

    def _about(self, place: int) -> list[str]:
        """Return shape and costs, in two lines if one is too short."""
        if not self._has_about(place):
            return []
        facts = about(self.views[place]) if len(self.views) < FEWEST else about_all(self.views)
        small, room = _SMALL * self.size.font, self.size.width - sum(self._margins)
        if width_of(facts, small) <= room:
            return [facts]
        first, *rest = facts.split(SEPARATOR)
        return [fitted(line, small, room) for line in (first, SEPARATOR.join(rest)) if line]

    def _has_about(self, place: int) -> bool:
        """Return True if a view's shape and costs are written above it, which is not repeated for equal ones."""
        return place == 0 or (len(self.views) < FEWEST and about(self.views[place]) != about(self.views[place - 1]))

    def _memory(self, view: View) -> float:
        return 0.0 if view.memory is None else self.size.memory + legend_height(view, self.size)

    def _draw_view(self, figure: Figure, place: int, top: float, lane: float, more: float) -> Axes:
        view = self.views[place]
        top += self._title(place)
        height = lane * len(view.lanes.label)
        left, across = self._margins[0], self.size.width - sum(self._margins)
        ax = self.axes(figure, left, top, across, height)
        draw_lanes(view, ax, self.theme, self.size, self.end)
        self._write_title(ax, place)
        ax.tick_params(axis="x", bottom=False, labelbottom=False)
        if view.memory is None:
            return ax
        top += height + legend_height(view, self.size)
        below = self.axes(figure, left, top, across, self.size.memory + more)
        draw_memory(view, below, self.theme, self.size, self.end)
        below.tick_params(axis="x", labelbottom=False)
        return below

    def _write_title(self, ax: Axes, place: int) -> None:
        view = self.views[place]
        font, pad, room = self.size.font, 0.55 * self.size.font, points_across(ax)
        for line in reversed(self._about(place)):
            ax.annotate(
                line,
                (0, 1),
                (0, pad),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=_SMALL * font,
                color=self.theme.faint,
                parse_math=False,
            )
            pad += _LINE * font
        figures = fitted(figures_of(view, times_of(self.views)), font, 0.75 * room)
        if figures:
            ax.set_title(figures, loc="right", fontsize=font, color=self.theme.text, pad=pad)
            room -= width_of(figures, font) + font
        name = fitted(view.title, 1.15 * font, room, bold=True)
        ax.set_title(name, loc="left", fontsize=1.15 * font, color=self.theme.text, fontweight="bold", pad=pad)
