"""Data of report pages; the types of the pages' scripts are generated from these records."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from pipeplan.api.comparing.comparison import ComparisonFacts
from pipeplan.api.differing.difference import DifferenceFacts
from pipeplan.records import Record

Themes = Annotated[dict[str, Any], Meta(extra_json_schema={"title": 'TimelineData["themes"]'})]
Views = Annotated[
    tuple[str, ...], Meta(description="Timelines as ``archive.ts`` opens them, in the order of the rows.")
]


class ComparisonData(Record, frozen=True, kw_only=True):
    """Page of a comparison, as ``report_data`` of ``pipeplan.drawing.html`` writes it."""

    kind: Literal["comparison"]
    title: str
    facts: ComparisonFacts
    views: Views
    themes: Themes


class DifferenceData(Record, frozen=True, kw_only=True):
    """Page of a run and its plan, as ``report_data`` of ``pipeplan.drawing.html`` writes it."""

    kind: Literal["difference"]
    title: str
    facts: DifferenceFacts
    views: Views
    themes: Themes
