"""Pictures for paper and slides through matplotlib: PNG, SVG and PDF, the same bytes for the same view.

Figures are made without pyplot, so nothing is shown, kept or left open. :func:`draw` puts a view's lanes into axes of your
own; :func:`figure_of` lays out whole pages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import BinaryIO

from pipeplan.drawing.style import names_as_text, our_style  # before matplotlib, whose import it guards

# isort: split
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.legend import draw_legend, legend_entries, legend_rows
from pipeplan.drawing.memory import draw_memory, legend_height
from pipeplan.drawing.sizes import TALLEST, Size, SizeName, size_named
from pipeplan.drawing.theme import Theme, ThemeName, theme_named
from pipeplan.drawing.view import View, time_text
from pipeplan.drawing.words import fitted, width_of
from pipeplan.errors import FormatError, InputError

FORMATS = ("png", "svg", "pdf")

_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""No dates and versions: the same view gives the same bytes."""


def draw(view: View, ax: Axes | None = None, *, theme: ThemeName = "light", size: SizeName = "page") -> Axes:
    """Draw a view's lanes into axes, or into those of a new figure, and return the axes; nothing is shown.

    Labels are fitted to the size that the axes have now. ``ax.figure.savefig`` writes the picture.

    Raises
    ------
    UnknownNameError
        For an unknown theme or size.
    """
    page, colors = size_named(size), theme_named(theme)
    with names_as_text():
        if ax is None:
            ax = _new_axes(view, page, colors)
        draw_lanes(view, ax, colors, page, view.makespan or 1.0)
        title = fitted(view.title, 1.15 * page.font, _points(ax))
        ax.set_title(title, loc="left", fontsize=1.15 * page.font, color=colors.text, parse_math=False)
        ax.xaxis.set_major_formatter(lambda value, _: time_text(value))
        _name_time_axis(ax, [view], page, colors)
        ax.tick_params(axis="x", labelsize=0.9 * page.font, colors=colors.text)
    return ax


def _points(ax: Axes) -> float:
    """How wide axes are."""
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi)


def _name_time_axis(ax: Axes, views: Sequence[View], size: Size, theme: Theme, pad: float | None = None) -> None:
    label = fitted(_time_label(views), size.font, _points(ax))
    ax.set_xlabel(label, fontsize=size.font, color=theme.text, labelpad=pad, parse_math=False)


def _new_axes(view: View, page: Size, colors: Theme) -> Axes:
    """The axes of a new figure as high as its lanes need."""
    lanes = page.lane_height(len(view.lanes.label)) * len(view.lanes.label)
    height = lanes + 6 * page.font
    figure = Figure((page.width / 72, height / 72), facecolor=colors.page)
    FigureCanvasAgg(figure)
    left = 6.5 * page.font / page.width
    return figure.add_axes((left, 3.5 * page.font / height, 0.98 - left, lanes / height))


def figure_of(views: View | Sequence[View], *, size: SizeName = "page", theme: ThemeName = "light") -> Figure:
    """A page of views, one below the other on one time axis, each with its memory; the legend stands below.

    Raises
    ------
    UnknownNameError
        For an unknown theme or size.
    InputError
        For views whose times are in different units.
    ValueError
        For no views.
    """
    chosen = [views] if isinstance(views, View) else list(views)
    if not chosen:
        raise ValueError("a picture needs at least one view")
    with our_style():
        return _Page(_that_fit(chosen, size_named(size)), size_named(size), theme_named(theme)).draw()


def save_picture(
    views: View | Sequence[View],
    path: str | os.PathLike[str] | BinaryIO,
    *,
    size: SizeName = "slide",
    theme: ThemeName = "light",
    format: str | None = None,
) -> None:
    """Write a page of views to a path or an open binary file.

    Parameters
    ----------
    format
        ``png``, ``svg`` or ``pdf``; the path's ending where nothing is said.

    Raises
    ------
    FormatError
        For another format, or an open file without one.
    UnknownNameError
        For an unknown theme or size.
    OSError
        Where the file cannot be written.
    """
    chosen = _format(path, format)
    save_figure(figure_of(views, size=size, theme=theme), path, format=chosen, dpi=size_named(size).dpi)


def save_figure(
    figure: Figure, path: str | os.PathLike[str] | BinaryIO, *, format: str | None = None, dpi: float | None = None
) -> None:
    """Write a figure, the same bytes for the same figure. Parameters and errors are those of :func:`save_picture`."""
    chosen = _format(path, format)
    with our_style():
        figure.savefig(
            path,
            format=chosen,
            dpi=figure.dpi if dpi is None else dpi,
            metadata=_METADATA[chosen],
            facecolor=figure.get_facecolor(),
        )


def _format(path: str | os.PathLike[str] | BinaryIO, format: str | None) -> str:
    chosen = format or _ending(path)
    if chosen not in FORMATS:
        raise FormatError(f"pictures are written as {', '.join(FORMATS)}, not as '{chosen}'")
    return chosen


