"""The style of our pictures: matplotlib's defaults and a few settings of ours, whatever a reader's own settings are.

Names are text: a ``$`` in the name of a schedule or a file stands for itself, and whatever would break a line or reverse its
direction is shown as a replacement mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LONGEST_NAME = 120
"""Characters of a title beyond which its middle is left out: no page is wider."""

_OURS: dict[str, Any] = {
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

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories of controls, marks of direction, halves of characters, and ends of lines and paragraphs."""


@contextmanager
def our_style(font: str) -> Iterator[None]:
    """Within it, figures are made and written in our style and this font family."""
    import matplotlib

    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_NOT_STYLE)}
    with matplotlib.rc_context({**defaults, **_OURS, "font.family": font}):
        yield


@contextmanager
def names_as_text() -> Iterator[None]:
    """Within it, new texts have no markup; everything else is as the reader has set it."""
    import matplotlib

    with matplotlib.rc_context({"text.usetex": False, "text.parse_math": False}):
        yield


def plain(name: str, most: int = LONGEST_NAME) -> str:
    """A name on one line of at most ``most`` characters; controls, line ends and direction marks are replaced by a mark."""
    if len(name) > most:
        half = (most - 3) // 2
        name = f"{name[:half]}...{name[-half:]}"
    return "".join("\ufffd" if unicodedata.category(letter) in _UNSEEN else letter for letter in name)
