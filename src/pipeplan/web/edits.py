"""Routes and work of an edited schedule: its text, and the verdict on each change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.responses import Response

from pipeplan.api import Edit, EditedShape, Result, change_in_words, edited, resolve, text_of
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.drawing.html import timeline_data
from pipeplan.errors import InputError, PipeplanError
from pipeplan.trainers import trainers_of
from pipeplan.web.faults import fault, plain
from pipeplan.web.records import EditBegin, EditReply, TrainerReply, replied
from pipeplan.web.replies import Reply, json_reply, refused
from pipeplan.web.requests import EditIn, ExplainIn
from pipeplan.web.schedules import MOST_OPS, can_be_explained, choose, only_one, require_servable
from pipeplan.web.workers import Workers

_MOST_TRIED = 20_000
"""Maximum number of ops of a schedule that is tried on every trainer."""


def add_edits(app: FastAPI, workers: Workers, refusals: Mapping[int | str, dict[str, Any]]) -> None:
    """Add the routes to the API; ``refusals`` describes its refusals."""

    @app.post("/api/edit/begin", responses={200: replied(EditBegin), **refusals}, summary="Begin an edit")
    async def begin_edit(request: ExplainIn) -> Response:
        """Return the text of one schedule, one line per rank, and its shape."""
        if request.schedules:
            require_servable(request.schedules, request.settings.settings())
        return _response(await workers.ask(begin, request))

    @app.post("/api/edit", responses={200: replied(EditReply), **refusals}, summary="Validate an edited schedule")
    async def edit(request: EditIn) -> Response:
        """Return whether a text is valid, its times, the effect of the last change, and each flaw with its words."""
        return _response(await workers.ask(judge, request))


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type=reply.media)


def begin(request: ExplainIn) -> Reply:
    """Return the text and the shape of one schedule."""
    try:
        source, settings = only_one(request)
        schedule = resolve(source, settings, of_measured=True)
    except PipeplanError as error:
        return refused(fault(error))
    shape = EditedShape.of(schedule)
    return json_reply(EditBegin(name=schedule.name, rows=text_of(schedule), shape=shape, ops=len(schedule)))


def judge(request: EditIn) -> Reply:
    """Return whether an edited schedule's text is valid, its times and flaws, and which trainers run it."""
    try:
        settings = request.settings.settings()
        shape = None if request.shape is None else request.shape.shape()
        edit = edited(_servable(request.rows), settings, shape=shape, name=request.name)
        changed = _change(edit, request, settings, shape)
    except PipeplanError as error:
        return refused(fault(error))
    trainers = None
    if edit.result is not None and len(edit.result.schedule) <= _MOST_TRIED:
        trainers = tuple(
            TrainerReply(
                trainer=verdict.trainer, format=verdict.format, runs=verdict.runs, reason=plain(verdict.reason)
            )
            for verdict in trainers_of(edit.result.schedule)
        )
    return json_reply(
        EditReply(
            **msgspec.structs.asdict(edit),
            changed=changed,
            trainers=trainers,
            timeline=_timeline(edit) if request.draw else None,
        )
    )


def _servable(text: str) -> str:
    """Return the text. Raises InputError if its schedule is too large to be served."""
    if text.count("F") > MOST_OPS:
        raise InputError(f"the text holds more than {MOST_OPS:,} ops, which is the limit here", field="rows")
    return text


def _change(edit: Edit, request: EditIn, settings: Settings, shape: EditedShape | None) -> str:
    if request.before is None or edit.result is None:
        return ""
    before = edited(_servable(request.before), settings, shape=shape, name=request.name).result
    return "It is valid again." if before is None else change_in_words(before, edit.result)


def _timeline(edit: Edit) -> dict[str, Any] | None:
    view = _view_of(edit.result) if edit.result is not None else edit.stopped.view() if edit.stopped else None
    return None if view is None else timeline_data([view])


def _view_of(result: Result) -> View | None:
    drawn, _ = choose([result], None)
    return result.view(reasons=can_be_explained(drawn)) if drawn else None
