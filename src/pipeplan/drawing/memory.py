"""Draws the memory below a view's lanes: a step curve per rank, those that matter in colour, and the limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from pipeplan.drawing.sizes import Size
from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import Curves, View
from pipeplan.model import Floats

_TEXT = 0.9
"""Size of the small text, in that of the page's."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def draw_memory(view: View, ax: Axes, theme: Theme, size: Size, end: float) -> None:
    """Draw the view's memory from time 0 to ``end``; its legend stands above the axes."""
    curves = view.memory
    assert curves is not None
    scale, unit = _unit(curves)
    chosen = lanes_that_matter(curves)
    highest = float(max(curves.peak.max(), 0.0 if curves.limit is None else curves.limit.max())) / scale
    ax.set_xlim(0, end)
    ax.set_ylim(0, 1.12 * highest if highest > 0 else 1)
    others = [lane for lane in range(len(curves.peak)) if lane not in chosen]
    steps = [np.stack(_steps(curves, lane, view.makespan, scale), axis=1) for lane in others]
    ax.add_collection(LineCollection(steps, colors=theme.grid, linewidths=0.5), autolim=False)
    width = size.font / 7
    for lane, color in zip(chosen, theme.curves, strict=False):
        label = f"{view.lanes.label[lane]}: peak {curves.peak[lane] / scale:.4g}"
        ax.plot(*_steps(curves, lane, view.makespan, scale), color=color, lw=width, label=label)
    for level, label in _limits(curves, scale, chosen):
        ax.axhline(level, color=theme.limit, lw=width, ls=(0, (5, 2)), label=label)
    _finish(ax, theme, size, unit)


def lanes_that_matter(curves: Curves) -> list[int]:
    """At most four lanes, in order: the first, the last, and those that hold the most and the least."""
    lanes = len(curves.peak)
    return (
        sorted({0, lanes - 1, int(curves.peak.argmax()), int(curves.peak.argmin())}) if lanes > 4 else [*range(lanes)]
    )


def _steps(curves: Curves, lane: int, end: float, scale: float) -> tuple[Floats, Floats]:
    """The corners of a lane's curve, up to the end."""
    time, level = curves.of(lane)
    corners = np.repeat(np.append(time, end), 2)[1:-1]
    return corners, np.repeat(level, 2) / scale


def _limits(curves: Curves, scale: float, chosen: list[int]) -> Iterator[tuple[float, str]]:
    """The limit, once where all ranks have the same, else those of the lanes in colour: level and label."""
    if curves.limit is None:
        return
    for limit in sorted({float(curves.limit[lane]) for lane in chosen}, reverse=True):
        here = [lane for lane in chosen if curves.limit[lane] == limit]
        of = "" if (curves.limit == limit).all() else f" of rank {', '.join(map(str, here))}"
        yield limit / scale, f"limit{of}: {limit / scale:.4g}"


def _unit(curves: Curves) -> tuple[float, str]:
    """What to divide by, and the name of what is left."""
    if curves.unit == "activations":
        return 1.0, "activations"
    power = min(max(int(np.log2(max(curves.peak.max(), 1.0))) // 10, 0), len(_BINARY) - 1)
    return float(1024**power), _BINARY[power]


def _finish(ax: Axes, theme: Theme, size: Size, unit: str) -> None:
    ax.set_facecolor(theme.page)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(theme.grid)
    ax.set_ylabel(unit, color=theme.text, fontsize=size.font)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.tick_params(colors=theme.text, labelsize=_TEXT * size.font, width=0.6, length=size.font / 4)
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=_columns(size),
        borderaxespad=0,
        borderpad=0.2,
        frameon=False,
        fontsize=_TEXT * size.font,
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.2,
    )
    for text in legend.get_texts():
        text.set_color(theme.text)


def legend_height(view: View, size: Size) -> float:
    """The height of the legend above the memory, in points."""
    curves = view.memory
    assert curves is not None
    chosen = lanes_that_matter(curves)
    entries = len(chosen) + sum(1 for _ in _limits(curves, 1.0, chosen))
    return 1.3 * _TEXT * size.font * -(-entries // _columns(size)) + 0.4 * size.font


def _columns(size: Size) -> int:
    """How many entries, of about 18 letters and a line each, stand side by side."""
    return max(1, int(size.width / (12 * size.font)))
