"""Plain-text diagram of a view: one line per rank, colored blocks or letters, within a given width.

There are three scales, of which the finest one that fits is used. *Exact*: if all times are multiples of one unit,
each unit has the same number of cells. *Rounded*: ops start and end at the nearest cell. *Mixed*: if ops are narrower
than two cells, each cell shows the kind in it that is most overdue, so that over several cells every kind has its
true share. A cell is idle only if the rank is idle for most of it. Ranks with overlapped pairs have two lines, the
forward in the upper one. Messages are not shown.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.labels import figures_of, times_of
from pipeplan.drawing.sizes import ThemeName
from pipeplan.drawing.theme import Theme, kind_codes, kind_fill, readable_on, theme_named
from pipeplan.drawing.view import LanePart, View, bar_numbers, busy_until
from pipeplan.model import KIND_WORDS, Floats, Kind, cell_width, shortened, tolerances

_IDLE = -1
_DOT = "\N{MIDDLE DOT}"
_NARROW = 40
_APART = 9
"""Minimum number of cells between two times of the ruler."""

_SHORTEST_TITLE = 8


def text_of(
    view: View, *, width: int = 80, color: bool = False, theme: ThemeName = "light", max_lanes: int = 64
) -> str:
    """Return the view as lines of at most ``width`` characters, without a final newline.

    Parameters
    ----------
    color
        True for blocks in 24-bit ANSI colors, which ``rich.text.Text.from_ansi`` converts for terminals with fewer
        colors; False for letters. In both, ``F3`` starts the forward of microbatch 3; in letters, ``-`` continues it,
        and a dot is idle time.
    max_lanes
        Maximum number of ranks to show; if there are more, the first and the last ones.
    """
    palette = theme_named(theme)
    names = [label if width >= _NARROW else label.split()[-1] for label in view.lanes.label]
    margin = max(len(name) for name in names) + 1
    canvas = _paint(view, max(width - margin, 1))
    lines = [_headline(view, width)]
    for lane, name in enumerate(names):
        if len(names) > max_lanes and lane == max_lanes // 2:
            lines.append(_folded(names, max_lanes, width))
        if len(names) <= max_lanes or min(lane, len(names) - 1 - lane) < max_lanes // 2:
            heads = [name.ljust(margin), " " * margin]
            rows = canvas.rows_of(lane)
            lines += [head + _row(view, palette, *row, color) for head, row in zip(heads, rows, strict=False)]
    lines.append(" " * margin + _ruler(view, canvas.kind.shape[1]))
    return "\n".join([*lines, *_legend(view, palette, width, color)])


def _folded(names: list[str], shown: int, width: int) -> str:
    first, last = shown // 2, len(names) - shown // 2 - 1
    return shortened(f"... {len(names) - 2 * (shown // 2)} more: {names[first]} to {names[last]}", width)


@dataclass(frozen=True, slots=True, eq=False)
class _Canvas:
    """Cells: arrays of shape (rows, columns). ``kind`` is the code ``kind * shades + shade``, -1 for idle time."""

    kind: NDArray[np.int64]
    letter: NDArray[np.str_]
    rows_per_lane: int

    def rows_of(self, lane: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.str_]]]:
        for row in range(lane * self.rows_per_lane, (lane + 1) * self.rows_per_lane):
            yield self.kind[row], self.letter[row]


def _paint(view: View, columns: int) -> _Canvas:
    bars = view.bars
    chosen = np.flatnonzero(bars.compute)
    rows = 2 if bool(np.isin(bars.part, (LanePart.UPPER, LanePart.LOWER)).any()) else 1
    if not len(chosen):
        return _blank(view, rows, columns)
    labels = _labels(view, chosen)
    scale = _exact_scale(view, chosen, labels, columns)
    if scale is None:
        scale = columns / view.makespan
        if float(np.median(bars.end[chosen] - bars.start[chosen])) * scale < 2:
            return _mixed(view, chosen, rows, columns)
    return _place(view, chosen, labels, rows, scale)


def _blank(view: View, rows: int, columns: int) -> _Canvas:
    shape = (rows * len(view.lanes.label), columns)
    return _Canvas(np.full(shape, _IDLE, np.int64), np.full(shape, "."), rows)


def _labels(view: View, chosen: NDArray[np.intp]) -> list[str]:
    names = [kind.name for kind in Kind]
    kinds = view.bars.kind[chosen].tolist()
    numbers = bar_numbers(view.bars, chosen)
    return [f"{names[kind]}{number}" for kind, number in zip(kinds, numbers, strict=True)]


def _exact_scale(view: View, chosen: NDArray[np.intp], labels: list[str], columns: int) -> float | None:
    """Return cells per unit of time if times are multiples of a common unit and fit; enough for the labels, if possible."""
    start, end = view.bars.start[chosen], view.bars.end[chosen]
    unit = _common_unit(start, end)
    if unit is None or view.makespan / unit > columns + 0.5:
        return None
    lengths = np.array([len(label) for label in labels])
    wanted = int(np.ceil(lengths / np.round((end - start) / unit)).max())
    return max(1, min(wanted, int(columns / (view.makespan / unit) + tolerances.WHOLE_NUMBER))) / unit


def _common_unit(start: Floats, end: Floats) -> float | None:
    """Return the shortest op's time, or a half, a third or a quarter of it, if all times are multiples of it, else None."""
    shortest = float((end - start).min())
    times = np.concatenate((start, end))
    for parts in (1, 2, 3, 4):
        multiples = times / (shortest / parts) if shortest > 0 else np.full(1, 0.5)
        if np.abs(multiples - np.round(multiples)).max() < tolerances.WHOLE_NUMBER:
            return shortest / parts
    return None


