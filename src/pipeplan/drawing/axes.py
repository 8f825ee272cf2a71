"""Around the lanes of a picture: the time axis, the memory of ranks over time, and the legend of the page.

The time axis has one unit for the whole page, and round numbers. The memory has a band of all ranks, curves of selected
ranks, and the limit. The legend has a swatch per kind with all its shades, the meaning of shades, and the reasons for idle
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch
from matplotlib.ticker import Formatter, MaxNLocator

from pipeplan.drawing.labels import times_of
from pipeplan.drawing.sizes import Size
from pipeplan.drawing.style import fitted, wrapped
from pipeplan.drawing.theme import Ramp, Theme, scale_fills, scale_title
from pipeplan.drawing.view import Curves, View
from pipeplan.foundation.readable import Times, size_unit
from pipeplan.model import KIND_WORDS, REASON_WORDS, Floats, Kind, Reason

_MOST_DECIMALS = 6


class TimeTicks(Formatter):
    """Ticks in the unit of some times, all with as many decimals as the finest one needs."""

    def __init__(self, times: Times) -> None:
        super().__init__()
        self.times = times
        self._decimals = times.decimals

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the ticks of one axis."""
        shown = [value * self.times.scale for value in values]
        self._decimals = next((n for n in range(_MOST_DECIMALS) if all(_whole(value, n) for value in shown)), 6)
        return [self(value) for value in values]

    def __call__(self, value: float, pos: float | None = None) -> str:
        """Return one tick."""
        return f"{value * self.times.scale:,.{self._decimals}f}"


def time_label(views: Sequence[View], times: Times) -> str:
    """Return the label of the axis that some views share."""
    if all(view.source == "order" for view in views):
        return "position in the rank's order"
    return f"time ({times.unit})" if times.unit else "time"


def draw_time_axis(ax: Axes, views: Sequence[View], size: Size, theme: Theme) -> None:
    """Set round ticks on the lower axis in the common unit of some views, and its label.

    Raises InputError if the units of their times differ.
    """
    times, font = times_of(views), size.font
    ax.xaxis.set_major_locator(MaxNLocator(8, steps=(1, 2, 2.5, 5, 10)))
    ax.xaxis.set_major_formatter(TimeTicks(times))
    ax.tick_params(axis="x", bottom=True, labelbottom=True, labelsize=0.9 * font, colors=theme.text)
    ax.tick_params(axis="x", length=font / 4, width=0.6)
    label = fitted(time_label(views, times), font, points_across(ax))
    ax.set_xlabel(label, fontsize=font, color=theme.text, labelpad=0.25 * font, parse_math=False)


def points_across(ax: Axes) -> float:
    """Return the width of axes in points."""
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi)


def _whole(value: float, decimals: int) -> bool:
    return abs(round(value, decimals) - value) < 1e-9 * max(abs(value), 1.0)


_TEXT = 0.9
_LINE = 1.4
"""Font size of small text and of the note, relative to that of the page."""

_MOST_STEPS = 1200
"""Maximum number of steps of the band; more would be indistinguishable."""


def draw_memory(view: View, ax: Axes, theme: Theme, size: Size, end: float) -> None:
    """Draw the view's memory from time 0 to ``end``, with its legend above the axes."""
    curves = view.memory
    assert curves is not None
    scale, unit = memory_unit(curves.peak, curves.unit)
    chosen = selected_lanes(curves)
    highest = float(max(curves.peak.max(), 0.0 if curves.limit is None else curves.limit.max())) / scale
    ax.set_xlim(0, end)
    ax.set_ylim(0, 1.12 * highest if highest > 0 else 1)
    if len(chosen) < len(curves.peak):
        times, least, most = band_of(curves, view.makespan)
        ax.fill_between(
            times, least / scale, most / scale, step="post", color=theme.grid, alpha=0.5, lw=0, label="all ranks"
        )
    width = size.font / 7
    for lane, color in zip(chosen, theme.curves, strict=False):
        label = f"{view.lanes.label[lane]}: peak {curves.peak[lane] / scale:.4g}"
        ax.plot(*_steps(curves, lane, view.makespan, scale), color=color, lw=width, label=label)
        if curves.parameters is not None:
            part = replace(curves, level=curves.parameters)
            ax.plot(*_steps(part, lane, view.makespan, scale), color=color, lw=width, ls=":")
    if curves.parameters is not None:
        ax.plot([], [], color=theme.faint, lw=width, ls=":", label="gathered parameters")
    for level, label in _limits(curves, scale, chosen):
        ax.axhline(level, color=theme.limit, lw=width, ls=(0, (5, 2)), label=label)
    _finish(ax, theme, size, unit)


