"""Pictures in the terminal: above the table of one schedule, below the table of several."""

from __future__ import annotations

from collections.abc import Iterable

from pipeplan.drawing import Look, View, text_of

NARROWEST = 40
"""Minimum number of columns for a picture."""

MOST_LANES = 16
"""Maximum number of ranks in a picture; of more, the first and the last are shown."""


def show_above(view: View, look: Look) -> None:
    """Draw a view on stdout, followed by a blank line; coloured in a terminal, plain in a file or a pipe."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if console.width < NARROWEST:
        return
    colored = console.is_terminal and console.color_system is not None and not console.no_color
    picture = _drawn(view, look, console.width, colored=colored)
    if console.is_terminal:
        console.print(Text.from_ansi(picture), no_wrap=True, highlight=False)
    else:
        print("\n".join(line.rstrip() for line in picture.split("\n")))
    print()


def show_below(views: Iterable[View], look: Look) -> None:
    """Draw views on stdout if it is a terminal: the first one, and further ones while they fit on the screen."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if not console.is_terminal or console.width < NARROWEST:
        return
    colored = console.color_system is not None and not console.no_color
    used = 0
    for view in views:
        picture = _drawn(view, look, console.width, colored=colored)
        height = picture.count("\n") + 2
        if used and used + height > console.height:
            return
        console.print()
        console.print(Text.from_ansi(picture), no_wrap=True, highlight=False)
        used += height


def _drawn(view: View, look: Look, width: int, *, colored: bool) -> str:
    return text_of(view, width=width, color=colored, theme=look.get("theme", "light"), max_lanes=MOST_LANES)
