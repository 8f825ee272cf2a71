"""The questions about a schedule that somebody edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from pipeplan.web import edit_replies
from pipeplan.web.edit_requests import EditIn
from pipeplan.web.records import EditBegin, EditReply, replied
from pipeplan.web.replies import Reply
from pipeplan.web.request_size import require_servable
from pipeplan.web.requests import ExplainIn
from pipeplan.web.workers import Workers


def add_edits(app: FastAPI, workers: Workers, refusals: Mapping[int | str, dict[str, Any]]) -> None:
    """Add the questions to the API; ``refusals`` describe how each can be refused."""

    @app.post("/api/edit/begin", responses={200: replied(EditBegin), **refusals}, summary="Begin an edit")
    async def begin_edit(question: ExplainIn) -> Response:
        """The text of one schedule, a line a rank, and its shape."""
        if question.schedules:
            require_servable(question.schedules, question.settings.settings())
        return _response(await workers.ask(edit_replies.begin, question))

    @app.post("/api/edit", responses={200: replied(EditReply), **refusals}, summary="Judge an edited schedule")
    async def edit(question: EditIn) -> Response:
        """Whether a text runs, what it costs, what the last change did, and why not: each flaw with its words."""
        return _response(await workers.ask(edit_replies.judge, question))


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type=reply.media)
