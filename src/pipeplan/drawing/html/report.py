"""A page of what several timelines come to: a table first, and the timelines that the reader ticks below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeplan.drawing.html.archive import archived
from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import themes_for
from pipeplan.drawing.html.document import document
from pipeplan.drawing.look_names import ThemeName
from pipeplan.drawing.view import View

ReportKind = Literal["comparison", "difference"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report:
    """Timelines, and what is said of them.

    Attributes
    ----------
    kind
        Which page it is.
    title
        Of the page.
    facts
        What its table and its sentences hold, ready for JSON: ``web_ui/src/report/contract.ts`` says what a page of each
        kind reads.
    views
        The timelines, in the order in which the facts speak of them.
    """

    kind: ReportKind
    title: str
    facts: Mapping[str, Any]
    views: tuple[View, ...]


def report_data(report: Report) -> dict[str, Any]:
    """What the page of a report draws, ready for JSON.

    ::

        kind, title, facts   as the report has them
        views                each as ``pipeplan.drawing.html.archive.archived`` writes it
        themes               as in ``timeline_data``

    Raises
    ------
    ValueError
        For no views.
    """
    return {
        "kind": report.kind,
        "title": report.title,
        "facts": dict(report.facts),
        "views": [archived(view) for view in report.views],
        "themes": themes_for(report.views),
    }


def report_page(report: Report, *, theme: ThemeName | None = None) -> str:
    """The page of a report, which holds everything and needs no network.

    Parameters
    ----------
    theme
        What the page begins with; None follows the reader's system.

    Raises
    ------
    UnknownNameError
        For an unknown theme.
    ValueError
        For no views.
    """
    return document(
        title=report.title,
        place="pipeplan-report",
        data=report_data(report),
        scripts=[asset("timeline.js"), asset("report.js")],
        style=asset("timeline.css") + asset("report.css"),
        theme=theme,
    )
