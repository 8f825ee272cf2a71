"""Style of our pictures: matplotlib's defaults and a few settings of ours, independent of the user's own settings.

Titles and labels are shortened to fit their room. Names are plain text: a ``$`` in the name of a schedule or a file has
no special meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.textpath import text_to_path

from pipeplan.model import one_line

FONT = "DejaVu Sans"
"""Font that is part of matplotlib, so that pictures have the same bytes everywhere."""

_OURS: dict[str, Any] = {
    "font.family": FONT,
    "text.usetex": False,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "pipeplan",
    "pdf.fonttype": 42,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
    "path.simplify": True,
}

_NOT_STYLE = ("backend", "interactive", "toolbar", "timezone", "date.", "docstring.", "tk.", "webagg.", "keymap.")
"""Prefixes of matplotlib's settings that do not change a picture, or that belong to the process."""


@contextmanager
def our_style() -> Iterator[None]:
    """Make and write figures in our style within this context."""
    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_NOT_STYLE)}
    with matplotlib.rc_context({**defaults, **_OURS}):
        yield


@contextmanager
def names_as_text() -> Iterator[None]:
    """Create texts without markup within this context; other settings are the user's."""
    with matplotlib.rc_context({"text.usetex": False, "text.parse_math": False}):
        yield


_LONGEST = 400
"""Number of characters of a text to measure, half of them at either end; no page has room for more."""

_NO_SIGN = "\N{REPLACEMENT CHARACTER}"


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """Return a text in one line that fits into the room at a font size (in points), with ``…`` for the omitted middle.

    Characters that the font lacks become its replacement character.
    """
    signs = _signs(bold)
    half = _LONGEST // 2
    looked_at = text if len(text) <= _LONGEST else text[:half] + text[-half:]
    line = "".join(sign if ord(sign) in signs else _NO_SIGN for sign in one_line(looked_at))
    if looked_at == text and width_of(line, size, bold) <= room:
        return line
    fewest, most = 0, len(line)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        fits = width_of(_ends(line, middle), size, bold) <= room
        fewest, most = (middle, most) if fits else (fewest, middle - 1)
    return _ends(line, fewest)


def _ends(line: str, kept: int) -> str:
    """Return this many characters of a line, from its start and from its end."""
    return line[: kept - kept // 2] + "…" + line[len(line) - kept // 2 :]


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text at a font size, in points."""
    width: float = text_to_path.get_text_width_height_descent(text, _font(size, bold), ismath=False)[0]
    return width


def _font(size: float, bold: bool) -> FontProperties:
    return FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")


@cache
def _signs(bold: bool) -> frozenset[int]:
    return frozenset(get_font(fontManager.findfont(_font(10, bold))).get_charmap())