def _ending(path: str | os.PathLike[str] | BinaryIO) -> str:
    return PurePath(path).suffix[1:].lower() if isinstance(path, str | os.PathLike) else ""


def _time_label(views: Sequence[View]) -> str:
    if all(view.source == "order" for view in views):
        return "place in the rank's order"
    units = sorted({view.unit for view in views if view.source != "order"} - {""})
    if len(units) > 1:
        raise InputError(f"times in {' and '.join(units)} cannot share an axis")
    return f"time ({units[0]})" if units else "time"


def _that_fit(views: list[View], size: Size) -> list[View]:
    """The views, without memory where a page of fixed height would be more than half full of it."""
    memory = sum(size.memory + legend_height(view, size) for view in views if view.memory is not None)
    if size.height is None or memory <= 0.5 * size.height:
        return views
    return [replace(view, memory=None) for view in views]


@dataclass(frozen=True, slots=True)
class _Page:
    """A page to be laid out, in points from its top."""

    views: list[View]
    size: Size
    theme: Theme

    def draw(self) -> Figure:
        size, entries = self.size, legend_entries(self.views, self.theme)
        below = size.font * (3.6 + 1.7 * legend_rows(entries, size))
        height = size.height or 0.0
        lane = self._lane(height - below)
        height = max(height, below + sum(self._height(view, lane) for view in self.views))
        figure = Figure((size.width / 72, height / 72), facecolor=self.theme.page)
        FigureCanvasAgg(figure)
        end = max(view.makespan for view in self.views) or 1.0
        top = 0.0
        lowest = None
        for view in self.views:
            lowest = self._draw_view(figure, view, top, lane, end)
            top += self._height(view, lane)
        assert lowest is not None
        self._time_axis(lowest)
        draw_legend(figure, entries, size, self.theme)
        return figure

    def _lane(self, room: float) -> float:
        """The height of a lane: what the size says, or what a page of fixed height leaves."""
        most = max(len(view.lanes.label) for view in self.views)
        lanes = sum(len(view.lanes.label) for view in self.views)
        if self.size.height is None:
            return min(self.size.lane_height(most), TALLEST / lanes)
        room -= sum(self._height(view, 0.0) for view in self.views)
        return min(self.size.lane, max(self.size.lowest_lane, room / lanes), TALLEST / lanes)

    @property
    def _title(self) -> float:
        return 2.3 * self.size.font

    def _memory(self, view: View) -> float:
        """The height of a view's memory with the space above it."""
        return 0.0 if view.memory is None else self.size.memory + legend_height(view, self.size)

    def _height(self, view: View, lane: float) -> float:
        return self._title + lane * len(view.lanes.label) + self._memory(view)

    def _axes(self, figure: Figure, top: float, height: float) -> Axes:
        """Axes across the page; the margins hold the lanes' names and half of the last tick's."""
        width, whole = self.size.width, figure.get_figheight() * 72
        longest = max(len(label) for view in self.views for label in view.lanes.label)
        left = (0.62 * longest + 1.2) * self.size.font
        right = 1.5 * self.size.font
        return figure.add_axes((left / width, 1 - (top + height) / whole, 1 - (left + right) / width, height / whole))

    def _draw_view(self, figure: Figure, view: View, top: float, lane: float, end: float) -> Axes:
        top += self._title
        height = lane * len(view.lanes.label)
        ax = self._axes(figure, top, height)
        draw_lanes(view, ax, self.theme, self.size, end)
        self._write_title(ax, view)
        ax.tick_params(axis="x", bottom=False, labelbottom=False)
        if view.memory is None:
            return ax
        below = self._axes(figure, top + height + legend_height(view, self.size), self.size.memory)
        draw_memory(view, below, self.theme, self.size, end)
        below.tick_params(axis="x", labelbottom=False)
        return below

    def _write_title(self, ax: Axes, view: View) -> None:
        font, color, pad, room = self.size.font, self.theme.text, 0.55 * self.size.font, _points(ax)
        if view.source != "order":
            unit = f" {fitted(view.unit, font, 0.25 * room)}" if view.unit else ""
            measured = ", measured" if view.source == "measured" else ""
            figures = f"makespan {time_text(view.makespan)}{unit}, idle {view.idle_over_total:.1%}{measured}"
            ax.set_title(figures, loc="right", fontsize=font, color=color, pad=pad)
            room -= width_of(figures, font) + font
        name = fitted(view.title, 1.15 * font, room, bold=True)
        ax.set_title(name, loc="left", fontsize=1.15 * font, color=color, fontweight="bold", pad=pad)

    def _time_axis(self, ax: Axes) -> None:
        font, theme = self.size.font, self.theme
        ax.tick_params(axis="x", bottom=True, labelbottom=True, labelsize=font * 0.9, colors=theme.text)
        ax.tick_params(axis="x", length=font / 4, width=0.6)
        ax.xaxis.set_major_formatter(lambda value, _: time_text(value))
        _name_time_axis(ax, self.views, self.size, theme, 0.25 * font)
