"""Numerical tolerances of the package, each with its reason.

All but one are relative to the larger number, so that they hold in any unit. A float has 16 digits. A sum of a million
terms of one sign loses at most about half a million units in the last place, and far less in practice.
"""

from __future__ import annotations

ROUNDING = 1e-9
"""Two sums of the same times in different orders differ by less than this; a larger difference is real."""

MEASURED = 0.1
"""Part of the shorter of two measured ops that may overlap: kernels end while the next op's begin on another stream."""

MEMORY = 1e-9
"""Tolerance for a memory limit, which a sum of rounded fractions often meets exactly."""

SEARCHED_MEMORY = 5e-10
"""Tolerance for a memory limit inside the search. It adds in another order than the checker, so it must be stricter."""

LAST_DIGITS = 1e-12
"""Two numbers of a few terms each, such as B and I + W, differ by less when they are meant to be equal."""

DRAWN = 1e-6
"""Lengths in a picture are sums and products of times and sizes; bars of equal length differ by less than this."""

WHOLE_NUMBER = 1e-6
"""Absolute tolerance: a float that counts something (a solver's bound, cells) is the nearest integer within this."""
