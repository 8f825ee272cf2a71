"""Smaller SVG: matplotlib writes a line a corner and six decimals, of which two are seen."""

from __future__ import annotations

import re

_DRAWN = re.compile(r'( (?:d|x|y)=")([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_INDENT = re.compile(r"\n +")
_BOX = re.compile(r"M(\S+) ([^ L]+)L([^ L]+) \2L\3 ([^ L]+)L\1 \4z")
_BOX_SHORT = r"M\1 \2H\3V\4H\1z"
"""A rectangle by its corners, and by the lines along its edges."""

_AROUND = re.compile(r"\s*([MLQCz])\s*")


def compact(svg: str) -> str:
    """The same drawing with coordinates in hundredths of a point and no blanks around the letters of paths."""
    return _INDENT.sub("\n", _DRAWN.sub(_shorter, svg))


def _shorter(found: re.Match[str]) -> str:
    """One attribute with its coordinates."""
    numbers = _AROUND.sub(r"\1", _LONG.sub(_rounded, found[2]))
    return f'{found[1]}{_BOX.sub(_BOX_SHORT, numbers)}"'


def _rounded(found: re.Match[str]) -> str:
    text = f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
