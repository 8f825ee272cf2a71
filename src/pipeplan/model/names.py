"""Names are text: what schedules, files and units are called is shown as it is, in one line, and nothing obeys it.

Flags are True or False, and nothing that merely counts as one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from unicodedata import category, combining, east_asian_width

import numpy as np

from pipeplan.errors import InputError

_INVISIBLE_PARTS = "\u200c\u200d"
"""What holds the parts of some letters and emoji together or apart."""

LONGEST_NAME = 1_000
"""Letters of what a schedule or a unit is called: more than anybody reads."""

_SHOWN = 60
"""Cells of what a message repeats of a text that is wrong."""


def one_line(name: str) -> str:
    r"""A name in one line of signs that can be seen; others stand as in Python: a line end as ``\n``.

    So an escape code does nothing to a terminal, and a mark that turns the direction of writing nothing to what follows.
    """
    return name if name.isprintable() else "".join(map(_seen, name))


def _seen(sign: str) -> str:
    if sign.isprintable() or category(sign) == "Zs" or sign in _INVISIBLE_PARTS:
        return sign
    return sign.encode("unicode_escape").decode()


def require_text(text: object, what: str, *, longest: int = LONGEST_NAME, field: str = "") -> None:
    """Check that a name or another text from outside is one that can be shown, kept in a file and sent.

    Signs that nobody sees are no fault: :func:`one_line` shows them.

    Parameters
    ----------
    what
        What it is, for the message: ``name of the schedule``.
    longest
        The most letters.
    field
        The setting that it comes from, for the error.

    Raises
    ------
    InputError
        For what is no text, is longer, or holds a zero byte or half a letter (a lone surrogate), which no file can.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {shortened(repr(text), _SHOWN)}", field=field)
    require_short(text, what, longest=longest, field=field)
    wrong = next((sign for sign in text if sign == "\0" or category(sign) == "Cs"), None)
    if wrong is not None:
        fault = "a zero byte" if wrong == "\0" else f"half a letter, {_seen(wrong)}"
        raise InputError(f"{what} holds {fault}: '{shortened(one_line(text), _SHOWN)}'", field=field)


def counted(count: int, noun: str) -> str:
    """So many of something with a regular plural: ``1 chunk``, ``2,048 chunks``, ``8 microbatches``."""
    ending = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def cell_width(text: str) -> int:
    """How many cells of a terminal a line takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(sign: str) -> int:
    if combining(sign) or sign in _INVISIBLE_PARTS:
        return 0
    return 2 if east_asian_width(sign) in "WF" else 1


def require_short(text: str, what: str, *, longest: int = LONGEST_NAME, field: str = "") -> None:
    """Check that a text is no longer than anybody reads. Parameters are those of :func:`require_text`.

    It is all that is asked of what schedules and units are called: what cannot be written stands in files' names, too.

    Raises
    ------
    InputError
        With both lengths.
    """
    if len(text) > longest:
        raise InputError(f"{what} has {len(text):,} letters; it can have {longest:,}", field=field)


def shortened(text: str, cells: int) -> str:
    """A line in so many cells of a terminal, with ``…`` for what is left out of its middle."""
    if cell_width(text) <= cells:
        return text
    if cells < 1:
        return ""
    head, tail = _fitting(text, cells // 2), _fitting(reversed(text), (cells - 1) // 2)
    return text[:head] + "…" + text[len(text) - tail :]


def _fitting(signs: Iterable[str], cells: int) -> int:
    """How many of the first signs have room."""
    return sum(used <= cells for used in accumulate(map(_cells, signs)))


def require_flags(**values: object) -> None:
    """Check flags by their names, before any work is done: a text, a list or an array is none.

    Raises
    ------
    InputError
        For what is neither True nor False; the flag is its ``field``.
    """
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            shown = shortened(repr(value), _SHOWN)
            raise InputError(f"{name.replace('_', ' ')} must be True or False, not {shown}", field=name)
