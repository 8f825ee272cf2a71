"""Titles and labels in the letters of our font, no wider than there is room for."""

from __future__ import annotations

from functools import cache

from pipeplan.drawing.style import FONT  # before matplotlib, whose import it guards

# isort: split
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.textpath import text_to_path

from pipeplan.model import one_line

_LONGEST = 400
"""Signs of a text, half of them at either end, that are looked at: no page has room for more."""

_NO_SIGN = "\N{REPLACEMENT CHARACTER}"


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """A text in one line, in letters of a size (in points) no wider than the room, with ``…`` for what is left out.

    What the font has no sign for becomes its sign for that.
    """
    known = _signs(bold)
    half = _LONGEST // 2
    looked_at = text if len(text) <= _LONGEST else text[:half] + text[-half:]
    line = "".join(sign if ord(sign) in known else _NO_SIGN for sign in one_line(looked_at))
    if looked_at == text and width_of(line, size, bold) <= room:
        return line
    fewest, most = 0, len(line)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        fits = width_of(_ends(line, middle), size, bold) <= room
        fewest, most = (middle, most) if fits else (fewest, middle - 1)
    return _ends(line, fewest)


def _ends(line: str, kept: int) -> str:
    """So many signs of a line, from its beginning and from its end."""
    return line[: kept - kept // 2] + "…" + line[len(line) - kept // 2 :]


def width_of(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is in letters of a size, in points."""
    width: float = text_to_path.get_text_width_height_descent(text, _font(size, bold), ismath=False)[0]
    return width


def _font(size: float, bold: bool) -> FontProperties:
    return FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")


@cache
def _signs(bold: bool) -> frozenset[int]:
    """The numbers of the signs that the font has."""
    return frozenset(get_font(fontManager.findfont(_font(10, bold))).get_charmap())
