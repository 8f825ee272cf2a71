"""Records of the web app's answers, around those of the API, and their description in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI
from msgspec import Meta

from pipeplan.answers import FasterWithMore, LeastBound, Result
from pipeplan.extensions.web.editing.edit_texts import EditedShape
from pipeplan.extensions.web.editing.edits import Edit
from pipeplan.foundation.records import Record, without_indents
from pipeplan.model import Need

TimelineData = Annotated[
    dict[str, Any],
    Meta(
        description="Argument of mountTimeline; a large view is the text that `archived` in pipeplan.drawing.html writes.",
        extra_json_schema={"title": "TimelineData"},
    ),
]
"""Timelines to draw; ``web_ui/src/data.ts`` has its type."""

FormSettings = Annotated[
    dict[str, Any],
    Meta(description="Settings of a request, by name.", extra_json_schema={"title": "Settings"}),
]


class Fault(Record, frozen=True, kw_only=True):
    """An error: the field at fault, empty if there is none, and a sentence."""

    field: str
    message: str


class Faults(Record, frozen=True, kw_only=True):
    """Why a request was refused."""

    errors: tuple[Fault, ...]


class FormatEntry(Record, frozen=True, kw_only=True):
    """A file format: whether it can be ``written`` and ``read``, and whether a file can hold ``several`` schedules."""

    name: str
    title: str
    ending: str
    written: bool
    read: bool
    several: bool


class ConfigReply(Record, frozen=True, kw_only=True):
    """Settings and schedules of a config file; ``notes`` name what the form cannot hold."""

    settings: FormSettings
    schedules: tuple[str, ...]
    notes: tuple[str, ...]


class RefusedSchedule(Fault, frozen=True, kw_only=True):
    """A schedule without a result, and the reason."""

    schedule: str


class Thumbnail(Record, frozen=True, kw_only=True):
    """Small bitmap of a timeline: a row for each lane, a column for each interval of its time."""

    width: int
    height: int
    kinds: tuple[str, ...]
    cells: Annotated[
        str,
        Meta(
            description="Base64 of a zlib stream of the rows, a byte a cell: 0 is idle, others 1 + place in ``kinds``."
        ),
    ]


class CompareReply(Record, frozen=True, kw_only=True):
    """Results of all schedules, and the names of those whose timelines are ``drawn``, or too large to be (``undrawn``).

    ``thumbnails`` are in the order of ``results``. ``left_out`` says which schedules are missing because the shape is
    large; it is empty if none is.
    """

    headline: str
    results: tuple[Result, ...]
    allowed: tuple[Need, ...]
    faster_with_more: tuple[FasterWithMore, ...]
    refused: tuple[RefusedSchedule, ...]
    warnings: tuple[str, ...]
    least_bound: LeastBound
    drawn: tuple[str, ...]
    undrawn: tuple[str, ...]
    timeline: TimelineData | None
    thumbnails: tuple[Thumbnail, ...]
    left_out: str


class DrawReply(Record, frozen=True, kw_only=True):
    """Timelines of some schedules: the names of those that are ``drawn``, and of those that are too large to be."""

    drawn: tuple[str, ...]
    undrawn: tuple[str, ...]
    timeline: TimelineData | None


class EditBegin(Record, frozen=True, kw_only=True):
    """Text and shape with which an edit begins."""

    name: str
    rows: str
    shape: EditedShape
    ops: int


class TrainerReply(Record, frozen=True, kw_only=True):
    """Verdict of a trainer on a text: the format that it takes, or the reason why it does not run it."""

    trainer: str
    format: str
    runs: bool
    reason: str


class EditReply(Edit, frozen=True, kw_only=True):
    """Verdict on a text, with what the last change did, whether trainers run it, and its timeline.

    ``trainers`` is null where the text does not run, or is too large to be tried.
    """

    changed: str
    trainers: tuple[TrainerReply, ...] | None
    timeline: TimelineData | None


_REF = "#/components/schemas/{name}"


def replied(
    record: type[Record], description: str = "The answer", *, several: bool = False, media: str = "application/json"
) -> dict[str, Any]:
    """Return the OpenAPI description of a reply: a record that ``describe_records`` gets, or a list of them."""
    schema: dict[str, Any] = {"$ref": _REF.format(name=record.__name__)}
    if several:
        schema = {"type": "array", "items": schema}
    return {"description": description, "content": {media: {"schema": schema}}}


def describe_records(app: FastAPI, replies: Iterable[type[Record]], requests: Callable[[str], dict[str, Any]]) -> None:
    """Add the schemas of all replies and requests to the OpenAPI document of an app."""
    of_routes = app.openapi

    def openapi() -> dict[str, Any]:
        document = of_routes()
        _, schemas = msgspec.json.schema_components(replies, ref_template=_REF)
        document.setdefault("components", {}).setdefault("schemas", {}).update(
            without_indents({**requests(_REF), **schemas})
        )
        return document

    app.openapi = openapi  # type: ignore[method-assign]
