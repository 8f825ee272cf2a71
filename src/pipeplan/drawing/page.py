"""Layout of a page: one or two views below each other, more as a table (:mod:`pipeplan.drawing.table`)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeplan.drawing.axes import (
    draw_legend,
    draw_memory,
    draw_time_axis,
    legend_entries,
    legend_height,
    legend_rows,
    note_height,
)
from pipeplan.drawing.labels import SEPARATOR, about, about_all, figures_of, times_of
from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.narrow import narrow_note, too_narrow
from pipeplan.drawing.sizes import TALLEST, Size
from pipeplan.drawing.style import drawable, width_of, wrapped
from pipeplan.drawing.table import FEWEST, Sheet, drawn_table, is_wide
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import View

_LINE = 1.4
"""Distance of lines above a view, relative to the font size."""

_SMALL = 0.9
"""Font size of small text, relative to that of the page."""

_NAME = 1.15
"""Font size of a view's name, relative to that of the page."""

_ROW = 6.0
"""Maximum total height of the lanes of a view if there are several views, relative to the font size."""

_MOST_MEMORY = 3.0
"""Maximum height of memory on a page of fixed height, relative to its usual height."""


def drawn_page(views: list[View], size: Size, theme: Theme, *, plain: bool = False) -> Figure:
    """Return a figure of views; a ``plain`` one has no title and no memory, but names several views.

    Raises InputError if the units of their times differ.
    """
    if plain:
        views = [replace(view, memory=None) for view in views]
    if len(views) >= FEWEST and is_wide(size):
        return drawn_table(views, size, theme, plain=plain)
    return _Stack(_that_fit(views, size), size, theme, plain).draw()


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
        below = size.font * (3.6 + 1.7 * legend_rows(entries, size)) + note_height(self._note, size)
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
        """Return the height of what is above the lanes of a view."""
        names, about = self._names(place), self._about(place)
        if not names:
            return self.size.font
        lines = len(about) + _NAME * (len(names) - 1) + (0 if self._figures_beside(place) else 1)
        return (2.3 + _LINE * lines) * self.size.font

    @property
    def _room(self) -> float:
        return self.size.width - sum(self._margins)

    def _names(self, place: int) -> list[str]:
        """Return the lines of a view's name; a single plain view has none."""
        if self.plain and len(self.views) == 1:
            return []
        return wrapped(self.views[place].title, _NAME * self.size.font, self._room, bold=True)

    def _figures(self, place: int) -> str:
        if self.plain and len(self.views) == 1:
            return ""
        return drawable(figures_of(self.views[place], times_of(self.views)))

    def _figures_beside(self, place: int) -> bool:
        """Return True if there is room for the figures to the right of a name, or no figures."""
        font, names, figures = self.size.font, self._names(place), self._figures(place)
        if not figures:
            return True
        beside = width_of(figures, font) + font + width_of(names[0], _NAME * font, True) if names else 0.0
        return len(names) <= 1 and beside <= self._room

    def _about(self, place: int) -> list[str]:
        """Return the lines of shape and costs, which end between two facts wherever a fact fits into a line."""
        if self.plain or not self._has_about(place):
            return []
        facts = about(self.views[place]) if len(self.views) < FEWEST else about_all(self.views)
        small, lines = _SMALL * self.size.font, list[str]()
        for fact in filter(None, facts.split(SEPARATOR)):
            longer = f"{lines[-1]}{SEPARATOR}{fact}" if lines else fact
            if width_of(longer, small) <= self._room:
                lines[-1:] = [longer]
            else:
                lines += wrapped(fact, small, self._room)
        return lines

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
        font, pad = self.size.font, 0.55 * self.size.font
        names, figures, beside = self._names(place), self._figures(place), self._figures_beside(place)
        lines = [(line, _SMALL * font, self.theme.faint) for line in self._about(place)]
        if not beside:
            lines = [(line, font, self.theme.text) for line in wrapped(figures, font, self._room)] + lines
        for line, size, color in reversed(lines):
            ax.annotate(
                line,
                (0, 1),
                (0, pad),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=size,
                color=color,
                parse_math=False,
            )
            pad += _LINE * font
        if figures and beside:
            ax.set_title(figures, loc="right", fontsize=font, color=self.theme.text, pad=pad)
        if names:
            name = "\n".join(names)
            ax.set_title(
                name,
                loc="left",
                fontsize=_NAME * font,
                color=self.theme.text,
                fontweight="bold",
                pad=pad,
                parse_math=False,
            )
