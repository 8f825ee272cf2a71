"""The trade-off between memory and time as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import PurePath
from typing import BinaryIO

from pipeplan.drawing.style import names_as_text, our_style  # before matplotlib, whose import it guards

# isort: split
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from pipeplan.drawing.sizes import Size, SizeName, size_named
from pipeplan.drawing.static import save_figure
from pipeplan.drawing.theme import Theme, ThemeName, theme_named
from pipeplan.drawing.view import time_text
from pipeplan.drawing.words import fitted, width_of

WIDE = 2.5
"""The ratio of the largest to the least value from which on an axis is logarithmic."""


_AXES = 0.85
"""The share of a page's width that the axes have, about."""


@dataclass(frozen=True, slots=True)
class FrontView:
    """What a picture of a front shows: pairs of (peak memory, time), and published schedules by name beside them.

    Attributes
    ----------
    memory_label, time_label
        Of the axes, with units.
    points
        The front, by memory.
    bounds
        For each point, the lower bound on its time; empty where none is known.
    marks
        Name, peak memory and time of published schedules.
    ours, others
        What the legend calls points and marks.
    """

    title: str
    memory_label: str
    time_label: str
    points: Sequence[tuple[float, float]]
    bounds: Sequence[float]
    marks: Sequence[tuple[str, float, float]]
    ours: str = "search"
    others: str = "published"


def draw_front(
    view: FrontView, ax: Axes | None = None, *, theme: ThemeName = "light", size: SizeName = "slide"
) -> Axes:
    """Draw a front into axes, or into those of a new figure, and return the axes; nothing is shown.

    Raises
    ------
    UnknownNameError
        For an unknown theme or size.
    """
    with names_as_text():
        return _drawn(view, ax, theme_named(theme), size_named(size))


def _drawn(view: FrontView, ax: Axes | None, colors: Theme, page: Size) -> Axes:
    height = page.height or 0.6 * page.width
    if ax is None:
        figure = Figure((page.width / 72, height / 72), dpi=page.dpi, facecolor=colors.page, layout="constrained")
        ax = figure.add_subplot(facecolor=colors.page)
    memory, times = zip(*view.points, strict=True)
    ours = colors.curves[0]
    ax.step(memory, times, where="post", color=ours, linewidth=0.15 * page.font, zorder=2)
    ax.plot(memory, times, "o", color=ours, markersize=0.5 * page.font, label=view.ours, zorder=3)
    if view.bounds:
        ax.plot(memory, view.bounds, "_", color=colors.limit, markersize=0.8 * page.font, label="lower bound", zorder=3)
    if view.marks:
        _, peaks, spent = zip(*view.marks, strict=True)
        ax.plot(peaks, spent, "D", color=colors.curves[1], markersize=0.42 * page.font, label=view.others, zorder=3)
    title = fitted(view.title, 1.15 * page.font, 0.85 * page.width, bold=True)
    ax.set_title(title, loc="left", fontsize=1.15 * page.font, fontweight="bold", color=colors.text, parse_math=False)
    memory_label = fitted(view.memory_label, page.font, 0.85 * page.width)
    ax.set_xlabel(memory_label, fontsize=page.font, color=colors.text, parse_math=False)
    time_label = fitted(view.time_label, page.font, 0.85 * height)
    ax.set_ylabel(time_label, fontsize=page.font, color=colors.text, parse_math=False)
    if _far_apart([*memory, *(peak for _, peak, _ in view.marks)]):
        ax.set_xscale("log")
    if _far_apart([*times, *view.bounds, *(spent for _, _, spent in view.marks)]):
        ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(lambda value, _: time_text(value))
    _name_published(view, ax, colors, page)
    ax.tick_params(which="both", labelsize=0.9 * page.font, colors=colors.text)
    ax.grid(color=colors.grid, linewidth=0.5, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colors.text)
    ax.legend(fontsize=0.9 * page.font, frameon=False, labelcolor=colors.text, loc="best")
    return ax


def _name_published(view: FrontView, ax: Axes, colors: Theme, page: Size) -> None:
    """Names above the marks of published schedules; one that would run into its neighbour's stands higher."""
    size = 0.8 * page.font
    rightmost = max((peak for _, peak, _ in view.marks), default=0.0)
    ax.autoscale_view()
    to_share = ax.transScale + ax.transLimits
    taken = -1.0
    for name, x, y in _labelled(view.marks):
        text = fitted(name, size, 0.3 * page.width)
        width = width_of(text, size) / (_AXES * page.width)
        centered = x < rightmost
        left = float(to_share.transform((x, y))[0]) - (width / 2 if centered else width)
        ax.annotate(
            text,
            (x, y),
            (0, (0.5 if left > taken else 1.4) * page.font),
            textcoords="offset points",
            ha="center" if centered else "right",
            fontsize=size,
            color=colors.text,
        )
        taken = max(taken, left + width)


def _far_apart(values: Sequence[float]) -> bool:
    """Whether equal steps should stand for equal factors, so that small values can be told from each other."""
    return min(values) > 0 and max(values) > WIDE * min(values)


def _labelled(marks: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """The fastest published schedule at each amount of memory: where several share it, their names would not fit.

    A limit in a name (``zbv-heuristic at 8 activations``) is left out, since the axis shows it, and no name is repeated.
    """
    named: dict[str, tuple[str, float, float]] = {}
    peaks = set()
    for name, peak, time in sorted(marks, key=itemgetter(1, 2)):
        short = name.split(" at ")[0]
        if peak not in peaks and short not in named:
            named[short] = short, peak, time
        peaks.add(peak)
    return list(named.values())


def save_front(
    view: FrontView,
    file: PurePath | str | BinaryIO,
    *,
    size: SizeName = "slide",
    theme: ThemeName = "light",
    format: str | None = None,
) -> None:
    """Write a picture of a front, the same bytes for the same view.

    Parameters and errors are those of :func:`~pipeplan.drawing.static.save_picture`.
    """
    with our_style():
        figure = draw_front(view, theme=theme, size=size).figure
    assert isinstance(figure, Figure)
    save_figure(figure, file, format=format)
