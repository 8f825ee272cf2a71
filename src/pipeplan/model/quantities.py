"""Which numbers a schedule can be computed with: types of arrays, ranges of times and sizes, counts, units of time."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10, prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import CostError, ShapeError

LARGEST = 1e100
"""A float holds the sum of more such numbers than any schedule has ops, in whatever unit it is then written."""

SMALLEST = 1e-100
"""Of what others are divided by: a float then holds the ratio too."""


def require_range(name: str, values: Floats | float, *, divides: bool = False, field: str = "") -> None:
    """Check that no value, all of them finite and at least 0, is beyond ``LARGEST``; an array has one for each stage.

    Parameters
    ----------
    divides
        Whether others are divided by them: then they are 0, or at least ``SMALLEST``.
    field
        The setting that they come from, for the error.

    Raises
    ------
    CostError
        For one that is; the message has the name.
    """
    sizes = np.atleast_1d(values)
    small = (sizes > 0) & (sizes < SMALLEST) if divides else np.zeros(sizes.shape, np.bool_)
    wrong = np.flatnonzero((sizes > LARGEST) | small)
    if wrong.size:
        stage = int(wrong[0])
        place = f" of stage {stage}" if np.ndim(values) else ""
        fault, unit = ("small", "smaller") if small[stage] else ("large", "larger")
        raise CostError(
            f"{name}{place}: {sizes[stage]:g} is too {fault} to compute with; choose a {unit} unit", field=field
        )


Floats = NDArray[np.float64]
"""Times or sizes."""

Ints = NDArray[np.int64]
"""Counts or positions, wide enough for any."""

Bools = NDArray[np.bool_]
"""Which of a row are meant."""


MOST_FORWARDS = 20_000_000
"""Forwards of the largest schedule: more than any training run has. They are up to 60 million ops, and about 6 GB."""

MOST_RANKS = 2**16
"""Ranks of a pipeline: a hundred times those of the longest that trains anything, each with Python's work for its row."""

MOST_SLICES = 2**15
"""Slices of a sequence: as many as their column of ops can number."""

MOST_COPIES = 64
"""Copies of the model that ranks hold together."""


def require_size(**counts: int) -> None:
    """Refuse what is too large to be made, and counts of less than one.

    Parameters
    ----------
    **counts
        Ranks, stages, chunks, microbatches, slices: whatever multiplies to the forwards of a schedule, or of a part of it.

    Raises
    ------
    ShapeError
        With the counts, their product and what it may be.
    """
    for name, count in counts.items():
        if count < 1:
            raise ShapeError(f"{name} must be at least 1, not {in_digits(count)}", field=name)
    for name, most in (("ranks", MOST_RANKS), ("slices", MOST_SLICES)):
        if counts.get(name, 1) > most:
            raise ShapeError(f"{name} must be at most {most:,}, not {in_digits(counts[name], ',')}", field=name)
    forwards = prod(counts.values())
    if forwards > MOST_FORWARDS:
        factors = " x ".join(f"{in_digits(count)} {name}" for name, count in counts.items() if count > 1)
        raise ShapeError(
            f"{factors} need {in_digits(forwards, ',')} forwards; at most {MOST_FORWARDS:,} can be scheduled",
            field=max(counts, key=lambda name: counts[name]),
        )


def in_digits(count: int, form: str = "") -> str:
    """A whole number for a message, formatted; only how long it is where nobody would read it."""
    if abs(count) < 10**18:
        return format(count, form)
    return f"about {'-' * (count < 0)}10^{round((count.bit_length() - 1) * log10(2))}"


TIME_UNITS: Mapping[str, float] = MappingProxyType({"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0})
"""How many of each make a second: whole numbers, whose ratios are exact."""


def units_in(unit: str, other: str) -> float:
    """How many of ``other`` a ``unit`` is; both are of ``TIME_UNITS``."""
    return TIME_UNITS[other] / TIME_UNITS[unit]
