"""One page of a timeline, or of several on one time axis."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import timeline_data
from pipeplan.drawing.html.document import document
from pipeplan.drawing.look_names import ThemeName
from pipeplan.drawing.view import View
from pipeplan.files import write_text

_STYLE = """
html, body { height: 100%; }
body { display: flex; flex-direction: column; box-sizing: border-box; padding: 12px 18px 10px; }
h1 { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); }
main { flex: 1; min-height: 420px; }
"""


def html_page(views: View | Sequence[View], *, title: str | None = None, theme: ThemeName | None = None) -> str:
    """The page of one view, or of several on one time axis.

    Parameters
    ----------
    title
        Of the browser's window; the views' titles where none is given.
    theme
        What the page begins with; None follows the reader's system. Its button changes it either way.

    Raises
    ------
    UnknownNameError
        For an unknown theme.
    ValueError
        For no views.
    """
    chosen = [views] if isinstance(views, View) else list(views)
    own = ", ".join(view.title for view in chosen) or "timeline"
    return document(
        title=own if title is None else title,
        place="pipeplan-timeline",
        data=timeline_data(chosen),
        scripts=[asset("timeline.js")],
        style=asset("timeline.css") + _STYLE,
        theme=theme,
    )


def save_html(
    views: View | Sequence[View],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> None:
    """Write the page of :func:`html_page` to a file, completely or not at all.

    Raises
    ------
    UnknownNameError
        For an unknown theme.
    ValueError
        For no views.
    InputError
        Where the file cannot be written.
    """
    write_text(Path(path), html_page(views, title=title, theme=theme))
