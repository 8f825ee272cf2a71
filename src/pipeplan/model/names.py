"""Names are text: what schedules, files and units are called is shown as it is, in one line, and nothing obeys it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from unicodedata import category, combining, east_asian_width

_INVISIBLE_PARTS = "\u200c\u200d"
"""What holds the parts of some letters and emoji together or apart."""


def one_line(name: str) -> str:
    r"""A name in one line of signs that can be seen; others stand as in Python: a line end as ``\n``.

    So an escape code does nothing to a terminal, and a mark that turns the direction of writing nothing to what follows.
    """
    return name if name.isprintable() else "".join(map(_seen, name))


def _seen(sign: str) -> str:
    if sign.isprintable() or category(sign) == "Zs" or sign in _INVISIBLE_PARTS:
        return sign
    return sign.encode("unicode_escape").decode()


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
