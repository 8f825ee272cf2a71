"""Legend of a page: a swatch per kind with all its shades, the meaning of shades, and the reasons for idle time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch

from pipeplan.drawing.sizes import Size
from pipeplan.drawing.style import fitted
from pipeplan.drawing.theme import Ramp, Theme, scale_fills, scale_title
from pipeplan.drawing.view import View
from pipeplan.model import KIND_WORDS, REASON_WORDS, Kind, Reason

_GREYS = Ramp(0.42, 0.82, 0.0, 0.0)

NOTE = 1.6
"""Height of the note below the legend, relative to the font size."""

_SMALL = 0.9
"""Font size of the note, relative to that of the page."""

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
    entries = [LegendEntry(_distinct(theme.shades(kind, shades)), title) for kind, title in _titles(kinds).items()]
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


def _distinct(fills: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fills))


def _shades_title(views: Sequence[View]) -> str:
    chunks = max(view.chunks for view in views)
    meanings = [f"chunks 0 to {chunks - 1}"] if chunks > 1 else []
    return ", ".join([*meanings, *(["directions 0 and 1"] if any(view.copies > 1 for view in views) else [])])


def legend_rows(entries: Sequence[LegendEntry], size: Size) -> int:
    """Return the number of rows of the legend. It is filled column by column, and the first columns may be longer."""
    more = _SCALE - 2.2 if any(len(entry.fills) > _SHADES for entry in entries) else 0.0
    widths = [(0.59 * len(entry.title) + _SWATCH + more) * size.font for entry in entries]
    for rows in range(1, len(widths)):
        columns = np.array_split(widths, _columns(len(widths), rows))
        if sum(max(column) for column in columns) <= size.width - size.font:
            return rows
    return max(1, len(entries))


def _columns(entries: int, rows: int) -> int:
    return math.ceil(entries / rows)


def draw_legend(figure: Figure, entries: Sequence[LegendEntry], size: Size, theme: Theme, note: str = "") -> None:
    """Draw the entries along the bottom of a figure, and a note below them."""
    bottom = NOTE * size.font / (figure.get_figheight() * 72) if note else 0.0
    if note:
        line = fitted(note, _SMALL * size.font, size.width - size.font)
        figure.text(0.5, 0.35 * bottom, line, ha="center", fontsize=_SMALL * size.font, color=theme.faint)
    handles: list[Any] = [
        tuple(Patch(facecolor=fill, edgecolor=entry.edge, linewidth=0.6) for fill in entry.fills) for entry in entries
    ]
    legend = figure.legend(
        handles,
        [entry.title for entry in entries],
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        loc="lower center",
        bbox_to_anchor=(0.5, bottom),
        ncols=max(1, _columns(len(entries), legend_rows(entries, size))),
        frameon=False,
        fontsize=size.font,
        handlelength=_SCALE if any(len(entry.fills) > _SHADES for entry in entries) else 2.2,
        columnspacing=1.2,
        borderaxespad=0.3,
    )
    for text in legend.get_texts():
        text.set_color(theme.text)
