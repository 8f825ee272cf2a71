"""Array types, ranges of times and sizes, limits on counts, and units of time."""

from __future__ import annotations

from math import log10, prod

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import CostError, ShapeError

LARGEST = 1e100
"""Largest time or size. A float holds the sum of more such numbers than any schedule has ops, in any unit."""

SMALLEST = 1e-100
"""Smallest positive divisor; its ratio to ``LARGEST`` still fits into a float."""


def require_range(name: str, values: Floats | float, *, divides: bool = False, field: str = "") -> None:
    """Check that no value exceeds ``LARGEST``. Values are finite and at least 0; an array has one per stage.

    Parameters
    ----------
    divides
        True if other values are divided by these: then each is 0 or at least ``SMALLEST``.
    field
        Name of the setting that the values come from, for the error.

    Raises
    ------
    CostError
        If a value is out of range; the message starts with ``name``.
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
"""Mask of selected items."""


MOST_FORWARDS = 20_000_000
"""Maximum number of forwards in a schedule. That is up to 60 million ops and about 6 GB, more than any training step has."""

MOST_RANKS = 2**16
"""Maximum number of pipeline ranks, about a hundred times those of the longest pipelines in use."""

MOST_SLICES = 2**15
"""Maximum number of sequence slices per microbatch, the range of their int16 column."""

MOST_COPIES = 64
"""Maximum number of model copies in a placement."""


def require_size(**counts: int) -> None:
    """Check that counts are at least 1 and that a schedule of this size can be made.

    Parameters
    ----------
    **counts
        Ranks, stages, chunks, microbatches, slices: the factors of the number of forwards in a schedule or a part of it.

    Raises
    ------
    ShapeError
        If a count or the product is out of range; the message has the counts, the product and the maximum.
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
    """Return an integer formatted for a message; beyond 18 digits only its order of magnitude."""
    if abs(count) < 10**18:
        return format(count, form)
    return f"about {'-' * (count < 0)}10^{round((count.bit_length() - 1) * log10(2))}"
