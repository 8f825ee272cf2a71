"""Style of our pictures: matplotlib's defaults and a few settings of ours, independent of the user's own settings.

Captions are wrapped, and labels are shortened to fit their room. Names are plain text: a ``$`` in the name of a schedule
or a file has no special meaning.
"""

from __future__ import annotations

import re
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


def wrapped(text: str, size: float, room: float, *, bold: bool = False) -> list[str]:
    """Return the lines of a text that fit into the room at a font size (in points), as full as possible.

    Lines end at spaces, after hyphens, or within words that are longer than a line. Of a text longer than ``_LONGEST``
    characters the middle is left out. Characters that the font lacks become its replacement character.
    """
    cut = "…" if len(text) > _LONGEST else ""
    half = _LONGEST // 2
    line = drawable(f"{text[:half]}{cut}{text[-half:]}" if cut else text, bold)
    lines: list[str] = []
    for word in re.findall(r"[^ -]+-?|-| +", line):
        if lines and width_of((lines[-1] + word).rstrip(), size, bold) <= room:
            lines[-1] += word
        elif word.strip():
            lines += _broken(word, size, room, bold)
    return [line.strip() for line in lines]


def _broken(word: str, size: float, room: float, bold: bool) -> Iterator[str]:
    """Yield the parts of a word that fit into the room; each has at least one character."""
    start = 0
    for stop in range(1, len(word) + 1):
        if stop > start + 1 and width_of(word[start:stop], size, bold) > room:
            yield word[start : stop - 1]
            start = stop - 1
    yield word[start:]


def drawable(text: str, bold: bool = False) -> str:
    """Return a text in one line, with a replacement for characters that the font lacks."""
    signs = _signs(bold)
    return "".join(sign if ord(sign) in signs else _NO_SIGN for sign in one_line(text))


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """Return a text in one line that fits into the room at a font size (in points), with ``…`` for the omitted middle.

    Characters that the font lacks become its replacement character.
    """
    half = _LONGEST // 2
    looked_at = text if len(text) <= _LONGEST else text[:half] + text[-half:]
    line = drawable(looked_at, bold)
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
