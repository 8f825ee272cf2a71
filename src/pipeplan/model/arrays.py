"""The types of arrays that columns, times and sizes come in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Times or sizes."""

Ints = NDArray[np.int64]
"""Counts or positions, wide enough for any."""

Bools = NDArray[np.bool_]
"""Which of a row are meant."""
