"""Static pictures with matplotlib: PNG, SVG and PDF; equal views give equal bytes.

Figures are made without pyplot, so nothing is shown or kept open. :func:`draw` draws a view's lanes into given axes;
:func:`figure_of` lays out whole pages; :func:`html_of` and :func:`png_of` are for notebooks. Timelines and schedules
import this module by name (:mod:`pipeplan.model.schedule`).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import BinaryIO, Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeplan.drawing.axes import draw_time_axis, points_across
from pipeplan.drawing.from_timeline import order_of, view_of
from pipeplan.drawing.labels import figures_of, times_of
from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.page import drawn_page
from pipeplan.drawing.sizes import Size, SizeName, ThemeName, size_named
from pipeplan.drawing.style import fitted, names_as_text, our_style
from pipeplan.drawing.theme import Theme, theme_named
from pipeplan.drawing.view import View
from pipeplan.model import Schedule, Timeline

PictureFormat = Literal["png", "svg", "pdf"]

_METADATA: dict[PictureFormat, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata without dates and versions, so that equal views give equal bytes."""


def draw(view: View, ax: Axes | None = None, *, theme: ThemeName = "light", size: SizeName = "page") -> Axes:
    """Draw a view's lanes into axes, by default those of a new figure, and return the axes; nothing is shown.

    Labels are fitted to the current size of the axes. Use ``ax.figure.savefig`` to write the picture.

    Raises UnknownNameError if the theme or size is unknown.
    """
    page, colors = size_named(size), theme_named(theme)
    with names_as_text():
        if ax is None:
            ax = _new_axes(view, page, colors)
        draw_lanes(view, ax, colors, page, view.makespan or 1.0)
        title = fitted(view.title, 1.15 * page.font, points_across(ax))
        ax.set_title(title, loc="left", fontsize=1.15 * page.font, color=colors.text, parse_math=False)
        draw_time_axis(ax, [view], page, colors)
    return ax


def _new_axes(view: View, page: Size, colors: Theme) -> Axes:
    lanes = page.lane_height(len(view.lanes.label)) * len(view.lanes.label)
    height = lanes + 6 * page.font
    figure = Figure((page.width / 72, height / 72), facecolor=colors.page)
    FigureCanvasAgg(figure)
    left = 6.5 * page.font / page.width
    return figure.add_axes((left, 3.5 * page.font / height, 0.98 - left, lanes / height))


def figure_of(
    views: View | Sequence[View], *, size: SizeName = "page", theme: ThemeName = "light", plain: bool = False
) -> Figure:
    """Return a page of views on one time axis, with the legend at the bottom.

    One or two views are below each other, each with its memory; more are the rows of a table, with makespan and peak
    memory. A ``plain`` page has no title and no memory.
    """
    chosen = [views] if isinstance(views, View) else list(views)
    with our_style():
        return drawn_page(chosen, size_named(size), theme_named(theme), plain=plain)


def save_picture(
    views: View | Sequence[View],
    file: BinaryIO,
    *,
    format: PictureFormat,
    size: SizeName = "page",
    theme: ThemeName = "light",
    plain: bool = False,
) -> None:
    """Write a page of views to a file; equal views give equal bytes."""
    save_figure(figure_of(views, size=size, theme=theme, plain=plain), file, format=format, dpi=size_named(size).dpi)


def save_figure(figure: Figure, file: BinaryIO, *, format: PictureFormat, dpi: float | None = None) -> None:
    """Write a figure to a file; equal figures give equal bytes."""
    content = BytesIO()
    with our_style():
        figure.savefig(
            content,
            format=format,
            dpi=figure.dpi if dpi is None else dpi,
            metadata=_METADATA[format],
            facecolor=figure.get_facecolor(),
        )
    file.write(compact(content.getvalue().decode()).encode() if format == "svg" else content.getvalue())


# Matplotlib writes a rectangle by its four corners. SVG has shorter commands for horizontal and vertical lines.
_DRAWN = re.compile(r'( (?:d|x|y)=")([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_INDENT = re.compile(r"\n +")
_BOX = re.compile(r"M(\S+) ([^ L]+)L([^ L]+) \2L\3 ([^ L]+)L\1 \4z")
_BOX_SHORT = r"M\1 \2H\3V\4H\1z"
"""Replacement for a rectangle: lines along its edges instead of its corners."""

_AROUND = re.compile(r"\s*([MLQCz])\s*")


def compact(svg: str) -> str:
    """Return the same SVG with coordinates in hundredths of a point and no blanks around the command letters of paths."""
    return _INDENT.sub("\n", _DRAWN.sub(_shorter, svg))


def _shorter(match: re.Match[str]) -> str:
    numbers = _AROUND.sub(r"\1", _LONG.sub(_rounded, match[2]))
    return f'{match[1]}{_BOX.sub(_BOX_SHORT, numbers)}"'


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


Shown = View | Timeline | Schedule

_MOST_IN_SVG = 3000
"""Number of bars above which a bitmap is smaller than a vector image."""


def png_of(shown: Shown | Sequence[Shown], *, theme: ThemeName = "light") -> bytes:
    """Return one PNG of one or several views, timelines or schedules (which show their order only)."""
    return _picture(_views(shown), "png", theme)


def html_of(shown: Shown | Sequence[Shown], *, theme: ThemeName = "light") -> str:
    """Return an HTML fragment with a self-contained picture; its figures are the description for screen readers."""
    views = _views(shown)
    drawn = sum(len(view.bars) for view in views) <= _MOST_IN_SVG
    kind: PictureFormat = "svg" if drawn else "png"
    media = "image/svg+xml" if drawn else "image/png"
    data = b64encode(_picture(views, kind, theme)).decode()
    described = escape("; ".join(_figures(view) for view in views))
    return f'<img style="max-width: 100%" alt="{described}" src="data:{media};base64,{data}">'


def _views(shown: Shown | Sequence[Shown]) -> list[View]:
    several = [shown] if isinstance(shown, View | Timeline | Schedule) else shown
    return [
        entry if isinstance(entry, View) else order_of(entry) if isinstance(entry, Schedule) else view_of(entry)
        for entry in several
    ]


def _picture(views: Sequence[View], kind: PictureFormat, theme: ThemeName) -> bytes:
    file = BytesIO()
    save_picture(views, file, theme=theme, format=kind)
    return file.getvalue()


def _figures(view: View) -> str:
    title = view.title or "schedule"
    if view.source == "order":
        return f"{title}: the order of {len(view.bars)} ops on {len(view.lanes.label)} ranks"
    return f"{title}: {view.source}, {figures_of(view, times_of([view]))}"
