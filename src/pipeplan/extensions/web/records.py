"""Records of the web app's answers, around those of the API, and their description in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from fastapi import FastAPI
from msgspec import UNSET, Meta, UnsetType

from pipeplan.answers import BundledCosts, Explanation, FasterWithMore, LeastBound, Result, StrategyRecord
from pipeplan.extensions.planning.answers.one_configuration import ChosenConfiguration
from pipeplan.extensions.planning.answers.plans import Plan
from pipeplan.extensions.review.answers.result import Review
from pipeplan.extensions.search import FrontMark, Published
from pipeplan.extensions.search.answers.search_record import SearchedResult
from pipeplan.extensions.web.editing.edit_texts import EditedShape
from pipeplan.extensions.web.editing.edits import Edit
from pipeplan.foundation.records import Record, without_indents
from pipeplan.model import Need

TimelineData = Annotated[
    dict[str, Any], Meta(description="Argument of mountTimeline.", extra_json_schema={"title": "TimelineData"})
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


class CompareReply(Record, frozen=True, kw_only=True):
    """Results of all schedules, and the names of those whose timelines are ``drawn``, or too large to be (``undrawn``)."""

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


class CostsOfPlan(Record, frozen=True, kw_only=True):
    """Settings with which to compare schedules on a configuration's costs."""

    settings: FormSettings
    schedule: str


class ChosenReply(Record, frozen=True, kw_only=True):
    """One configuration: its estimate as a row of ``pipeplan estimate --json`` with ``flags`` by trainer, and its timeline.

    ``idle`` is the idle time of all ranks as a share of all their time.
    """

    estimate: ChosenConfiguration
    timeline: TimelineData | None
    idle: float
    compare: CostsOfPlan


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


class PlanStatus(Record, frozen=True, kw_only=True):
    """Progress of a plan as a share and in words, and the step time of its best configuration so far."""

    share: float
    said: str
    best_s: float | None


class PlanLine(Record, frozen=True, kw_only=True):
    """One line while a plan is made: ``progress``, then the ``plan``; or ``errors``."""

    progress: PlanStatus | UnsetType = UNSET
    plan: Plan | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


class SearchStatus(Record, frozen=True, kw_only=True):
    """Progress of a search: the share of its budget that is spent, its best value and its lower bound so far."""

    share: float
    value: float
    bound: float
    found_by: str
    evaluations: int
    seconds: float
    published: Published | None


class SearchReply(SearchedResult, frozen=True, kw_only=True):
    """Result of a search, and sentences about its gain over published schedules."""

    said: tuple[str, ...]


class SearchLine(Record, frozen=True, kw_only=True):
    """One line of a search: ``progress``, the ``best`` schedule so far as pipeplan's JSON, the result, or ``errors``."""

    progress: SearchStatus | UnsetType = UNSET
    best: str | UnsetType = UNSET
    found: SearchReply | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


class FrontPointReply(Record, frozen=True, kw_only=True):
    """Best schedule under one limit, as pipeplan's JSON; ``limit`` is null without one."""

    limit: float | None
    peak: float
    value: float
    text: str


class FrontReply(Record, frozen=True, kw_only=True):
    """Pareto front of time against memory, published schedules, and the gain over these."""

    memory: Literal["bytes", "activations"]
    time_unit: str
    points: tuple[FrontPointReply, ...]
    published: tuple[FrontMark, ...]
    said: str


class FrontLine(Record, frozen=True, kw_only=True):
    """One line of a search under several limits: ``progress``, each ``point``, then the ``front``; or ``errors``."""

    progress: SearchStatus | UnsetType = UNSET
    best: str | UnsetType = UNSET
    point: FrontPointReply | UnsetType = UNSET
    front: FrontReply | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


REPLIES = (
    ChosenReply,
    CompareReply,
    ConfigReply,
    EditBegin,
    EditReply,
    Explanation,
    Faults,
    FormatEntry,
    FrontLine,
    PlanLine,
    Review,
    BundledCosts,
    StrategyRecord,
    SearchLine,
)

_REF = "#/components/schemas/{name}"


def replied(
    record: type[Record], description: str = "The answer", *, several: bool = False, media: str = "application/json"
) -> dict[str, Any]:
    """Return the OpenAPI description of a reply: a record of ``REPLIES``, or a list of them."""
    schema: dict[str, Any] = {"$ref": _REF.format(name=record.__name__)}
    if several:
        schema = {"type": "array", "items": schema}
    return {"description": description, "content": {media: {"schema": schema}}}


def describe_records(app: FastAPI, requests: Callable[[str], dict[str, Any]]) -> None:
    """Add the schemas of all replies and requests to the OpenAPI document of an app."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        _, schemas = msgspec.json.schema_components(REPLIES, ref_template=_REF)
        document.setdefault("components", {}).setdefault("schemas", {}).update(
            without_indents({**requests(_REF), **schemas})
        )
        return document

    app.openapi = openapi  # type: ignore[method-assign]
