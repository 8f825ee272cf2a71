"""Picture of a Pareto front of memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from pipeplan.drawing.axes import TimeTicks
from pipeplan.drawing.front_labels import (
    Key,
    Point,
    Room,
    counted_names,
    cut_above,
    key_of,
    mark_cut,
    write_key,
    write_labels,
)
from pipeplan.drawing.sizes import Size, SizeName, ThemeName, size_named
from pipeplan.drawing.static import PictureFormat, save_figure
from pipeplan.drawing.style import fitted, names_as_text, our_style, wrapped
from pipeplan.drawing.theme import Theme, theme_named
from pipeplan.foundation.readable import Times

WIDE = 2.5
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""

_SMALL = 0.85
"""Font size of names and ticks, relative to that of the page."""

FAR_LIMIT = 1.5
"""Ratio of a memory limit to the largest peak above which the limit is not shown."""

_NARROW = 60
"""Width in characters below which a page has its key below the chart."""


@dataclass(frozen=True, slots=True)
class FrontView:
    """Data for the chart of a Pareto front: (peak memory, time) pairs, and other schedules by name.

    Attributes
    ----------
    memory_label, time_label
        Labels of the axes; that of memory includes its unit.
    points
        The front, by memory.
    bounds
        Lower bound on the time of each point; may be empty.
    marks
        Name, peak memory and time of other schedules.
    ours, others
        Legend entries of points and marks.
    names
        Names of the points; default their times.
    key
        Meaning of names that are only numbers or letters; drawn in a plan's picture.
    unit
        Unit of the times; may be empty.
    about
        Text below the title: shape and costs.
    band, band_title
        Time up to which points are alike, from that of the fastest point on, and its legend entry; None: no band.
    limit
        Memory limit, and its legend entry; None: no line.
    """

    title: str
    memory_label: str
    time_label: str
    points: Sequence[tuple[float, float]]
    bounds: Sequence[float]
    marks: Sequence[tuple[str, float, float]]
    ours: str = "search"
    others: str = "published"
    names: Sequence[str] = ()
    key: Sequence[tuple[str, str]] = ()
    unit: str = ""
    about: str = ""
    band: float | None = None
    band_title: str = ""
    limit: tuple[float, str] | None = None


def draw_front(view: FrontView, *, theme: ThemeName = "light", size: SizeName = "page") -> Axes:
    """Draw a front, and return its axes in a new figure; nothing is shown.

    Every point has its name next to it. If there is no room, points have numbers, and the names are in a key next to the
    axes.

    Raises UnknownNameError if the theme or size is unknown.
    """
    colors, page = theme_named(theme), size_named(size)
    with names_as_text():
        for key in (None, key_of(view.marks, named_points(view))):
            chart, beside = _figure(page, colors, keyed=key is not None)
            draw_chart(view, chart, colors, page)
            settle(chart.figure)
            if name_points(view, chart, colors, page, key):
                break
        if key is not None and beside is not None:
            write_key(beside, key.entries, colors, _SMALL * page.font)
        return chart


def _figure(page: Size, colors: Theme, *, keyed: bool) -> tuple[Axes, Axes | None]:
    """Return the axes of a new figure, and axes for a key next to them, or below them on a narrow page."""
    narrow = page.width < _NARROW * page.font
    height = page.height or page.whole((1.3 if narrow and keyed else 0.75 if narrow else 0.58) * page.width)
    figure = Figure((page.width / 72, height / 72), dpi=page.dpi, facecolor=colors.page, layout="constrained")
    if not keyed:
        return figure.add_subplot(facecolor=colors.page), None
    grid = (
        figure.add_gridspec(2, 1, height_ratios=(1, 0.7))
        if narrow
        else figure.add_gridspec(1, 2, width_ratios=(1, 0.42))
    )
    beside = figure.add_subplot(grid[1])
    beside.set_axis_off()
    return figure.add_subplot(grid[0], facecolor=colors.page), beside


def settle(figure: Figure | SubFigure) -> None:
    """Compute the final positions of all axes."""
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def draw_chart(view: FrontView, ax: Axes, colors: Theme, page: Size) -> None:
    """Draw a front without its names: axes, points, bounds, legend."""
    memory, spent = zip(*view.points, strict=True)
    ours = colors.curves[0]
    ax.step(memory, spent, where="post", color=ours, linewidth=0.15 * page.font, zorder=2)
    ax.plot(memory, spent, "o", color=ours, markersize=0.5 * page.font, label=view.ours, zorder=3)
    if view.bounds:
        ax.vlines(memory, view.bounds, spent, color=colors.limit, linewidth=0.5, alpha=0.6, zorder=2)
        ax.plot(memory, view.bounds, "_", color=colors.limit, markersize=0.8 * page.font, label="lower bound", zorder=3)
    if view.marks:
        _, peaks, taken = zip(*view.marks, strict=True)
        ax.plot(peaks, taken, "D", color=colors.curves[1], markersize=0.42 * page.font, label=view.others, zorder=3)
    if view.band is not None:
        ax.axhspan(min(spent), view.band, color=ours, alpha=0.13, linewidth=0, label=view.band_title, zorder=1)
    held = [*memory, *(peak for _, peak, _ in view.marks)]
    if view.limit is not None and view.limit[0] <= FAR_LIMIT * max(held):
        ax.axvline(view.limit[0], color=colors.limit, linewidth=0.15 * page.font, label=view.limit[1], zorder=2)
        held.append(view.limit[0])
    _write_around(view, ax, colors, page)
    across = Values(held)
    upwards = Values([*spent, *(time for *_, time in view.marks)], view.bounds, view.unit)
    _scale(ax, across, colors, page, upper=False)
    _scale(ax, upwards, colors, page, upper=True)
    ax.tick_params(which="both", labelsize=_SMALL * page.font, colors=colors.text, length=0.3 * page.font)
    ax.grid(color=colors.grid, linewidth=0.5, alpha=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(colors.text)


@dataclass(frozen=True, slots=True)
class Values:
    """Values on an axis; ``below`` are bounds, which do not exceed all others."""

    shown: Sequence[float]
    below: Sequence[float] = ()
    unit: str = ""


def _write_around(view: FrontView, ax: Axes, colors: Theme, page: Size) -> None:
    """Write the title, the labels of the axes, and the legend between title and chart."""
    times = Times.of([spent for _, spent in view.points], view.unit)
    room, font = 0.6 * page.width, page.font
    time_label = f"{view.time_label} ({times.unit})" if times.unit else view.time_label
    ax.set_xlabel(fitted(view.memory_label, font, room), fontsize=font, color=colors.text, parse_math=False)
    ax.set_ylabel(fitted(time_label, font, 0.4 * page.width), fontsize=font, color=colors.text, parse_math=False)
    about = wrapped(view.about, 0.9 * font, 0.85 * page.width)
    lines = 1.7 + 1.3 * (len(about) - 1) if about else 0.0
    ax.set_title(
        "\n".join(wrapped(view.title, 1.15 * font, 0.85 * page.width, bold=True)),
        loc="left",
        fontsize=1.15 * font,
        fontweight="bold",
        color=colors.text,
        parse_math=False,
        pad=(2.1 + lines + (1.4 if view.limit is not None else 0.0)) * font,
    )
    if about:
        ax.annotate(
            "\n".join(about),
            (0, 1),
            (0, 2.3 * font),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=0.9 * font,
            color=colors.faint,
            parse_math=False,
        )
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2 if view.limit is not None else 3,
        fontsize=_SMALL * font,
        frameon=False,
        borderpad=0.3,
        labelcolor=colors.text,
        handletextpad=0.3,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def _scale(ax: Axes, values: Values, colors: Theme, page: Size, *, upper: bool) -> None:
    """Set limits and ticks of an axis: truncated if a few values are far off, logarithmic if values differ widely."""
    cut, times = cut_above(values.shown), Times.of(values.shown, values.unit)
    least, most = min([*values.shown, *values.below]), max(values.shown) if cut is None else cut
    axis, limit, scale = (ax.yaxis, ax.set_ylim, ax.set_yscale) if upper else (ax.xaxis, ax.set_xlim, ax.set_xscale)
    if least > 0 and most > WIDE * least:
        scale("log")
        room = (most / least) ** 0.07
        limit(least / room, most * room)
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(lambda value, _: f"{value * times.scale:,.4g}")
    else:
        room = 0.07 * (most - least) or 0.5 * most or 1.0
        limit(least - room, most + (1.6 * room if cut is not None else room))
        axis.set_major_locator(MaxNLocator(8, steps=(1, 2, 2.5, 5, 10)))
        axis.set_major_formatter(TimeTicks(times))
    if cut is not None:
        mark_cut(ax, colors.text, page.font, upper=upper)


def named_points(view: FrontView) -> list[tuple[str, float, float]]:
    """Return the points with their names."""
    times = Times.of([spent for _, spent in view.points], view.unit)
    names = view.names or [times.number(spent) for _, spent in view.points]
    return [(name, *point) for name, point in zip(names, view.points, strict=True)]


def name_points(
    view: FrontView, ax: Axes, colors: Theme, page: Size, key: Key | None = None, *, whole: bool = True
) -> bool:
    """Write a name next to every point and mark, in axes of final size; with a key, its numbers.

    Return True if there was room for all. If not, write those that fit if there is a key or ``whole`` is False, else
    nothing.
    """
    size = _SMALL * page.font
    ours = named_points(view)
    everything = [(x, y) for _, x, y in [*ours, *view.marks]]
    bounds = [(x, bound) for (x, _), bound in zip(view.points, view.bounds, strict=False)]
    stems = [(point, bound) for point, bound in zip(view.points, bounds, strict=False)]
    limits = (
        [] if view.limit is None else [((view.limit[0], low), (view.limit[0], high)) for low, high in [ax.get_ylim()]]
    )
    room = Room(ax, [*everything, *bounds], [*_steps(view.points), *stems, *limits], size)
    wanted = key.labels if key is not None else _by_place([*ours, *view.marks])
    labels = [room.label(_beyond(text, point, ax, view), point) for text, point in wanted]
    placed = [label for label in labels if label is not None]
    if len(placed) < len(labels) and key is None and whole:
        return False
    write_labels(ax, placed, size, colors.text, colors.faint)
    _mark_beyond(ax, everything, colors, page)
    return len(placed) == len(labels)


def _steps(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    pairs = list(pairwise(points))
    across = [(one, (other[0], one[1])) for one, other in pairs]
    return [*across, *(((other[0], one[1]), other) for one, other in pairs)]


def _by_place(named: Sequence[tuple[str, float, float]]) -> list[tuple[str, Point]]:
    """Return one label per place, with the names of all schedules there."""
    places: dict[Point, list[str]] = {}
    for name, x, y in named:
        places.setdefault((x, y), []).append(name)
    return [(", ".join(counted_names(names)), place) for place, names in places.items()]


def _beyond(text: str, point: Point, ax: Axes, view: FrontView) -> str:
    """Return a label, with the value of a point beyond the end of an axis."""
    x, y = point
    if y > ax.get_ylim()[1]:
        value = Times.of([y], view.unit).text(y)
        return f"{value} \N{UPWARDS ARROW}" if text in value else f"{text}: {value} \N{UPWARDS ARROW}"
    return f"{text}: {x:,.4g} \N{RIGHTWARDS ARROW}" if x > ax.get_xlim()[1] else text


def _mark_beyond(ax: Axes, points: Sequence[Point], colors: Theme, page: Size) -> None:
    right, high = ax.get_xlim()[1], ax.get_ylim()[1]
    for x, y in points:
        if x > right or y > high:
            ax.plot(
                min(x, right),
                min(y, high),
                "^" if y > high else ">",
                color=colors.text,
                markersize=0.6 * page.font,
                clip_on=False,
                zorder=4,
            )


def save_front(
    view: FrontView,
    file: BinaryIO,
    *,
    format: PictureFormat,
    size: SizeName = "page",
    theme: ThemeName = "light",
    plain: bool = False,
) -> None:
    """Write a picture of a front, without title if it is ``plain``; equal views give equal bytes."""
    if plain:
        view = replace(view, title="", about="")
    with our_style():
        figure = draw_front(view, theme=theme, size=size).figure
    assert isinstance(figure, Figure)
    save_figure(figure, file, format=format)