def _place(view: View, chosen: NDArray[np.intp], labels: list[str], rows: int, scale: float) -> _Canvas:
    """Draw bars from cell to cell, each starting with its label if there is room, else with its letter."""
    bars = view.bars
    canvas = _blank(view, rows, round(view.makespan * scale))
    codes = kind_codes(view)[chosen]
    for line, members in enumerate(_lines(view, chosen, rows)):
        begin, end = _cells(bars.start[chosen[members]] * scale, bars.end[chosen[members]] * scale)
        for first, stop, index in zip(begin.tolist(), end.tolist(), members.tolist(), strict=True):
            canvas.kind[line, first:stop] = codes[index]
            # The second line of a bar of two lines only continues it.
            continues = line % rows and bars.part[chosen[index]] != LanePart.LOWER
            text = "" if continues else labels[index] if len(labels[index]) <= stop - first else labels[index][:1]
            canvas.letter[line, first:stop] = list(text[: stop - first].ljust(stop - first, "-"))
    return canvas


def _cells(start: Floats, end: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first cell of each bar of a line, and the one behind it, for times in cells.

    A gap takes the cells that are idle for more than a half of them; bars with a smaller one between them touch.
    """
    stop = np.floor(end + 0.5).astype(np.int64)
    first = np.ceil(start - 0.5).astype(np.int64)
    touches = np.append(False, start[1:] - end[:-1] <= 0.5) if len(start) else np.zeros(0, np.bool_)
    first[touches] = stop[:-1][touches[1:]]
    first = np.maximum(first, 0)
    return first, np.maximum(stop, first)


def _mixed(view: View, chosen: NDArray[np.intp], rows: int, columns: int) -> _Canvas:
    """Draw cells by shares of time: each shows the kind in it that is most overdue on its line, or idle time if most is."""
    canvas = _blank(view, rows, columns)
    codes, shares = _shares(view, chosen, rows, columns)
    busy = shares.sum(axis=0)
    overdue = np.zeros(shares.shape[:2])
    for column in range(columns):
        lines = np.flatnonzero(busy[:, column] >= 0.5 - tolerances.WHOLE_NUMBER)
        share = shares[:, lines, column]
        overdue[:, lines] += share / busy[lines, column]
        shown = np.where(share > 0, overdue[:, lines], -np.inf).argmax(axis=0)
        overdue[shown, lines] -= 1.0
        canvas.kind[lines, column] = codes[shown]
    names = np.array([kind.name[0] for kind in Kind] + ["."])
    canvas.letter[...] = names[np.where(canvas.kind == _IDLE, len(Kind), canvas.kind // (view.copies * view.chunks))]
    return canvas


def _lines(view: View, chosen: NDArray[np.intp], rows: int) -> Iterator[NDArray[np.intp]]:
    """Yield the indices of the chosen bars on each line of each lane, in order."""
    lanes = len(view.lanes.label)
    absent = [LanePart.LOWER, LanePart.UPPER][:rows]
    bounds = np.searchsorted(view.bars.lane[chosen], np.arange(lanes + 1)).tolist()
    for lane, part in product(range(lanes), absent):
        here = np.arange(bounds[lane], bounds[lane + 1])
        yield here[view.bars.part[chosen[here]] != part]


def _shares(view: View, chosen: NDArray[np.intp], rows: int, columns: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the codes that occur, and their share of each cell, of shape (codes, rows of all lanes, columns)."""
    bars = view.bars
    codes, code = np.unique(kind_codes(view)[chosen], return_inverse=True)
    edges = np.linspace(0.0, view.makespan, columns + 1)
    shares = np.zeros((len(codes), rows * len(view.lanes.label), columns))
    for line, on_line in enumerate(_lines(view, chosen, rows)):
        for index in range(len(codes)):
            members = chosen[on_line[code[on_line] == index]]
            shares[index, line] = _busy(bars.start[members], bars.end[members], edges)
    return codes, shares


def _busy(start: Floats, end: Floats, edges: Floats) -> Floats:
    if not len(start):
        return np.zeros(len(edges) - 1)
    shares: Floats = np.diff(busy_until(start, end, edges)) / (edges[1] - edges[0])
    return shares


def _row(view: View, theme: Theme, kind: NDArray[np.int64], letter: NDArray[np.str_], color: bool) -> str:
    if not color:
        return "".join(letter.tolist())
    pieces = []
    for code, cells in groupby(zip(kind.tolist(), letter.tolist(), strict=True), key=lambda cell: cell[0]):
        text = "".join(" " if cell[1] == "-" else cell[1] for cell in cells)
        pieces.append(_dots(text, theme) if code == _IDLE else _block(text, kind_fill(view, theme, code)))
    return "".join(pieces)


def _dots(text: str, theme: Theme) -> str:
    """Return idle time as faint dots on the terminal's own background."""
    return f"\x1b[38;2;{_numbers(theme.faint)}m{_DOT * len(text)}\x1b[0m"


def _block(text: str, fill: str) -> str:
    return f"\x1b[38;2;{_numbers(readable_on(fill))};48;2;{_numbers(fill)}m{text}\x1b[0m"


def _numbers(color: str) -> str:
    return ";".join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))


