"""A page as a text: one document with its data, scripts and styles in it, from which no part of the data can break out."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from string import Template
from typing import Any

from pipeplan.drawing.look_names import ThemeName
from pipeplan.drawing.theme import DARK, LIGHT, theme_named

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
<main id="$place" data-begin="$begin"></main>
<script type="application/json" id="pipeplan-data">$data</script>
$scripts
</body>
</html>
""")

COLOURS = Template("""
html, body { margin: 0; background: $light; }
body:has([data-theme="dark"]) { background: $dark; }
noscript { font: 15px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { html, body { background: $dark; } }
@media (prefers-color-scheme: dark) { body:has([data-theme="light"]) { background: $light; } }
""").substitute(light=LIGHT.page, dark=DARK.page)
"""The page behind a timeline, light or dark as the timeline is."""


def document(
    *,
    title: str,
    place: str,
    data: Any,
    scripts: Sequence[str],
    style: str,
    theme: ThemeName | None = None,
) -> str:
    """The page whose scripts fill the element called ``place`` with ``data``.

    Parameters
    ----------
    theme
        What the page begins with; None follows the reader's system.

    Raises
    ------
    UnknownNameError
        For an unknown theme.
    ValueError
        For data with a number that is not finite.
    """
    begin = "" if theme is None else f"theme={theme_named(theme).name}"
    return _PAGE.substitute(
        policy=escape(_policy(scripts)),
        title=escape(title),
        style=style + COLOURS,
        place=place,
        begin=begin,
        data=_script_safe(json.dumps(data, separators=(",", ":"), allow_nan=False)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _policy(scripts: Sequence[str]) -> str:
    """Allows these scripts, and nothing from anywhere else."""
    digests = (b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _script_safe(text: str) -> str:
    """JSON in which nothing can end the element that holds it, or open a comment."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
