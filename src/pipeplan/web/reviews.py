"""Routes and work of the page of reviews: a configuration's text, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from pipeplan.api.planning.configurations import cluster_of, model_of
from pipeplan.api.reviewing.result import Review
from pipeplan.api.reviewing.review import ReviewOptions, reviewed_text
from pipeplan.errors import PipeplanError
from pipeplan.web.faults import fault
from pipeplan.web.forms import FormOut, review_form
from pipeplan.web.plans import require_small
from pipeplan.web.records import replied
from pipeplan.web.replies import Reply, json_reply, refused
from pipeplan.web.requests import ReviewIn
from pipeplan.web.workers import Workers


def add_reviews(app: FastAPI, workers: Workers, refusals: Mapping[int | str, dict[str, Any]]) -> None:
    """Add the routes to the API; ``refusals`` describes its refusals."""

    @app.get("/api/review/settings", summary="All settings of a review")
    async def list_review_settings() -> FormOut:
        """Return every field of the form of a review, in its group."""
        return review_form()

    @app.post("/api/review", responses={200: replied(Review), **refusals}, summary="Review a configuration")
    async def review(request: ReviewIn) -> Response:
        """Return what is wrong with a configuration's text, at its lines, and the patch. Nothing in it is executed."""
        reply = await workers.ask(look_through, request)
        return Response(reply.body, reply.status, media_type=reply.media)


def look_through(request: ReviewIn) -> Reply:
    """Return the review of a text."""
    values = request.settings.model_dump(exclude_none=True, warnings=False)
    try:
        if "model" in values:
            values["model"] = model_of(values["model"], None)
        if "cluster" in values:
            values["cluster"] = cluster_of(values["cluster"], None)
            require_small(values["cluster"])
        return json_reply(reviewed_text(request.content, request.name, ReviewOptions(**values)))
    except PipeplanError as error:
        return refused(fault(error))