def selected_lanes(curves: Curves) -> list[int]:
    """Return at most four lanes, in order: the first, the last, and those with the most and the least memory."""
    lanes = len(curves.peak)
    return (
        sorted({0, lanes - 1, int(curves.peak.argmax()), int(curves.peak.argmin())}) if lanes > 4 else [*range(lanes)]
    )


def band_of(curves: Curves, end: float) -> tuple[Floats, Floats, Floats]:
    """Return times up to the end, and the minimum and maximum memory of any rank from each time to the next."""
    times = np.unique(curves.time)
    times = times[times < end] if len(times) <= _MOST_STEPS else np.linspace(0.0, end, _MOST_STEPS, endpoint=False)
    least, most = np.full(len(times), np.inf), np.zeros(len(times))
    for lane in range(len(curves.peak)):
        time, level = curves.of(lane)
        at_first = level[np.searchsorted(time, times, "right") - 1]
        column = np.searchsorted(times, time, "right") - 1
        for edge, extreme in ((least, np.minimum), (most, np.maximum)):
            extreme(edge, at_first, out=edge)
            extreme.at(edge, column, level)
    return np.append(times, end), np.append(least, least[-1:]), np.append(most, most[-1:])


def _steps(curves: Curves, lane: int, end: float, scale: float) -> tuple[Floats, Floats]:
    time, level = curves.of(lane)
    corners = np.repeat(np.append(time, end), 2)[1:-1]
    return corners, np.repeat(level, 2) / scale


def _limits(curves: Curves, scale: float, chosen: list[int]) -> Iterator[tuple[float, str]]:
    """Yield levels and labels of limits: one if all ranks have the same, else those of the selected lanes."""
    if curves.limit is None:
        return
    for limit in sorted({float(curves.limit[lane]) for lane in chosen}, reverse=True):
        here = [lane for lane in chosen if curves.limit[lane] == limit]
        of = "" if (curves.limit == limit).all() else f" of rank {', '.join(map(str, here))}"
        yield limit / scale, f"limit{of}: {limit / scale:.4g}"


