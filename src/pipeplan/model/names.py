"""Checks and formatting of text from outside, such as the names of schedules, files and units.

Such text is shown in one line and never executed. Flags must be True or False; other values are errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import accumulate
from unicodedata import category, combining, east_asian_width

import numpy as np

from pipeplan.foundation.errors import InputError

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
