"""Which times and sizes can be computed with: those whose sums and ratios are numbers again."""

from __future__ import annotations

import numpy as np

from pipeplan.errors import CostError
from pipeplan.model.arrays import Floats

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
