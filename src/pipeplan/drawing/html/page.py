"""Self-contained HTML pages, which need no network: timelines on one time axis, and reports with a table above them.

Each is one document with its data, scripts and styles. The data are escaped so that they cannot leave their element.

A view consists mostly of times, and the same few hundred times recur: the end of an op is the start of another one, and
a step of a curve. An archive stores them once, sorted; every column of times is a column of indices into that list.
Indices and integers are stored as differences between rows, their lowest bytes first, and everything is deflated.
Twenty schedules of 8 ranks and 24 microbatches take 50 kB, a fifteenth of their plain columns.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.sizes import ThemeName
from pipeplan.drawing.theme import DARK, LIGHT, theme_named
from pipeplan.drawing.view import View
from pipeplan.model import Floats

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


def html_page(views: View | Sequence[View], *, theme: ThemeName | None = None) -> str:
    """Return the page of one view, or of several views on one time axis."""
    chosen = [views] if isinstance(views, View) else list(views)
    return document(
        title=", ".join(view.title for view in chosen) or "timeline",
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
        Data of its table and its sentences, ready for JSON; ``ComparisonFacts`` and ``DiffFacts`` declare them.
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
        views                each as written by ``archived``
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


_INTEGERS = (np.int8, np.int16, np.int32)
_SHORT = 16
"""Maximum length of columns that stay readable lists."""


def timeline_data(views: View | Sequence[View]) -> dict[str, Any]:
    """Return the data that ``mountTimeline`` draws, ready for JSON.

    ::

        views    each as returned by View.to_json_dict, with its columns packed
        themes   light and dark, each: the theme's JSON by the number of shades that a view needs, as text

    Raises ValueError if there are no views.
    """
    chosen = [views] if isinstance(views, View) else list(views)
    return {"themes": themes_for(chosen), "views": [view.to_json_dict(packed) for view in chosen]}


def themes_for(views: Sequence[View]) -> dict[str, Any]:
    """Return the colors that views need: light and dark, each by the number of shades.

    Raises ValueError if there are no views.
    """
    if not views:
        raise ValueError("a timeline needs at least one view")
    shades = sorted({view.copies * view.chunks for view in views} | _shades_of_orders(views))
    return {theme.name: {str(count): theme.to_json_dict(count) for count in shades} for theme in (LIGHT, DARK)}


_USUAL_SHADES = {1, 2, 4}
"""Shades of most schedules: a page that can show an order from a link has them, too."""


def _shades_of_orders(views: Sequence[View]) -> set[int]:
    return _USUAL_SHADES if any(view.order is not None for view in views) else set()


def packed(column: NDArray[Any]) -> list[Any] | str:
    """Return a column as ``TYPE:BASE64`` of its little-endian bytes, in the narrowest type that holds every value exactly.

    Types are ``i1``, ``i2``, ``i4``, ``f4`` and ``f8``; short columns stay lists.

    Raises ValueError if a value is not finite.
    """
    if not np.isfinite(column).all():
        raise ValueError("a timeline's numbers must be finite")
    if len(column) <= _SHORT:
        return list(column.tolist())
    narrow = _narrowest(column)
    data = narrow.astype(narrow.dtype.newbyteorder("<"))
    return f"{narrow.dtype.kind}{narrow.itemsize}:{b64encode(data.tobytes()).decode('ascii')}"


def _narrowest(column: NDArray[Any]) -> NDArray[Any]:
    low, high = float(column.min()), float(column.max())
    for kind in _INTEGERS:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max and np.array_equal(column, whole := column.astype(kind)):
            return whole
    with np.errstate(over="ignore"):
        single = column.astype(np.float32)
    return single if np.array_equal(column, single) else column.astype(np.float64)


_SHORT_ARCHIVED = 4
"""Maximum length of columns that stay lists, because a reference is not shorter."""

_LARGEST = 2**30 - 1
"""Maximum absolute value of integers whose differences always fit into four bytes."""

_MOST_HALVINGS = 12


def archived(view: View) -> str:
    """Return a view as base64 of a zlib stream, which holds every number exactly.

    ::

        4 bytes        length of the following text, little-endian
        text           JSON: {"times": COLUMN, "view": result of View.to_json_dict, with each long column as a COLUMN}
        rest           bytes of the columns; of each column all lowest bytes first, then all second ones, and so on

    A COLUMN is ``"@OFFSET:COUNT:CODING"``, with the offset of its bytes after the text. Codings are ``iW``, differences
    of integers of W bytes; ``iW/N``, the same in units of 1/N; ``tW``, differences of indices into ``times``; and
    ``fW``, floats.

    Raises ValueError if a number is not finite.
    """
    columns = _Columns(_times(view))
    head = {"times": columns.times(), "view": view.to_json_dict(columns.add)}
    text = json.dumps(head, separators=(",", ":"), allow_nan=False).encode("utf-8")
    return b64encode(zlib.compress(len(text).to_bytes(4, "little") + text + columns.bytes, 9)).decode("ascii")


def _times(view: View) -> Floats:
    """Return every time of a view once, in order."""
    times = [view.bars.start, view.bars.end]
    if view.memory is not None:
        times.append(view.memory.time)
    if view.gaps is not None:
        times += [view.gaps.start, view.gaps.end]
    return np.unique(np.concatenate(times))


class _Columns:
    """Bytes of columns, one after the other."""

    __slots__ = ("_times", "bytes")

    def __init__(self, times: Floats) -> None:
        self._times = times
        self.bytes = b""

    def times(self) -> list[Any] | str:
        return self._written(self._times, _numbers(self._times))

    def add(self, column: NDArray[Any]) -> list[Any] | str:
        """Return a reference to a column, or a list if it is short."""
        if not np.isfinite(column).all():
            raise ValueError("a timeline's numbers must be finite")
        if column.dtype.kind != "f":
            return self._written(column, _numbers(column))
        places = np.searchsorted(self._times, column).clip(max=max(len(self._times) - 1, 0))
        if len(self._times) and np.array_equal(self._times[places], column):
            return self._written(column, _differences(places.astype(np.int64), "t"))
        return self._written(column, _numbers(column))

    def _written(self, column: NDArray[Any], coded: tuple[str, NDArray[Any]]) -> list[Any] | str:
        if len(column) <= _SHORT_ARCHIVED:
            return list(column.tolist())
        coding, values = coded
        place = f"@{len(self.bytes)}:{len(column)}:{coding}"
        little = values.astype(values.dtype.newbyteorder("<"))
        self.bytes += np.frombuffer(little.tobytes(), np.uint8).reshape(-1, values.itemsize).T.tobytes()
        return place


def _numbers(column: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the coding of a column of numbers, and the values to write."""
    for halvings in range(_MOST_HALVINGS + 1 if column.dtype.kind == "f" else 1):
        scaled = column.astype(np.float64) * 2**halvings
        if np.abs(scaled).max(initial=0) > _LARGEST:
            break
        whole = scaled.astype(np.int64)
        if np.array_equal(whole, scaled):
            coding, values = _differences(whole, "i")
            return (coding if halvings == 0 else f"{coding}/{2**halvings}"), values
    with np.errstate(over="ignore"):
        single = column.astype(np.float32)
    return ("f4", single) if np.array_equal(column, single) else ("f8", column.astype(np.float64))


def _differences(whole: NDArray[np.int64], letter: str) -> tuple[str, NDArray[Any]]:
    steps = np.diff(whole, prepend=0)
    low, high = steps.min(initial=0), steps.max(initial=0)
    kind = next(kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return f"{letter}{np.dtype(kind).itemsize}", steps.astype(kind)
