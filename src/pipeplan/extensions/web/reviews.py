"""Reviews: what the app shows of the extension ``review``."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI
from fastapi.responses import Response
from msgspec import Meta, field

from pipeplan.extensions.planning.flags import cluster_of, model_of
from pipeplan.extensions.review.answers.result import Review
from pipeplan.extensions.review.answers.review import ReviewOptions, reviewed_text
from pipeplan.extensions.web.forms import FormOut, form_of
from pipeplan.extensions.web.plans import require_small, suggested
from pipeplan.extensions.web.records import replied
from pipeplan.extensions.web.replies import Reply, json_reply
from pipeplan.extensions.web.requests import Name, RequestRecord, given, of_schema, served
from pipeplan.extensions.web.routes import AppPart, body_of, post, response
from pipeplan.extensions.web.workers import Pools

_OPTIONS = served(ReviewOptions, ("trainer", "trainer_version", "model", "cluster", "global_batch", "sequence"))
"""Options of a review on the page."""

LONGEST_REVIEWED = 1 << 20
"""Maximum length of a configuration to review, in characters."""


class ReviewIn(RequestRecord, frozen=True, kw_only=True):
    """Configuration to review."""

    named = _OPTIONS

    settings: Annotated[dict[str, Any], of_schema("ReviewSettingsIn", "Options, by the names of the shell.")] = field(
        default_factory=dict
    )
    name: Annotated[Name, Meta(description="Name of the file; its suffix selects the form.")] = "pasted"
    content: Annotated[str, Meta(min_length=1, max_length=LONGEST_REVIEWED, description="Text of the file.")]


def answer_review(request: ReviewIn) -> Reply:
    """Return what is wrong with a configuration's text."""
    values = given(request.settings)
    if "model" in values:
        values["model"] = model_of(values["model"], None)
    if "cluster" in values:
        values["cluster"] = cluster_of(values["cluster"], None)
        require_small(values["cluster"])
    return json_reply(reviewed_text(request.content, request.name, ReviewOptions(**values)))


def _add_routes(app: FastAPI, pools: Pools) -> None:
    @app.get("/api/review/settings", summary="All settings of a review")
    async def list_review_settings() -> FormOut:
        """Return every field of the form of a review, in its group."""
        return form_of(_OPTIONS.values(), suggested())

    @post(app, "/api/review", ReviewIn, replied(Review), "Review a configuration")
    async def review(request: Annotated[ReviewIn, body_of(ReviewIn)]) -> Response:
        """Return what is wrong with a configuration's text, at its lines, and the patch. Nothing in it is executed."""
        return response(await pools.answers.ask(answer_review, request))


PART = AppPart(add_routes=_add_routes, requests=(ReviewIn,), replies=(Review,), options={"ReviewSettingsIn": _OPTIONS})
