"""One page with its data, script and style in it, from which no part of the data can break out."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import timeline_data
from pipeplan.drawing.theme import DARK, LIGHT, ThemeName, theme_named
from pipeplan.drawing.view import View
from pipeplan.files import write_text

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>$title</title>
<style>$style</style>
</head>
<body>
<h1>$title</h1>
<noscript>This timeline is drawn by a script, and scripts are turned off in this browser.</noscript>
<main id="pipeplan-timeline" data-begin="$begin"></main>
<script type="application/json" id="pipeplan-data">$data</script>
<script>$script</script>
</body>
</html>
""")

_STYLE = Template("""
html, body { height: 100%; margin: 0; background: $light; }
body { display: flex; flex-direction: column; box-sizing: border-box; padding: 12px 18px 10px; }
body:has([data-theme="dark"]) { background: $dark; }
h1 { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); }
noscript { font: 15px system-ui, sans-serif; }
main { flex: 1; min-height: 420px; }
@media (prefers-color-scheme: dark) { html, body { background: $dark; } }
@media (prefers-color-scheme: dark) { body:has([data-theme="light"]) { background: $light; } }
""")


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
    begin = "" if theme is None else f"theme={theme_named(theme).name}"
    chosen = [views] if isinstance(views, View) else list(views)
    own = ", ".join(view.title for view in chosen) or "timeline"
    style = asset("timeline.css") + _STYLE.substitute(light=LIGHT.page, dark=DARK.page)
    script = asset("timeline.js")
    return _PAGE.substitute(
        policy=escape(_policy(script)),
        title=escape(own if title is None else title),
        style=style,
        begin=begin,
        data=_script_safe(json.dumps(timeline_data(chosen), separators=(",", ":"), allow_nan=False)),
        script=script,
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


def _policy(script: str) -> str:
    """Allows this one script, and nothing from anywhere else."""
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"


def _script_safe(text: str) -> str:
    """JSON in which nothing can end the element that holds it, or open a comment."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
