"""How large a schedule can be, told from its numbers alone, before anything is made of them."""

from __future__ import annotations

from math import log10, prod

from pipeplan.errors import ShapeError

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
