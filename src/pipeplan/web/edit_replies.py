"""What the workers answer about a schedule that somebody edits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeplan.api import (
    Edit,
    EditedShape,
    Flaw,
    Result,
    StoppedRun,
    change_in_words,
    edited,
    resolve,
    text_of,
    trainers_of,
)
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.drawing.html import timeline_data
from pipeplan.errors import InputError, PipeplanError
from pipeplan.model import Schedule
from pipeplan.web.asked_schedules import only_one
from pipeplan.web.edit_requests import EditIn
from pipeplan.web.faults import fault, plain
from pipeplan.web.replies import Reply, json_reply, refused
from pipeplan.web.request_size import MOST_OPS
from pipeplan.web.requests import ExplainIn
from pipeplan.web.timeline_views import can_be_explained, choose

_MOST_TRIED = 20_000
"""Ops of a schedule that is tried on every trainer."""

_MOST_WAITING = 20
"""Ranks that stop which are told one by one."""


def begin(question: ExplainIn) -> Reply:
    """The text and the shape of one schedule."""
    try:
        meant, settings = only_one(question)
        schedule = resolve(meant, settings, of_measured=True)
    except PipeplanError as error:
        return refused(fault(error))
    return json_reply(
        {
            "name": schedule.name,
            "rows": text_of(schedule),
            "shape": _shape(EditedShape.of(schedule)),
            "ops": len(schedule),
        }
    )


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
        trainers = [
            {"trainer": each.trainer, "format": each.format, "runs": each.runs, "reason": plain(each.reason)}
            for each in trainers_of(edit.result.schedule)
        ]
    return json_reply(
        {
            "valid": edit.valid,
            "flaws": _flaws(edit.flaws),
            "more": edit.more,
            "over": _flaws(edit.over),
            "notes": list(edit.notes),
            "shape": None if edit.shape is None else _shape(edit.shape),
            "result": None if edit.result is None else edit.result.to_dict(),
            "changed": changed,
            "stopped": _stopped(edit, edit.stopped),
            "trainers": trainers,
            "timeline": _timeline(edit) if question.draw else None,
        }
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


def _shape(shape: EditedShape) -> dict[str, Any]:
    return {
        "placement": [list(copy) for copy in shape.placement.rank_of],
        "microbatches": shape.microbatches,
        "slices": shape.slices,
    }


def _flaws(flaws: Iterable[Flaw]) -> list[dict[str, Any]]:
    return [
        {"rule": each.rule, "message": plain(each.message), "places": [[at.line, at.word] for at in each.places]}
        for each in flaws
    ]


def _stopped(edit: Edit, stopped: StoppedRun | None) -> dict[str, Any] | None:
    schedule = edit.schedule
    if stopped is None or schedule is None:
        return None
    return {
        "until": stopped.until,
        "ran": int(stopped.ran.sum()),
        "ops": len(schedule),
        "waiting": [_waiting(edit, schedule, each.rank, each.position, each.message) for each in stopped.waiting][
            :_MOST_WAITING
        ],
    }


def _waiting(edit: Edit, schedule: Schedule, rank: int, position: int, message: str) -> dict[str, Any]:
    place = edit.text.place(schedule, position)
    return {"rank": rank, "op": str(schedule.op(position)), "message": message, "places": [[place.line, place.word]]}


def _timeline(edit: Edit) -> dict[str, Any] | None:
    view = _view_of(edit.result) if edit.result is not None else edit.stopped.view() if edit.stopped else None
    return None if view is None else timeline_data([view])


def _view_of(result: Result) -> View | None:
    drawn, _ = choose([result], None)
    return result.view(reasons=can_be_explained(drawn)) if drawn else None
