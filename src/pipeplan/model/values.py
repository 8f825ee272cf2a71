"""Values: array types, ranges of times and sizes, limits on counts, and text from outside.

Text such as the names of schedules, files and units is shown in one line and never executed. Flags must be True or False;
other values are errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import accumulate
from math import log10, prod
from unicodedata import category, combining, east_asian_width

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import CostError, InputError, ShapeError

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

Ints32 = NDArray[np.int32]
"""Columns with a number for each op, of which a schedule has at most two thousand million."""

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


_INVISIBLE_PARTS = "\u200c\u200d"
"""Zero-width joiners, which join or separate the parts of some letters and emoji."""

LONGEST_NAME = 1_000
"""Maximum length of the name of a schedule or a unit, in characters."""

_SHOWN = 60
"""Maximum number of terminal cells in which a message repeats an invalid value."""


def one_line(name: str) -> str:
    r"""Return a name in one line of printable characters; others are escaped as in Python (a line end as ``\n``).

    Escape codes then cannot control a terminal, and bidirectional marks cannot reverse the text that follows.
    """
    return name if name.isprintable() else "".join(map(_escaped, name))


def _escaped(character: str) -> str:
    if character.isprintable() or category(character) == "Zs" or character in _INVISIBLE_PARTS:
        return character
    return character.encode("unicode_escape").decode()


def require_text(text: object, what: str, *, longest: int = LONGEST_NAME, field: str = "") -> None:
    """Check that text from outside can be displayed, stored in a file and sent.

    Unprintable characters are allowed: :func:`one_line` escapes them.

    Parameters
    ----------
    what
        Description for the message, e.g. ``name of the schedule``.
    longest
        Maximum number of characters.
    field
        Name of the setting that the text comes from, for the error.

    Raises
    ------
    InputError
        If it is not text, is too long, or holds a zero byte or a lone surrogate, which no file can store.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {shortened(repr(text), _SHOWN)}", field=field)
    require_short(text, what, longest=longest, field=field)
    wrong = next((character for character in text if character == "\0" or category(character) == "Cs"), None)
    if wrong is not None:
        fault = "a zero byte" if wrong == "\0" else f"an incomplete character (surrogate {_escaped(wrong)})"
        raise InputError(f"{what} contains {fault}: '{shortened(one_line(text), _SHOWN)}'", field=field)


def counted(count: int, noun: str) -> str:
    """Return a count with its regular noun: ``1 chunk``, ``2,048 chunks``, ``8 microbatches``."""
    ending = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def counted_either(counts: Collection[int], noun: str) -> str:
    """Return alternative counts, at least one, with their regular noun: ``1, 2 or 4 slices``."""
    *others, last = sorted(counts)
    return f"{', '.join(f'{count:,}' for count in others)} or {counted(last, noun)}" if others else counted(last, noun)


def cell_width(text: str) -> int:
    """Return the number of terminal cells that a line occupies."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if combining(character) or character in _INVISIBLE_PARTS:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def require_short(text: str, what: str, *, longest: int = LONGEST_NAME, field: str = "") -> None:
    """Check the length of a text. The parameters are those of :func:`require_text`.

    Names of schedules and units need only this check, because file names may contain any character.

    Raises
    ------
    InputError
        If the text is too long; the message has both lengths.
    """
    if len(text) > longest:
        raise InputError(f"{what} has {len(text):,} characters; at most {longest:,} are allowed", field=field)


def shortened(text: str, cells: int) -> str:
    """Return a line in at most this many terminal cells, with ``…`` in place of the middle if it is too long."""
    if cell_width(text) <= cells:
        return text
    if cells < 1:
        return ""
    head, tail = _fitting(text, cells // 2), _fitting(reversed(text), (cells - 1) // 2)
    return text[:head] + "…" + text[len(text) - tail :]


def _fitting(characters: Iterable[str], cells: int) -> int:
    """Return how many of the first characters fit into the cells."""
    return sum(used <= cells for used in accumulate(map(_cells, characters)))


def require_flags(**values: object) -> None:
    """Check that flags, passed by name, are True or False.

    Raises
    ------
    InputError
        If a value is not a bool; the flag is the error's ``field``.
    """
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            shown = shortened(repr(value), _SHOWN)
            raise InputError(f"{name.replace('_', ' ')} must be True or False, not {shown}", field=name)