def memory_unit(peaks: Floats, unit: str) -> tuple[float, str]:
    """Return the divisor for amounts of memory, and the name of the resulting unit."""
    if unit == "activations":
        return 1.0, "activations"
    name, scale = size_unit(float(peaks.max()))
    return scale, name


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
    """Return the height of the legend above the memory, in points."""
    curves = view.memory
    assert curves is not None
    chosen = selected_lanes(curves)
    entries = len(chosen) + sum(1 for _ in _limits(curves, 1.0, chosen)) + (curves.parameters is not None)
    return 1.3 * _TEXT * size.font * -(-entries // _columns(size)) + 0.4 * size.font


def _columns(size: Size) -> int:
    """Return the number of legend entries, of about 18 characters and a line each, side by side."""
    return max(1, int(size.width / (12 * size.font)))


_GREYS = Ramp(0.42, 0.82, 0.0, 0.0)

_NOTE = 1.6
"""Height of the first line of the note below the legend, relative to the font size; further lines are as high as text."""

_SCALE, _SHADES = 5.0, 16
"""Width of swatches in a legend with a scale, relative to the font size; more colors than this are a scale."""

_SWATCH = 3.6
"""Width of a swatch with the space around it, relative to the font size."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One entry of the legend: its colors and its text."""

    fills: tuple[str, ...]
    title: str
    edge: str = "none"


def legend_entries(views: Sequence[View], theme: Theme) -> list[LegendEntry]:
    """Return the entries that the views need, each different swatch once."""
    by_kind = [view for view in views if view.ratios is None]
    shades = max((view.copies * view.chunks for view in by_kind), default=1)
    kinds = sorted({kind for view in by_kind for kind in view.kinds})
    entries = [
        LegendEntry(tuple(dict.fromkeys(theme.shades(kind, shades))), title) for kind, title in _titles(kinds).items()
    ]
    if shades > 1:
        entries.append(LegendEntry(_GREYS.shades(shades), _shades_title(by_kind)))
    scales = dict.fromkeys(scale_title(view.ratios) for view in views if view.ratios is not None)
    entries += [LegendEntry(scale_fills(theme), title) for title in scales]
    reasons = {view.gaps.reasons[code] for view in views if view.gaps for code in np.unique(view.gaps.reason)}
    named = {reason.key: REASON_WORDS[reason] for reason in Reason if reason.key in reasons}
    if not named and any(view.idle_over_total > 0 for view in views):
        entries.append(LegendEntry((theme.lane,), "idle", theme.grid))
    return entries + [LegendEntry((theme.reasons[key],), f"idle: {title}") for key, title in named.items()]


def _titles(kinds: list[Kind]) -> dict[Kind, str]:
    """Return the title of each kind. Kinds with the same color share an entry if both occur."""
    titles = {kind: KIND_WORDS[kind] for kind in kinds}
    for kind, other, verb, both in _SAME_COLOR:
        if kind in titles and other in titles:
            del titles[other]
            titles[kind] = titles[kind].replace(verb, both)
    return titles


_SAME_COLOR = (
    (Kind.SEND_F, Kind.RECV_F, "send", "send, receive"),
    (Kind.SEND_B, Kind.RECV_B, "send", "send, receive"),
    (Kind.UNSHARD, Kind.RESHARD, "unshard", "unshard, reshard"),
)
"""Kinds with the same color, the verb in the title of the first, and the verb for both."""


def _shades_title(views: Sequence[View]) -> str:
    chunks = max(view.chunks for view in views)
    meanings = [f"chunks 0 to {chunks - 1}"] if chunks > 1 else []
    return ", ".join([*meanings, *(["directions 0 and 1"] if any(view.copies > 1 for view in views) else [])])


def legend_rows(entries: Sequence[LegendEntry], size: Size) -> int:
    """Return the number of rows of the legend. It is filled column by column, and the first columns may be longer."""
    more = _SCALE - 2.2 if any(len(entry.fills) > _SHADES for entry in entries) else 0.0
    widths = [(0.59 * len(entry.title) + _SWATCH + more) * size.font for entry in entries]
    for rows in range(1, len(widths)):
        columns = np.array_split(widths, -(-len(widths) // rows))
        if sum(max(column) for column in columns) <= size.width - size.font:
            return rows
    return max(1, len(entries))


def _note_lines(note: str, size: Size) -> list[str]:
    return wrapped(note, _TEXT * size.font, size.width - size.font)


def note_height(note: str, size: Size) -> float:
    """Return the height of a note below the legend in points; 0 for none."""
    lines = len(_note_lines(note, size))
    return (_NOTE + _LINE * _TEXT * (lines - 1)) * size.font if lines else 0.0


def draw_legend(figure: Figure, entries: Sequence[LegendEntry], size: Size, theme: Theme, note: str = "") -> None:
    """Draw the entries along the bottom of a figure, and a note below them."""
    height = figure.get_figheight() * 72
    bottom = note_height(note, size) / height
    if note:
        lines = "\n".join(_note_lines(note, size))
        figure.text(
            0.5,
            0.35 * _NOTE * size.font / height,
            lines,
            ha="center",
            va="bottom",
            fontsize=_TEXT * size.font,
            color=theme.faint,
        )
    handles: list[Any] = [
        tuple(Patch(facecolor=fill, edgecolor=entry.edge, linewidth=0.6) for fill in entry.fills) for entry in entries
    ]
    legend = figure.legend(
        handles,
        [entry.title for entry in entries],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="lower center",
        bbox_to_anchor=(0.5, bottom),
        ncols=max(1, -(-len(entries) // legend_rows(entries, size))),
        frameon=False,
        fontsize=size.font,
        handlelength=_SCALE if any(len(entry.fills) > _SHADES for entry in entries) else 2.2,
        columnspacing=1.2,
        borderaxespad=0.3,
    )
    for text in legend.get_texts():
        text.set_color(theme.text)
