"""Picture of a plan: step time against memory, breakdown of the step time, breakdown of each rank's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from pipeplan.drawing.front import FrontView, draw_chart, name_points, settle
from pipeplan.drawing.front_labels import key_height, write_key
from pipeplan.drawing.sizes import Size, SizeName, ThemeName, size_named
from pipeplan.drawing.static import PictureFormat, save_figure
from pipeplan.drawing.style import fitted, names_as_text, our_style, wrapped
from pipeplan.drawing.theme import MEMORY_PARTS, TIME_PARTS, Like, Theme, theme_named

Bars = Sequence[tuple[str, Mapping[str, float]]]
"""Stacked bars: the label of each, of one line or two, and the lengths of its parts."""

_MOST_LABELS = 16
"""Number of bars above which only some have labels."""


_NARROW = 60
"""Width in characters below which a page has its parts below each other."""

_KEY = 0.78
"""Font size of the key, relative to that of the page."""

_AROUND = 4.0
"""Height of the axis and the legend around bars, relative to that of a bar."""

_FEWEST = 4
"""Minimum number of bars for which there is room; fewer leave space below them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """Content of a plan's picture.

    Attributes
    ----------
    title
        Title above the picture, one or several lines.
    front
        Step time against peak memory; None if no configuration fits.
    times
        Configurations to compare, the best first; seconds by the names of ``TIME_PARTS``.
    memory
        Ranks of the best configuration; GiB by the names of ``MEMORY_PARTS``.
    time_titles, memory_titles
        Titles of the parts in a legend, by the same names.
    limit
        Memory limit of a GPU in GiB.
    """

    title: str
    front: FrontView | None
    times: Bars
    memory: Bars
    time_titles: Mapping[str, str]
    memory_titles: Mapping[str, str]
    limit: float


def draw_plan(view: PlanView, *, theme: ThemeName = "light", size: SizeName = "page") -> Figure:
    """Return a figure of a plan; nothing is shown. Raises UnknownNameError if the theme or size is unknown."""
    with names_as_text():
        return _drawn(view, theme_named(theme), size_named(size))


def _drawn(view: PlanView, colors: Theme, page: Size) -> Figure:
    narrow, key = _narrow(page), view.front.key if view.front is not None else ()
    columns, below = key_height(key, page.width - 2 * page.font, _KEY * page.font) if key else (1, 0.0)
    height = page.whole(page.height or (1.9 if narrow else 0.62) * page.width + below)
    layout = ConstrainedLayoutEngine(rect=(0, below / height, 1, 1 - below / height))
    figure = Figure((page.width / 72, height / 72), dpi=page.dpi, facecolor=colors.page, layout=layout)
    size, room = 1.15 * page.font, 0.95 * page.width
    title = "\n".join(line for text in view.title.split("\n") for line in wrapped(text, size, room, bold=True))
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=1.15 * page.font, fontweight="bold", color=colors.text)
    bars = _room(view.times), _room(view.memory)
    if narrow:
        grid = figure.add_gridspec(3, 1, height_ratios=(1.25 * sum(bars) / 2, *bars))
        cells = grid[0], grid[1], grid[2]
    else:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.15), height_ratios=bars)
        cells = grid[:, 0], grid[0, 1], grid[1, 1]
    front, times, memory = (figure.add_subplot(cell, facecolor=colors.page) for cell in cells)
    if view.front is None:
        front.set_axis_off()
        front.text(0.5, 0.5, "no configuration fits", ha="center", fontsize=page.font, color=colors.text)
    else:
        draw_chart(view.front, front, colors, page)
    _bars(times, view.times, TIME_PARTS, view.time_titles, label="seconds per step", colors=colors, page=page)
    label = f"limit, {view.limit:.1f} GiB"
    memory.axvline(view.limit, color=colors.limit, linewidth=0.15 * page.font, label=label, zorder=3)
    _bars(
        memory,
        view.memory,
        MEMORY_PARTS,
        view.memory_titles,
        label="GiB on each pipeline rank",
        colors=colors,
        page=page,
        least=view.limit,
    )
    settle(figure)
    if view.front is not None:
        name_points(view.front, front, colors, page, whole=False)
        side = 0.6 * page.font / page.width
        ax = figure.add_axes((side, 0, 1 - 2 * side, below / height)) if key else None
        if ax is not None:
            ax.set_axis_off()
            write_key(ax, key, colors, _KEY * page.font, columns)
    return figure


def _room(bars: Bars) -> float:
    return _AROUND + min(max(len(bars), 1), _MOST_LABELS)


def _bars(
    ax: Axes,
    bars: Bars,
    parts: Mapping[str, Like],
    titles: Mapping[str, str],
    *,
    label: str,
    colors: Theme,
    page: Size,
    least: float = 0.0,
) -> None:
    """Draw stacked bars, the first at the top, with a legend of all parts that occur; the axis includes ``least``."""
    places = range(len(bars))
    starts = [0.0] * len(bars)
    for key, like in parts.items():
        lengths = [held.get(key, 0.0) for _, held in bars]
        if not any(lengths):
            continue
        ax.barh(places, lengths, left=starts, height=0.78, color=colors.part(like), label=titles[key], zorder=2)
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    small = (0.7 if _narrow(page) else 0.82) * page.font
    every = -(-len(bars) // _MOST_LABELS)
    for place in places[::every]:
        ax.annotate(
            f"{starts[place]:,.4g}",
            (starts[place], place),
            (0.4 * small, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=small,
            color=colors.text,
            zorder=4,
        )
    ax.set_xlim(0, 1.1 * max([*starts, least]))
    room = (0.26 if _narrow(page) else 0.2) * page.width
    labelled = places[::every]
    ax.set_yticks(labelled, [_label(bars[place][0], small, room) for place in labelled])
    ax.set_ylim(max(len(bars), _FEWEST) - 0.5, -0.5)
    ax.set_xlabel(label, fontsize=page.font, color=colors.text)
    ax.tick_params(labelsize=small, colors=colors.text)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.grid(axis="x", color=colors.grid, linewidth=0.5, zorder=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(colors.text)
    ax.legend(
        fontsize=min(small, 0.8 * page.font),
        frameon=False,
        labelcolor=colors.text,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        borderpad=0,
        handlelength=1,
        columnspacing=1,
    )


def _narrow(page: Size) -> bool:
    return page.width < _NARROW * page.font


def _label(text: str, size: float, room: float) -> str:
    return "\n".join(fitted(line, size, room) for line in text.split("\n"))


def save_plan(
    view: PlanView,
    file: BinaryIO,
    *,
    format: PictureFormat,
    size: SizeName = "page",
    theme: ThemeName = "light",
    plain: bool = False,
) -> None:
    """Write a picture of a plan, without title if it is ``plain``; equal views give equal bytes."""
    if plain:
        view = replace(view, title="", front=None if view.front is None else replace(view.front, title="", about=""))
    with our_style():
        figure = draw_plan(view, theme=theme, size=size)
    save_figure(figure, file, format=format)
