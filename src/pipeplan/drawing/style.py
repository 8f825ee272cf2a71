"""The style of our pictures: matplotlib's defaults and a few settings of ours, whatever a reader's own settings are.

Titles and labels are cut to the room that they have, in the letters of our font. Names are text: a ``$`` in the name of a
schedule or a file stands for itself.

Matplotlib reads ``matplotlibrc`` and ``MPLBACKEND`` when it is imported, and may fail or complain there. So what draws with
it imports this module first.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeplan.model import one_line

FONT = "DejaVu Sans"
"""The font that comes with matplotlib: the same bytes everywhere."""

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
"""Beginnings of matplotlib's settings that do not change a picture, or that belong to the process."""


@contextmanager
def our_style() -> Iterator[None]:
    """Within it, figures are made and written in our style."""
    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_NOT_STYLE)}
    with matplotlib.rc_context({**defaults, **_OURS}):
        yield


@contextmanager
def names_as_text() -> Iterator[None]:
    """Within it, new texts have no markup; everything else is as the reader has set it."""
    with matplotlib.rc_context({"text.usetex": False, "text.parse_math": False}):
        yield


@contextmanager
def _unheard() -> Iterator[None]:
    """Without what matplotlib logs about a reader's settings and folders."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _without_the_readers_settings() -> Iterator[None]:
    """Where matplotlib finds its own settings file before any other, and no backend is asked for."""
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        with chdir(Path(spec.origin).parent / "mpl-data"):
            yield
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend


def _import_it() -> None:
    import matplotlib.font_manager  # noqa: F401 - it reads or makes a list of fonts


def _forget_what_was_imported() -> None:
    """After a failure parts are left that a second import would not join again."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        del sys.modules[name]


with _unheard():
    try:
        _import_it()
    except (ValueError, OSError):  # a backend that is none, a settings file that is no text or cannot be read
        _forget_what_was_imported()
        with _without_the_readers_settings():
            _import_it()
    import matplotlib
    from matplotlib.font_manager import FontProperties, fontManager, get_font
    from matplotlib.textpath import text_to_path

_LONGEST = 400
"""Signs of a text, half of them at either end, that are looked at: no page has room for more."""

_NO_SIGN = "\N{REPLACEMENT CHARACTER}"


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """A text in one line, in letters of a size (in points) no wider than the room, with ``…`` for what is left out.

    What the font has no sign for becomes its sign for that.
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
    return frozenset(get_font(fontManager.findfont(_font(10, bold))).get_charmap())
