"""By how much numbers that are the same on paper may differ here: every tolerance, with its reason.

All but one are shares of the larger number, so that they hold in any unit. A float keeps 16 digits; a sum of a million
terms of one sign loses about half of a million times the last one, in the worst case, and far less in practice.
"""

from __future__ import annotations

ROUNDING = 1e-9
"""Two sums of the same times, taken in another order, differ by less; what differs by more is meant to."""

MEASURED = 0.1
"""Part of the shorter of two measured ops in which both may run: kernels end while the next op's begin on another stream."""

MEMORY = 1e-9
"""By how much what a rank holds may pass its limit: a sum of fractions that often meets it exactly, and is rounded."""

SEARCHED_MEMORY = 0.5 * MEMORY
"""The same inside of the search, which adds in another order than the checker: what passes here passes there."""

LAST_DIGITS = 1e-12
"""Two numbers of a few terms each (a B and its I + W) differ by less when they are meant to be the same."""

DRAWN = 1e-6
"""Lengths in a picture are sums and products of times and sizes; bars of one length differ by less."""

WHOLE_NUMBER = 1e-6
"""Absolute: a float that counts something (a solver's bound, cells of a picture) is the whole number that is this near."""
