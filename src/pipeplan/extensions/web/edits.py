"""Work of the server's processes on an edited schedule: its text, and the verdict on each change."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.answers import Result, resolve, view_of_result
from pipeplan.answers.simulating.result import editable
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.drawing.html import timeline_data
from pipeplan.extensions.web.editing.edit_texts import EditedShape
from pipeplan.extensions.web.editing.edits import Edit, change_in_words, edited, text_of
from pipeplan.extensions.web.records import EditBegin, EditReply, TrainerReply
from pipeplan.extensions.web.replies import Reply, json_reply
from pipeplan.extensions.web.requests import EditIn, ExplainIn
from pipeplan.extensions.web.schedules import MOST_OPS, can_be_explained, choose, only_one
from pipeplan.foundation.errors import InputError
from pipeplan.trainers import trainers_of

_MOST_TRIED = 20_000
"""Maximum number of ops of a schedule that is tried on every trainer."""


def begin(request: ExplainIn) -> Reply:
    """Return the text and the shape of one schedule."""
    schedule = resolve(*only_one(request), of_measured=True)
    shape = EditedShape.of(schedule)
    return json_reply(EditBegin(name=schedule.name, rows=text_of(schedule), shape=shape, ops=len(schedule)))


def judge(request: EditIn) -> Reply:
    """Return whether an edited schedule's text is valid, its times and flaws, and which trainers run it."""
    settings = request.costs()
    shape = None if request.shape is None else request.shape.shape()
    edit = edited(_servable(request.rows), settings, shape=shape, name=request.name)
    changed = _change(edit, request, settings, shape)
    trainers = None
    if edit.result is not None and len(edit.result.schedule) <= _MOST_TRIED:
        verdicts = trainers_of(edit.result.schedule)
        trainers = msgspec.convert(verdicts, tuple[TrainerReply, ...], from_attributes=True)
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
    return editable(result, view_of_result(result, reasons=can_be_explained(drawn))) if drawn else None
