"""Self-contained HTML pages: timelines on one time axis, and reports with a table above their timelines.

Each is one document with its data, scripts and styles. The data are escaped so that they cannot leave their element.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Literal

from pipeplan.drawing.html.data import archived, themes_for, timeline_data
from pipeplan.drawing.sizes import ThemeName
from pipeplan.drawing.theme import DARK, LIGHT, theme_named
from pipeplan.drawing.view import View

AssetName = Literal["timeline.js", "timeline.css", "report.js", "report.css"]


@cache
def asset(name: AssetName) -> str:
    """Return the text of a script or style sheet built from ``web_ui/``."""
    return (files("pipeplan.drawing.html") / "assets" / name).read_text("utf-8")


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

COLORS = Template("""
html, body { margin: 0; background: $light; }
body:has([data-theme="dark"]) { background: $dark; }
noscript { font: 15px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { html, body { background: $dark; } }
@media (prefers-color-scheme: dark) { body:has([data-theme="light"]) { background: $light; } }
""").substitute(light=LIGHT.page, dark=DARK.page)
"""Style of the page around a timeline, light or dark like the timeline."""


def document(
    *,
    title: str,
    place: str,
    data: Any,
    scripts: Sequence[str],
    style: str,
    theme: ThemeName | None = None,
) -> str:
    """Return the page whose scripts fill the element with the id ``place`` with ``data``.

    Raises UnknownNameError for an unknown theme, and ValueError for a number that is not finite.
    """
    begin = "" if theme is None else f"theme={theme_named(theme).name}"
    return _PAGE.substitute(
        policy=escape(_policy(scripts)),
        title=escape(title),
        style=style + COLORS,
        place=place,
        begin=begin,
        data=_script_safe(json.dumps(data, separators=(",", ":"), allow_nan=False)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that allows these scripts, and nothing from elsewhere."""
    digests = (b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _script_safe(text: str) -> str:
    """Escape JSON so that it can neither end its script element nor open a comment."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_STYLE = """
html, body { height: 100%; }
body { display: flex; flex-direction: column; box-sizing: border-box; padding: 12px 18px 10px; }
h1 { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); }
main { flex: 1; min-height: 420px; }
"""


def html_page(views: View | Sequence[View], *, title: str | None = None, theme: ThemeName | None = None) -> str:
    """Return the page of one view, or of several views on one time axis."""
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


ReportKind = Literal["comparison", "difference"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReportPage:
    """A page of timelines with a table.

    Attributes
    ----------
    kind
        Kind of the page.
    title
        Title of the page.
    facts
        Data of its table and its sentences, ready for JSON; ``pipeplan.answers.report_records`` declares them for each kind.
    views
        Timelines, in the order in which the facts refer to them.
    """

    kind: ReportKind
    title: str
    facts: Mapping[str, Any]
    views: tuple[View, ...]


def report_data(report: ReportPage) -> dict[str, Any]:
    """Return the data that the page of a report draws, ready for JSON.

    ::

        kind, title, facts   attributes of the report
        views                each as written by ``pipeplan.drawing.html.data.archived``
        themes               as in ``timeline_data``

    Raises ValueError if there are no views.
    """
    return {
        "kind": report.kind,
        "title": report.title,
        "facts": dict(report.facts),
        "views": [archived(view) for view in report.views],
        "themes": themes_for(report.views),
    }


def report_page(report: ReportPage, *, theme: ThemeName | None = None) -> str:
    """Return the self-contained page of a report.

    With ``theme`` None, the page follows the reader's system.
    """
    return document(
        title=report.title,
        place="pipeplan-report",
        data=report_data(report),
        scripts=[asset("timeline.js"), asset("report.js")],
        style=asset("timeline.css") + asset("report.css"),
        theme=theme,
    )
