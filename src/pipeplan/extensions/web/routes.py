"""Routes of the API: the request that one takes, what it answers, and the part of the app that an extension adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from fastapi.types import DecoratedCallable

from pipeplan.costs import Setting
from pipeplan.extensions.web.faults import as_json
from pipeplan.extensions.web.records import Fault, Faults, replied
from pipeplan.extensions.web.replies import Reply
from pipeplan.extensions.web.requests import RequestError, RequestRecord, parsed
from pipeplan.extensions.web.streams import NDJSON
from pipeplan.extensions.web.workers import Pools
from pipeplan.foundation.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPart:
    """Part of the app that shows one extension.

    Attributes
    ----------
    add_routes
        Function that adds the routes to the app.
    requests, replies
        Records that they take and return.
    options
        Options that requests hold as ``settings``, by the name of their schema.
    """

    add_routes: Callable[[FastAPI, Pools], None]
    requests: tuple[type[RequestRecord], ...]
    replies: tuple[type[Record], ...]
    options: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: replied(Faults, "Unreadable request"),
    403: replied(Faults, "Request from another page, or to another host name"),
    413: replied(Faults, "Request too large"),
    422: replied(Faults, "Invalid request: each field with a message"),
    503: replied(Faults, "Server busy, or out of memory"),
    504: replied(Faults, "Answer takes too long"),
}


def body_of(record: type[RequestRecord]) -> Any:
    """Return the parameter of a route that is a request of this type."""

    async def read(request: Request) -> RequestRecord:
        media = request.headers.get("content-type", "application/json")
        if media.partition(";")[0].strip().lower() != "application/json":
            raise RequestError(Fault(field="", message="the request is not JSON"))
        return parsed(record, await request.body())

    return Depends(read)


def post(
    app: FastAPI, path: str, record: type[RequestRecord], reply: dict[str, Any], summary: str
) -> Callable[[DecoratedCallable], DecoratedCallable]:
    """Return the decorator of a route that takes a request of this type."""
    schema = {"$ref": f"#/components/schemas/{record.__name__}"}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": True}}
    return app.post(path, responses={200: reply, **REFUSALS}, openapi_extra=body, summary=summary)


def in_lines(record: type[Record]) -> dict[str, Any]:
    """Return the description of an answer in lines."""
    return replied(record, "Lines of JSON: `progress`, then the answer; or `errors`", media=NDJSON)


WARNINGS = "pipeplan-warnings"
"""Header with what the user must know of a file: a JSON array of sentences, percent-encoded."""


def response(reply: Reply) -> Response:
    """Return a reply with its headers."""
    headers = {"content-disposition": f'attachment; filename="{reply.filename}"'} if reply.filename else {}
    if reply.warnings:
        headers[WARNINGS] = quote(as_json(reply.warnings))
    return Response(reply.body, reply.status, headers, reply.media)
