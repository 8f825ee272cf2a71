"""The words of a picture: names, figures and shape above it, and the labels that fit into its bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.view import Bars, LanePart, View, bar_names, bar_numbers
from pipeplan.errors import InputError
from pipeplan.model import Floats, tolerances
from pipeplan.readable import Times, percent

SEPARATOR = " \N{MIDDLE DOT} "


def times_of(views: Sequence[View]) -> Times:
    """Return the form in which the times of some views are written.

    Raises
    ------
    InputError
        For views whose times are in different units.
    """
    units = sorted({view.unit for view in views if view.source != "order"} - {""})
    if len(units) > 1:
        raise InputError(f"times in {' and '.join(units)} cannot share an axis")
    return Times.of([view.makespan for view in views], units[0] if units else "")


def figures_of(view: View, times: Times) -> str:
    """Makespan and idle time; empty for an order, which has no times."""
    if view.source == "order":
        return ""
    return f"makespan {times.text(view.makespan)}, idle {percent(view.idle_over_total)}"


def about(view: View) -> str:
    """Shape, costs, and whether times were simulated or measured."""
    return SEPARATOR.join(part for part in (view.shape, view.costs, _source(view)) if part)


def about_all(views: Sequence[View]) -> str:
    """Return the facts that :func:`about` gives of every view; empty where no fact holds of all."""
    facts = [about(view).split(SEPARATOR) for view in views]
    shapes = [parts[0].split(", ") for parts in facts]
    shape = [word for word in shapes[0] if all(word in others for others in shapes)]
    rest = [part for part in facts[0][1:] if all(part in others for others in facts)]
    return SEPARATOR.join(part for part in (", ".join(shape), *rest) if part)


def _source(view: View) -> str:
    return "order of ops, without times" if view.source == "order" else view.source


Namer = Callable[[Bars, NDArray[np.intp]], list[str]]

_ADVANCE = {"F": 0.575, "B": 0.686, "I": 0.295, "W": 0.989, "R": 0.695, ".": 0.318}
"""Widths of DejaVu Sans' letters in its own size; digits all have one width."""

_DIGIT = 0.636
_SPACE: dict[Namer, float] = {bar_names: 0.35, bar_numbers: 0.12}
"""The space on both sides of a label together, in its own size."""

_WORTHWHILE = 0.25
"""The least share of bars that must have room for a label; a few labels here and there say nothing."""

_NEARLY_ALL = 0.9
"""The share of a stage's ops of a kind that must have room for their label; else none of them has one."""

_TALL = 0.74
"""The largest share of a bar's height that the size of its label may take; digits fill 0.73 of their size."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of one size (in points): ``text[i]`` stands in the middle of bar ``bars[i]``."""

    bars: NDArray[np.intp]
    text: tuple[str, ...]
    size: float


def fit_labels(
    bars: Bars, points_per_time: float, lane_height: float, largest: float, smallest: float
) -> tuple[Labels, ...]:
    """The labels that fit when a unit of time and a bar of a whole lane measure so many points.

    Ops are named in full (``3F7``) where nearly all have room for it in a comfortable size, else by their microbatch: of
    the ops of one kind and stage, all or none. No label is smaller than ``smallest``. Whole bars and the halves of
    overlapped pairs have a size each.
    """
    halves = (bars.part == LanePart.UPPER) | (bars.part == LanePart.LOWER)
    width = (bars.end - bars.start) * points_per_time
    groups: list[_Sized] = []
    for chosen, height in ((bars.part == LanePart.FULL, lane_height), (halves, lane_height / 2)):
        largest_here = min(largest, _TALL * height)
        if chosen.any() and largest_here >= smallest:
            groups.append(_Sized(np.flatnonzero(chosen), width[chosen], largest_here, smallest))
    full = [sized.fit(bars, bar_names) for sized in groups]
    if not all(size >= max(smallest, 0.8 * sized.largest) for (_, size), sized in zip(full, groups, strict=True)):
        full = [sized.fit(bars, bar_numbers) for sized in groups]
    return tuple(labels for labels, _ in full if labels is not None)


def text_widths(texts: Sequence[str]) -> Floats:
    """How wide texts are, in their own size; shape (texts,)."""
    return np.array([sum(_ADVANCE.get(letter, _DIGIT) for letter in text) for text in texts])


@dataclass(frozen=True, slots=True, eq=False)
class _Sized:
    """Bars of one height with their widths in points, and the sizes that their labels may have."""

    bars: NDArray[np.intp]
    width: Floats
    largest: float
    smallest: float

    def fit(self, bars: Bars, namer: Namer) -> tuple[Labels | None, float]:
        """The labels, None where too few fit, and the largest size at which nine in ten would fit."""
        if (self.width >= _DIGIT * self.smallest).mean() < _WORTHWHILE:
            return None, 0.0
        names = namer(bars, self.bars)
        needed = text_widths(names) + _SPACE[namer]
        common = float(np.quantile(self.width / needed, 0.1))
        chosen = self._of_whole_stages(bars, needed)
        if chosen.mean() < _WORTHWHILE:
            return None, common
        size = min(max(self._size(bars, chosen, needed), self.smallest), self.largest)
        fits = np.flatnonzero(chosen & (needed * size <= self.width * (1 + tolerances.DRAWN)))
        text = tuple(names[place] for place in fits.tolist())
        return Labels(self.bars[fits], text, size), common

    def _of_whole_stages(self, bars: Bars, needed: Floats) -> NDArray[np.bool_]:
        """The bars of which nearly all of the same kind and stage have room for a label, the long labels too."""
        group = self._groups(bars)
        alike = _numbered(group, needed)
        room = needed * self.smallest <= self.width * (1 + tolerances.DRAWN)
        enough = np.bincount(alike, room) >= _NEARLY_ALL * np.bincount(alike)
        without = np.bincount(group, ~enough[alike])
        chosen: NDArray[np.bool_] = without[group] == 0
        return chosen

    def _size(self, bars: Bars, chosen: NDArray[np.bool_], needed: Floats) -> float:
        """The largest size at which nearly all labels of the chosen bars fit, of each kind, stage and length."""
        group, sizes = _numbered(self._groups(bars)[chosen], needed[chosen]), (self.width / needed)[chosen]
        order = np.lexsort((sizes, group))
        counts = np.bincount(group)
        first = np.cumsum(counts) - counts
        left_out = np.floor((1 - _NEARLY_ALL) * counts + tolerances.DRAWN).astype(np.intp)
        return float(sizes[order][first + left_out].min())

    def _groups(self, bars: Bars) -> NDArray[np.intp]:
        return _numbered(bars.kind[self.bars], bars.stage[self.bars])


def _numbered(*keys: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers from 0 for all that have equal keys."""
    _, number = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    return np.asarray(number, dtype=np.intp).ravel()
