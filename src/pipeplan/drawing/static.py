"""Pictures for paper and slides through matplotlib: PNG, SVG and PDF, the same bytes for the same view.

Figures are made without pyplot, so nothing is shown, kept or left open. :func:`draw` puts a view's lanes into axes of your
own; :func:`figure_of` lays out whole pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path, PurePath
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeplan.drawing.lanes import draw_lanes
from pipeplan.drawing.page import drawn_page
from pipeplan.drawing.sizes import Size, SizeName, ThemeName, size_named
from pipeplan.drawing.style import fitted, names_as_text, our_style  # before matplotlib, whose import it guards
from pipeplan.drawing.theme import Theme, theme_named
from pipeplan.drawing.time_axis import draw_time_axis, points_across
from pipeplan.drawing.view import View
from pipeplan.errors import FormatError
from pipeplan.files import replacing

# isort: split


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
        title = fitted(view.title, 1.15 * page.font, points_across(ax))
        ax.set_title(title, loc="left", fontsize=1.15 * page.font, color=colors.text, parse_math=False)
        draw_time_axis(ax, [view], page, colors)
    return ax


def _new_axes(view: View, page: Size, colors: Theme) -> Axes:
    """The axes of a new figure as high as its lanes need."""
    lanes = page.lane_height(len(view.lanes.label)) * len(view.lanes.label)
    height = lanes + 6 * page.font
    figure = Figure((page.width / 72, height / 72), facecolor=colors.page)
    FigureCanvasAgg(figure)
    left = 6.5 * page.font / page.width
    return figure.add_axes((left, 3.5 * page.font / height, 0.98 - left, lanes / height))


def figure_of(views: View | Sequence[View], *, size: SizeName = "page", theme: ThemeName = "light") -> Figure:
    """A page of views on one time axis; the legend stands below.

    One or two stand below each other, each with its memory; more are the rows of a table, with makespan and peak memory.

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
        return drawn_page(chosen, size_named(size), theme_named(theme))


def save_picture(
    views: View | Sequence[View],
    path: str | os.PathLike[str] | BinaryIO,
    *,
    size: SizeName = "page",
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
    InputError
        Where the file cannot be written.
    """
    chosen = _format(path, format)
    save_figure(figure_of(views, size=size, theme=theme), path, format=chosen, dpi=size_named(size).dpi)


def save_figure(
    figure: Figure, path: str | os.PathLike[str] | BinaryIO, *, format: str | None = None, dpi: float | None = None
) -> None:
    """Write a figure, the same bytes for the same figure. Parameters and errors are those of :func:`save_picture`."""
    chosen = _format(path, format)
    file = BytesIO()
    with our_style():
        figure.savefig(
            file,
            format=chosen,
            dpi=figure.dpi if dpi is None else dpi,
            metadata=_METADATA[chosen],
            facecolor=figure.get_facecolor(),
        )
    content = compact(file.getvalue().decode()).encode() if chosen == "svg" else file.getvalue()
    if isinstance(path, str | os.PathLike):
        with replacing(Path(path)) as temporary:
            temporary.write_bytes(content)
    else:
        path.write(content)


def _format(path: str | os.PathLike[str] | BinaryIO, format: str | None) -> str:
    chosen = format or _ending(path)
    if chosen not in FORMATS:
        raise FormatError(f"pictures are written as {', '.join(FORMATS)}, not as '{chosen}'")
    return chosen


def _ending(path: str | os.PathLike[str] | BinaryIO) -> str:
    return PurePath(path).suffix[1:].lower() if isinstance(path, str | os.PathLike) else ""


_DRAWN = re.compile(r'( (?:d|x|y)=")([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_INDENT = re.compile(r"\n +")
_BOX = re.compile(r"M(\S+) ([^ L]+)L([^ L]+) \2L\3 ([^ L]+)L\1 \4z")
_BOX_SHORT = r"M\1 \2H\3V\4H\1z"
"""A rectangle by its corners, and by the lines along its edges."""

_AROUND = re.compile(r"\s*([MLQCz])\s*")


def compact(svg: str) -> str:
    """Return the same drawing with coordinates in hundredths of a point and no blanks around the letters of paths."""
    return _INDENT.sub("\n", _DRAWN.sub(_shorter, svg))


def _shorter(match: re.Match[str]) -> str:
    numbers = _AROUND.sub(r"\1", _LONG.sub(_rounded, match[2]))
    return f'{match[1]}{_BOX.sub(_BOX_SHORT, numbers)}"'


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
