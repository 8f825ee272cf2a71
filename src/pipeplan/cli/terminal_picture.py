"""The picture in the terminal, below the table."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pipeplan.api import Look
from pipeplan.drawing import View, text_of

NARROWEST = 40
"""Columns of a terminal below which a picture shows nothing."""

MOST_LANES = 16
"""Ranks of one picture; of more, the first and the last ones are shown."""


def show_in_terminal(views: Iterable[View], look: Look) -> None:
    """Draw views on stdout if it is a terminal: the first, and as many more as fit on the screen with it."""
    if not sys.stdout.isatty():
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if console.width < NARROWEST:
        return
    colored = console.color_system is not None and not console.no_color
    used = 0
    for view in views:
        picture = text_of(
            view, width=console.width, color=colored, theme=look.get("theme", "light"), max_lanes=MOST_LANES
        )
        height = picture.count("\n") + 2
        if used and used + height > console.height:
            return
        console.print()
        console.print(Text.from_ansi(picture), no_wrap=True, highlight=False)
        used += height
