"""Texts of a picture: names, figures and shape above it, and the labels that fit into its bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.view import Bars, LanePart, View, bar_names, bar_numbers
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.readable import Times, percent
from pipeplan.model import Floats, tolerances

SEPARATOR = " \N{MIDDLE DOT} "


def times_of(views: Sequence[View]) -> Times:
    """Return the common format of the times of some views. Raises InputError if the units of their times differ."""
    units = sorted({view.unit for view in views if view.source != "order"} - {""})
    if len(units) > 1:
        raise InputError(f"views with times in {' and '.join(units)} cannot share an axis")
    return Times.of([view.makespan for view in views], units[0] if units else "")


def figures_of(view: View, times: Times) -> str:
    """Return makespan and bubble as text; empty for an order, which has no times."""
    if view.source == "order":
        return ""
    return f"makespan {times.text(view.makespan)}, bubble {percent(view.idle_over_total)}"


def about(view: View) -> str:
    """Return shape, costs, and whether times were simulated or measured."""
    return SEPARATOR.join(part for part in (view.shape, view.costs, _source(view)) if part)


def about_all(views: Sequence[View]) -> str:
    """Return the facts of :func:`about` that all views share; may be empty."""
    facts = [about(view).split(SEPARATOR) for view in views]
    shapes = [parts[0].split(", ") for parts in facts]
    shape = [word for word in shapes[0] if all(word in others for others in shapes)]
    rest = [part for part in facts[0][1:] if all(part in others for others in facts)]
    return SEPARATOR.join(part for part in (", ".join(shape), *rest) if part)


def _source(view: View) -> str:
    return "order of ops, without times" if view.source == "order" else view.source


Namer = Callable[[Bars, NDArray[np.intp]], list[str]]

_ADVANCE = {"F": 0.575, "B": 0.686, "I": 0.295, "W": 0.989, "R": 0.695, ".": 0.318}
"""Widths of DejaVu Sans' characters relative to the font size; all digits have one width."""

_DIGIT = 0.636
_SPACE: dict[Namer, float] = {bar_names: 0.35, bar_numbers: 0.12}
"""Total space on both sides of a label, relative to the font size."""

_WORTHWHILE = 0.25
"""Minimum share of bars with room for a label; otherwise there are no labels."""

_NEARLY_ALL = 0.9
"""Minimum share of a stage's ops of one kind with room for a label; otherwise none of them has one."""

_TALL = 0.74
"""Maximum font size of a label relative to the height of its bar; digits are 0.73 of the font size high."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of one font size (in points): ``text[i]`` is in the center of bar ``bars[i]``."""

    bars: NDArray[np.intp]
    text: tuple[str, ...]
    size: float


def fit_labels(
    bars: Bars, points_per_time: float, lane_height: float, largest: float, smallest: float
) -> tuple[Labels, ...]:
    """Return the labels that fit for a scale in points per unit of time and a lane height in points.

    Ops have their full names (``3F7``) if nearly all of them have room for it in a comfortable size, else their
    microbatch. Of the ops of one kind and stage, all or none have labels. No label is smaller than ``smallest``. Whole
    bars and halves of overlapped pairs have separate sizes.
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
    """Return the widths of texts relative to the font size, shape (texts,)."""
    return np.array([sum(_ADVANCE.get(letter, _DIGIT) for letter in text) for text in texts])


@dataclass(frozen=True, slots=True, eq=False)
class _Sized:
    """Bars of one height with their widths in points, and the range of font sizes of their labels."""

    bars: NDArray[np.intp]
    width: Floats
    largest: float
    smallest: float

    def fit(self, bars: Bars, namer: Namer) -> tuple[Labels | None, float]:
        """Return the labels (None if too few fit), and the largest size at which nine in ten would fit."""
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
        """Return a mask of the bars of a kind and stage for which nearly all labels fit, including the long ones."""
        group = self._groups(bars)
        alike = _numbered(group, needed)
        room = needed * self.smallest <= self.width * (1 + tolerances.DRAWN)
        enough = np.bincount(alike, room) >= _NEARLY_ALL * np.bincount(alike)
        without = np.bincount(group, ~enough[alike])
        chosen: NDArray[np.bool_] = without[group] == 0
        return chosen

    def _size(self, bars: Bars, chosen: NDArray[np.bool_], needed: Floats) -> float:
        """Return the largest size at which nearly all labels of the chosen bars fit, for each kind, stage and length."""
        group, sizes = _numbered(self._groups(bars)[chosen], needed[chosen]), (self.width / needed)[chosen]
        order = np.lexsort((sizes, group))
        counts = np.bincount(group)
        first = np.cumsum(counts) - counts
        left_out = np.floor((1 - _NEARLY_ALL) * counts + tolerances.DRAWN).astype(np.intp)
        return float(sizes[order][first + left_out].min())

    def _groups(self, bars: Bars) -> NDArray[np.intp]:
        return _numbered(bars.kind[self.bars], bars.stage[self.bars])


def _numbered(*keys: NDArray[Any]) -> NDArray[np.intp]:
    """Return an index from 0 for each distinct combination of keys."""
    _, number = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    return np.asarray(number, dtype=np.intp).ravel()
