"""Which bars get a label, what it says and how large it is, so that every label fits its box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.view import Bars, Part, bar_names, bar_numbers
from pipeplan.model import Floats, tolerances

Namer = Callable[[Bars, NDArray[np.intp]], list[str]]

_ADVANCE = {"F": 0.575, "B": 0.686, "I": 0.295, "W": 0.989, "R": 0.695, ".": 0.318}
"""Widths of DejaVu Sans' letters in its own size; digits all have one width."""

_DIGIT = 0.636
_SPACE: dict[Namer, float] = {bar_names: 0.35, bar_numbers: 0.12}
"""The space on both sides of a label together, in its own size."""

_WORTHWHILE = 0.25
"""The least share of bars that must have room for a label; a few labels here and there say nothing."""

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

    Ops are named in full (``3F7``) where nearly all have room for it in a comfortable size, else by their microbatch. A
    label that would have to be smaller than ``smallest`` is left out. Whole bars and the halves of overlapped pairs have a
    size each.
    """
    halves = (bars.part == Part.UPPER) | (bars.part == Part.LOWER)
    width = (bars.end - bars.start) * points_per_time
    found: list[_Sized] = []
    for chosen, height in ((bars.part == Part.FULL, lane_height), (halves, lane_height / 2)):
        largest_here = min(largest, _TALL * height)
        if chosen.any() and largest_here >= smallest:
            found.append(_Sized(np.flatnonzero(chosen), width[chosen], largest_here, smallest))
    full = [sized.fit(bars, bar_names) for sized in found]
    if not all(size >= max(smallest, 0.8 * sized.largest) for (_, size), sized in zip(full, found, strict=True)):
        full = [sized.fit(bars, bar_numbers) for sized in found]
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
        roomy = self.width >= _DIGIT * self.smallest
        if roomy.mean() < _WORTHWHILE:
            return None, 0.0
        chosen, width = self.bars[roomy], self.width[roomy]
        names = namer(bars, chosen)
        needed = text_widths(names) + _SPACE[namer]
        common = float(np.quantile(width / needed, 0.1))
        size = min(max(common, self.smallest), self.largest)
        fits = needed * size <= width * (1 + tolerances.DRAWN)
        if fits.sum() < _WORTHWHILE * len(self.bars):
            return None, common
        text = tuple(name for name, fit in zip(names, fits.tolist(), strict=True) if fit)
        return Labels(chosen[fits], text, size), common
