"""A plan as a picture: step time against memory, the step's time by what spends it, each rank's memory by what holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from pipeplan.drawing.style import names_as_text, our_style  # before matplotlib, whose import it guards

# isort: split
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pipeplan.drawing.front import FrontView, draw_front
from pipeplan.drawing.shares import MEMORY_SHARES, TIME_SHARES, Share
from pipeplan.drawing.sizes import Size, SizeName, size_named
from pipeplan.drawing.static import save_figure
from pipeplan.drawing.theme import Theme, ThemeName, theme_named
from pipeplan.drawing.words import fitted

Bars = Sequence[tuple[str, Mapping[str, float]]]
"""A bar each: its label, of one line or two, and how long each of its parts is."""

_MOST_LABELS = 16
"""More bars than this have only some of their labels."""


_NARROW = 60
"""A page that is fewer letters wide than this has its parts below each other."""

_FEWEST = 4
"""Fewer bars than this leave room below them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """What a picture of a plan shows.

    Attributes
    ----------
    title
        Above it all.
    front
        Step time against peak memory; None where nothing fits.
    times
        The configurations to compare, the best first; seconds by the names of ``TIME_SHARES``.
    memory
        The ranks of the best one; GiB by the names of ``MEMORY_SHARES``.
    limit
        Of a GPU; GiB.
    """

    title: str
    front: FrontView | None
    times: Bars
    memory: Bars
    limit: float


def draw_plan(view: PlanView, *, theme: ThemeName = "light", size: SizeName = "slide") -> Figure:
    """A figure of a plan; nothing is shown.

    Raises
    ------
    UnknownNameError
        For an unknown theme or size.
    """
    with names_as_text():
        return _drawn(view, theme_named(theme), size_named(size), theme, size)


def _drawn(view: PlanView, colors: Theme, page: Size, theme: ThemeName, size: SizeName) -> Figure:
    narrow = _narrow(page)
    height = page.height or (1.9 if narrow else 0.62) * page.width
    figure = Figure((page.width / 72, height / 72), dpi=page.dpi, facecolor=colors.page, layout="constrained")
    title = fitted(view.title, 1.15 * page.font, 0.95 * page.width, bold=True)
    figure.suptitle(title, x=0.01, ha="left", fontsize=1.15 * page.font, fontweight="bold", color=colors.text)
    if narrow:
        grid = figure.add_gridspec(3, 1, height_ratios=(1.25, 1.0, 1.0))
        cells = grid[0], grid[1], grid[2]
    else:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.25))
        cells = grid[:, 0], grid[0, 1], grid[1, 1]
    front, times, memory = (figure.add_subplot(cell, facecolor=colors.page) for cell in cells)
    if view.front is None:
        front.set_axis_off()
        front.text(0.5, 0.5, "nothing fits", ha="center", fontsize=page.font, color=colors.text)
    else:
        draw_front(view.front, front, theme=theme, size=size)
    _bars(times, view.times, TIME_SHARES, label="seconds a step", colors=colors, page=page)
    said = f"limit, {view.limit:.1f} GiB"
    memory.axvline(view.limit, color=colors.limit, linewidth=0.15 * page.font, label=said, zorder=3)
    _bars(memory, view.memory, MEMORY_SHARES, label="GiB on each pipeline rank", colors=colors, page=page)
    return figure


def _bars(ax: Axes, bars: Bars, shares: Mapping[str, Share], *, label: str, colors: Theme, page: Size) -> None:
    """Stacked bars, the first on top, with a legend of the parts that any of them has."""
    places = range(len(bars))
    starts = [0.0] * len(bars)
    for key, share in shares.items():
        parts = [held.get(key, 0.0) for _, held in bars]
        if not any(parts):
            continue
        ax.barh(places, parts, left=starts, height=0.78, color=share.colour(colors), label=share.title, zorder=2)
        starts = [start + part for start, part in zip(starts, parts, strict=True)]
    small = (0.7 if _narrow(page) else 0.82) * page.font
    room = (0.26 if _narrow(page) else 0.2) * page.width
    every = -(-len(bars) // _MOST_LABELS)
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
        fontsize=min(small, 0.8 * page.font), frameon=False, labelcolor=colors.text, loc="lower left",
        bbox_to_anchor=(0, 1), ncols=2, borderpad=0, handlelength=1, columnspacing=1,
    )  # fmt: skip


def _narrow(page: Size) -> bool:
    return page.width < _NARROW * page.font


def _label(text: str, size: float, room: float) -> str:
    return "\n".join(fitted(line, size, room) for line in text.split("\n"))


def save_plan(
    view: PlanView,
    file: PurePath | str | BinaryIO,
    *,
    size: SizeName = "slide",
    theme: ThemeName = "light",
    format: str | None = None,
) -> None:
    """Write a picture of a plan, the same bytes for the same view.

    Parameters and errors are those of :func:`~pipeplan.drawing.static.save_picture`.
    """
    with our_style():
        figure = draw_plan(view, theme=theme, size=size)
    save_figure(figure, file, format=format)