def _headline(view: View, width: int) -> str:
    figures = f": {view.source}, {figures_of(view, times_of([view]))}"
    if view.source == "order":
        figures = ": order of ops, without times"
    title = shortened(view.title, max(width - cell_width(figures), _SHORTEST_TITLE))
    return shortened(title + figures, width)


def _ruler(view: View, columns: int) -> str:
    """Return round times, each with a mark before it at its position."""
    if view.makespan <= 0:
        return ""
    times = times_of([view])
    end = view.makespan * times.scale
    step, decimals = _step(end * _APART / columns)
    line = ""
    for place in range(int(end / step) + 1):
        text = f"|{place * step:,.{decimals}f}" + (f" {shortened(times.unit, 12)}" if times.unit and not place else "")
        column = round(place * step / end * columns)
        if column + len(text) <= columns and (not place or column > len(line)):
            line = line.ljust(column) + text
    return line


def _step(least: float) -> tuple[float, int]:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least this, and its decimals."""
    power = math.floor(math.log10(least))
    step = next(digit for digit in (1, 2, 5, 10) if digit * 10.0**power >= least * (1 - tolerances.ROUNDING))
    return step * 10.0**power, max(0, -power if step < 10 else -power - 1)


def _legend(view: View, theme: Theme, width: int, color: bool) -> list[str]:
    kinds = [kind for kind in view.kinds if kind.is_compute]
    if not color:
        return textwrap.wrap("  ".join([*(f"{kind.name} {KIND_WORDS[kind]}" for kind in kinds), ". idle"]), width)
    shades = view.copies * view.chunks
    entries = [(_swatch(theme, kind, shades), shades + 2, KIND_WORDS[kind]) for kind in kinds]
    entries.append((_dots("...", theme), 3, "idle"))
    lines, used = [""], 0
    for swatch, cells, title in entries:
        label = title[: max(width - cells - 1, 0)]
        wide = cells + 1 + len(label)
        if used and used + 2 + wide > width:
            lines, used = [*lines, ""], 0
        lines[-1] += ("  " if used else "") + f"{swatch} {label}"
        used += wide + (2 if used else 0)
    return [line.rstrip() for line in lines]


def _swatch(theme: Theme, kind: Kind, shades: int) -> str:
    fills = theme.shades(kind, shades)
    return (
        _block(" " + kind.name[0], fills[0]) + "".join(_block(" ", fill) for fill in fills[1:]) + _block(" ", fills[-1])
    )
