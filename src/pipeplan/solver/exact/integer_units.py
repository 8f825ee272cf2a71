"""Times and sizes as whole numbers, for solvers that know no others.

Numbers that a person wrote down are multiples of a common unit (0.8, 1.2 and 10/3 of 2/15), and counting in it loses
nothing. Measured ones may have no useful common unit; they are then rounded down to a fine one, so that whatever held
for the true numbers (a schedule that long, a set of activations that fits) still holds for the rounded ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

LARGEST = 2**40
"""The total of all numbers in the unit is at most this: exact to 1e-12, and far from overflow in sums of products."""

_LARGEST_DENOMINATOR = 10**6


def common_unit(values: Iterable[float | Fraction], total: float | Fraction) -> Fraction:
    """The largest unit of which all values are multiples, or ``total / LARGEST`` where that one is larger.

    Parameters
    ----------
    values
        Numbers of at least 0, not all 0.
    total
        What they may add up to.
    """
    fractions = [as_fraction(value) for value in values if value > 0]
    denominator = lcm(*(fraction.denominator for fraction in fractions))
    numerator = reduce(gcd, (int(fraction * denominator) for fraction in fractions))
    return max(Fraction(numerator, denominator), Fraction(total) / LARGEST)


def in_units(value: float | Fraction, unit: Fraction) -> int:
    """How many whole units a value has; more only by what a float's last digits can be off."""
    return int(as_fraction(value) / unit)


def as_fraction(value: float | Fraction) -> Fraction:
    """The simplest fraction that is this float: a tenth for 0.1, a third for 1/3; a fraction as it is."""
    if isinstance(value, Fraction):
        return value
    simple = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if float(simple) == value else Fraction(value)
