"""Cases on which a search once was wrong, each with its least objective in the unit of its times."""

from fractions import Fraction
from typing import Any

from tests.extensions.search.case import Case, numbers

_LINEAR: dict[str, Any] = {"placement": "linear", "rank_of": (0, 1)}

KNOWN: dict[str, tuple[Case, Fraction]] = {
    "W frees more than F takes, and full backwards fit": (
        Case(
            **_LINEAR,
            microbatches=5,
            forward=numbers(2, 2),
            backward=numbers(3, 3),
            inputs=numbers(1, 1),
            weights=numbers(2, 2),
            activation=numbers(2, 2),
            kept=numbers(3, 3),
            limits=numbers(4, 4),
            in_activations=False,
        ),
        Fraction(28),
    ),
    "no half backward fits, and 1f1b does": (
        Case(
            **_LINEAR,
            microbatches=3,
            forward=numbers(1, 1),
            backward=numbers(2, 2),
            inputs=numbers(1, 1),
            weights=numbers(1, 1),
            activation=numbers(1, 1),
            kept=numbers(4, 4),
            limits=numbers(2, 2),
        ),
        Fraction(12),
    ),
    "full backwards are faster than halves": (
        Case(
            **_LINEAR,
            microbatches=5,
            forward=numbers(1, 1),
            backward=numbers("1.2", "1.2"),
            inputs=numbers(1, 1),
            weights=numbers(1, 1),
        ),
        Fraction(13),
    ),
    "overlaps gain, and W frees more than F takes": (
        Case(
            placement="v",
            rank_of=(0, 1, 1, 0),
            microbatches=3,
            forward=numbers(1, 1, 1, 1),
            backward=numbers(1, 1, 1, 1),
            inputs=numbers("0.5", "0.5", "0.5", "0.5"),
            weights=numbers("0.5", "0.5", "0.5", "0.5"),
            activation=numbers("0.5", "0.5", "0.5", "0.5"),
            kept=numbers(1, 1, 1, 1),
            limits=numbers(2, 2),
            overlap=numbers(1, 1, 1, 1),
        ),
        Fraction(12),
    ),
    "the solver's presolve called the optimum infeasible": (
        Case(
            placement="loop",
            rank_of=(0, 1, 0, 1, 0, 1),
            microbatches=2,
            forward=numbers(*["0.5"] * 6),
            backward=numbers(*["1"] * 6),
            inputs=numbers(*["0.5"] * 6),
            weights=numbers(*["0.5"] * 6),
            transfer=Fraction(1, 5),
            activation=numbers(*["1"] * 6),
            kept=numbers(*["3"] * 6),
            limits=numbers("5/3", "5/3"),
        ),
        Fraction(27, 2),
    ),
}

OVERTAKING = Case(
    placement="loop",
    rank_of=(0, 1, 0, 1),
    microbatches=2,
    forward=numbers(2, "0.5", "2.5", "1.5"),
    backward=numbers(1, "3.5", 4, "5.5"),
    inputs=numbers("0.5", 3, "1.5", 3),
    weights=numbers("0.5", "0.5", "2.5", "2.5"),
    transfer=Fraction(1, 4),
    objective="span",
)
"""The least span is 24.5; with the microbatches in order on every stage it is 25.5."""
