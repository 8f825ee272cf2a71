"""What the workers answer about a schedule that somebody edits."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.api import (
    Edit,
    EditedShape,
    Result,
    change_in_words,
    edited,
    resolve,
    text_of,
)
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.drawing.html import timeline_data
from pipeplan.errors import InputError, PipeplanError
from pipeplan.trainers import trainers_of
from pipeplan.web.asked_schedules import only_one
from pipeplan.web.edit_requests import EditIn
from pipeplan.web.faults import fault, plain
from pipeplan.web.records import EditBegin, EditReply, TrainerReply
from pipeplan.web.replies import Reply, json_reply, refused
from pipeplan.web.request_size import MOST_OPS
from pipeplan.web.requests import ExplainIn
from pipeplan.web.timeline_views import can_be_explained, choose

_MOST_TRIED = 20_000
"""Ops of a schedule that is tried on every trainer."""


def begin(question: ExplainIn) -> Reply:
    """The text and the shape of one schedule."""
    try:
        meant, settings = only_one(question)
        schedule = resolve(meant, settings, of_measured=True)
    except PipeplanError as error:
        return refused(fault(error))
    shape = EditedShape.of(schedule)
    return json_reply(EditBegin(name=schedule.name, rows=text_of(schedule), shape=shape, ops=len(schedule)))


def judge(question: EditIn) -> Reply:
    """The verdict on a text."""
    try:
        settings = question.settings.settings()
        shape = None if question.shape is None else question.shape.shape()
        edit = edited(_servable(question.rows), settings, shape=shape, name=question.name)
        changed = _changed(edit, question, settings, shape)
    except PipeplanError as error:
        return refused(fault(error))
    trainers = None
    if edit.result is not None and len(edit.result.schedule) <= _MOST_TRIED:
        trainers = tuple(
            TrainerReply(trainer=each.trainer, format=each.format, runs=each.runs, reason=plain(each.reason))
            for each in trainers_of(edit.result.schedule)
        )
    return json_reply(
        EditReply(
            **msgspec.structs.asdict(edit),
            changed=changed,
            trainers=trainers,
            timeline=_timeline(edit) if question.draw else None,
        )
    )


def _servable(text: str) -> str:
    """The text, unless its schedule is too large to be served. Raises InputError."""
    if text.count("F") > MOST_OPS:
        raise InputError(f"the text holds more than {MOST_OPS:,} ops, which is the limit here", field="rows")
    return text


def _changed(edit: Edit, question: EditIn, settings: Settings, shape: EditedShape | None) -> str:
    if question.before is None or edit.result is None:
        return ""
    before = edited(_servable(question.before), settings, shape=shape, name=question.name).result
    return "It runs again." if before is None else change_in_words(before, edit.result)


def _timeline(edit: Edit) -> dict[str, Any] | None:
    view = _view_of(edit.result) if edit.result is not None else edit.stopped.view() if edit.stopped else None
    return None if view is None else timeline_data([view])


def _view_of(result: Result) -> View | None:
    drawn, _ = choose([result], None)
    return result.view(reasons=can_be_explained(drawn)) if drawn else None
