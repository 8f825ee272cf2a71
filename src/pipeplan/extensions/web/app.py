"""The app: its JSON API, and the answers to errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.types import DecoratedCallable
from starlette.exceptions import HTTPException

from pipeplan import __version__
from pipeplan.answers import BundledCosts, Explanation, StrategyRecord, schedules, shipped
from pipeplan.extensions.review.answers.result import Review
from pipeplan.extensions.web import edits, plans, replies, searches
from pipeplan.extensions.web.faults import UNFORESEEN, as_json, fault, faults_in, refusal
from pipeplan.extensions.web.forms import FormOut, PlanFormOut, form, plan_form, review_form
from pipeplan.extensions.web.guard import Guard
from pipeplan.extensions.web.pages import add_pages
from pipeplan.extensions.web.records import (
    ChosenReply,
    CompareReply,
    ConfigReply,
    EditBegin,
    EditReply,
    Fault,
    Faults,
    FormatEntry,
    FrontLine,
    PlanLine,
    SearchLine,
    describe_records,
    replied,
)
from pipeplan.extensions.web.replies import Reply
from pipeplan.extensions.web.requests import (
    FILE_LIMIT,
    MOST_SECONDS,
    ChosenIn,
    CompareIn,
    DownloadIn,
    EditIn,
    ExplainIn,
    FileIn,
    FrontIn,
    PlanIn,
    RequestError,
    RequestRecord,
    ReviewIn,
    SchedulesIn,
    SearchIn,
    parsed,
    request_schemas,
)
from pipeplan.extensions.web.schedules import require_servable
from pipeplan.extensions.web.streams import NDJSON, Sessions, streamed
from pipeplan.extensions.web.workers import TooSlowError, WorkError, Workers
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.records import Record

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Loopback names of this machine."""

_LOG = logging.getLogger("pipeplan.extensions.web")

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: replied(Faults, "Unreadable request"),
    403: replied(Faults, "Request from another page, or to another host name"),
    413: replied(Faults, "Request too large"),
    422: replied(Faults, "Invalid request: each field with a message"),
    503: replied(Faults, "Server busy, or out of memory"),
    504: replied(Faults, "Answer takes too long"),
}


def create_app(*, hosts: Iterable[str] = LOOPBACK, any_address: bool = False, workers: Workers | None = None) -> Guard:
    """Return the app behind its guard, for any ASGI server."""
    return Guard(create_api(workers or Workers()), hosts, any_address=any_address)


def create_api(workers: Workers) -> FastAPI:
    """Return the app without its guard. Plans and searches run in their own processes and delay no other request."""
    planners = Workers(1, seconds=4 * MOST_SECONDS, waiting=2)
    searchers = Workers(2, seconds=2 * MOST_SECONDS, waiting=2)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Pages are answered meanwhile; a first comparison waits for its process as it would without this.
        starting = asyncio.create_task(workers.start(replies.compare, CompareIn(schedules=["1f1b"])))
        yield
        starting.cancel()
        with suppress(asyncio.CancelledError, WorkError, TooSlowError):
            await starting
        workers.end()
        planners.end()
        searchers.end()

    app = FastAPI(
        title="pipeplan",
        version=__version__,
        description="Pipeline-parallel training schedules: figures, timelines, explanations and files.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    _add_handlers(app)
    add_pages(app)
    _add_schedules(app, workers)
    _add_edits(app, workers)
    _add_reviews(app, workers)
    _add_plans(app, workers, planners)
    _add_searches(app, searchers)
    describe_records(app, request_schemas)
    return app


def _add_handlers(app: FastAPI) -> None:
    async def invalid(_: Request, error: Any) -> Response:
        return refusal(422, *faults_in(error.errors()))

    async def invalid_body(_: Request, error: Any) -> Response:
        return refusal(422, *error.faults)

    async def wrong(_: Request, error: Any) -> Response:
        return refusal(422, fault(error))

    async def refused(_: Request, error: Any) -> Response:
        messages = {404: "no such page", 405: "method not allowed"}
        message = messages.get(error.status_code, "the request cannot be read")
        answer = refusal(error.status_code, Fault(field="", message=message))
        answer.headers.update(error.headers or {})
        return answer

    async def unanswered(_: Request, error: Exception) -> Response:
        return refusal(504 if isinstance(error, TooSlowError) else 503, Fault(field="", message=str(error)))

    async def unforeseen(_: Request, error: Exception) -> Response:
        _LOG.error(UNFORESEEN, exc_info=error)
        return refusal(500, Fault(field="", message=f"{UNFORESEEN}; please report it"))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(RequestError, invalid_body)
    app.add_exception_handler(PipeplanError, wrong)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(WorkError, unanswered)
    app.add_exception_handler(Exception, unforeseen)


def _add_schedules(app: FastAPI, workers: Workers) -> None:
    @app.get("/api/schedules", responses={200: replied(StrategyRecord, several=True)}, summary="All schedules")
    async def list_schedules() -> Response:
        """Return every schedule, in the order of the documentation."""
        return _listed(schedules().schedules)

    @app.get("/api/formats", responses={200: replied(FormatEntry, several=True)}, summary="All formats")
    async def list_formats() -> Response:
        """Return every download format, in the order of a menu."""
        return _listed(replies.downloads())

    @app.get("/api/settings", summary="All settings")
    async def list_settings() -> FormOut:
        """Return every field of the form, in its group."""
        return form()

    @app.get("/api/presets", responses={200: replied(BundledCosts, several=True)}, summary="All presets")
    async def list_presets() -> Response:
        """Return the built-in costs: measured profiles, and configurations whose costs are predicted."""
        return _listed(shipped())

    @app.get("/api/presets/{name}", responses={200: replied(ConfigReply), **_REFUSALS}, summary="The costs of a preset")
    async def preset(name: Annotated[str, Path(max_length=80)]) -> Response:
        """Return the settings of a preset, as in a config file."""
        return _response(await workers.ask(replies.preset, name))

    @_post(app, "/api/compare", CompareIn, replied(CompareReply), "Compare schedules")
    async def compare(request: Annotated[CompareIn, _body(CompareIn)]) -> Response:
        """Return figures of every schedule, why others have none, and timelines to draw."""
        _refuse_too_large(request)
        return _response(await workers.ask(replies.compare, request))

    @_post(app, "/api/shape", FileIn, replied(ConfigReply), "The shape of a schedule file")
    async def shape(file: Annotated[FileIn, _body(FileIn)]) -> Response:
        """Return the ranks and microbatches of a schedule or timeline, as settings."""
        return _response(await workers.ask(replies.shape, file))

    @_post(app, "/api/explain", ExplainIn, replied(Explanation), "Explain one schedule")
    async def explain(request: Annotated[ExplainIn, _body(ExplainIn)]) -> Response:
        """Return why each rank idles, the critical path, and what would help."""
        _refuse_too_large(request)
        return _response(await workers.ask(replies.explain, request))

    @_post(app, "/api/download", DownloadIn, _FILE, "Download a file")
    async def download(request: Annotated[DownloadIn, _body(DownloadIn)]) -> Response:
        """Return a picture, a page, or a schedule in another tool's format."""
        _refuse_too_large(request)
        return _response(await workers.ask(replies.download, request))

    @app.post(
        "/api/config",
        responses={200: replied(ConfigReply), **_REFUSALS},
        openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
        summary="Read a config or profile file",
    )
    async def config(
        request: Request,
        name: str = Query(
            min_length=1, max_length=80, description="Name of the file; the suffix selects the language."
        ),
    ) -> Response:
        """Return the settings of a YAML, TOML or JSON file, which is the body of the request."""
        content = await request.body()
        if len(content) > FILE_LIMIT:
            return refusal(413, Fault(field="file", message=f"a file has at most {FILE_LIMIT >> 20} MiB"))
        return _response(await workers.ask(replies.config, (name, content)))


def _add_edits(app: FastAPI, workers: Workers) -> None:
    @_post(app, "/api/edit/begin", ExplainIn, replied(EditBegin), "Begin an edit")
    async def begin_edit(request: Annotated[ExplainIn, _body(ExplainIn)]) -> Response:
        """Return the text of one schedule, one line per rank, and its shape."""
        _refuse_too_large(request)
        return _response(await workers.ask(edits.begin, request))

    @_post(app, "/api/edit", EditIn, replied(EditReply), "Validate an edited schedule")
    async def edit(request: Annotated[EditIn, _body(EditIn)]) -> Response:
        """Return whether a text is valid, its times, the effect of the last change, and each flaw with its words."""
        return _response(await workers.ask(edits.judge, request))


def _add_reviews(app: FastAPI, workers: Workers) -> None:
    @app.get("/api/review/settings", summary="All settings of a review")
    async def list_review_settings() -> FormOut:
        """Return every field of the form of a review, in its group."""
        return review_form()

    @_post(app, "/api/review", ReviewIn, replied(Review), "Review a configuration")
    async def review(request: Annotated[ReviewIn, _body(ReviewIn)]) -> Response:
        """Return what is wrong with a configuration's text, at its lines, and the patch. Nothing in it is executed."""
        return _response(await workers.ask(plans.review, request))


def _add_plans(app: FastAPI, workers: Workers, planners: Workers) -> None:
    @app.get("/api/plan/settings", summary="All settings of a plan")
    async def list_plan_settings() -> PlanFormOut:
        """Return every field of the form of a plan, in its group, and the parts of its bars."""
        return plan_form()

    @_post(app, "/api/plan", PlanIn, _lines(PlanLine), "Plan")
    async def plan(request: Annotated[PlanIn, _body(PlanIn)]) -> Response:
        """Choose the configuration to train with. Answers lines of JSON: `progress` repeatedly, then the `plan`.

        Closing the connection ends the work.
        """
        return await streamed(planners.stream(plans.make_plan, request))

    @_post(app, "/api/plan/chosen", ChosenIn, replied(ChosenReply), "Look at a configuration")
    async def chosen(request: Annotated[ChosenIn, _body(ChosenIn)]) -> Response:
        """Return the estimate of one configuration, its trainer flags and its timeline."""
        return _response(await workers.ask(plans.look_at, request))


def _add_searches(app: FastAPI, searchers: Workers) -> None:
    sessions = Sessions()

    @_post(app, "/api/search", SearchIn, _lines(SearchLine), "Search for a better schedule")
    async def search(request: Annotated[SearchIn, _body(SearchIn)]) -> Response:
        """Search under the memory limit. Answers lines of JSON: `progress` and the `best` so far, then `found`.

        Closing the connection ends the search; the server keeps nothing of it.
        """
        return await streamed(sessions.alone(request.session, searchers.stream(searches.make_search, request)))

    @_post(app, "/api/front", FrontIn, _lines(FrontLine), "Time against memory")
    async def front(request: Annotated[FrontIn, _body(FrontIn)]) -> Response:
        """Search under several memory limits. Answers lines of JSON: `progress`, each `point`, then the `front`.

        Closing the connection ends the search; the server keeps nothing of it.
        """
        return await streamed(sessions.alone(request.session, searchers.stream(searches.make_front, request)))


def _body(record: type[RequestRecord]) -> Any:
    """Return the parameter of a route that is a request of this type."""

    async def read(request: Request) -> RequestRecord:
        media = request.headers.get("content-type", "application/json")
        if media.partition(";")[0].strip().lower() != "application/json":
            raise RequestError(Fault(field="", message="the request is not JSON"))
        return parsed(record, await request.body())

    return Depends(read)


def _post(
    app: FastAPI, path: str, record: type[RequestRecord], reply: dict[str, Any], summary: str
) -> Callable[[DecoratedCallable], DecoratedCallable]:
    """Return the decorator of a route that takes a request of this type."""
    schema = {"$ref": f"#/components/schemas/{record.__name__}"}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": True}}
    return app.post(path, responses={200: reply, **_REFUSALS}, openapi_extra=body, summary=summary)


def _lines(record: type[Record]) -> dict[str, Any]:
    """Return the description of an answer in lines."""
    return replied(record, "Lines of JSON: `progress`, then the answer; or `errors`", media=NDJSON)


_WARNINGS = "pipeplan-warnings"

_FILE = {
    "description": "The file",
    "content": {media.partition(";")[0]: {} for media in replies.media()},
    "headers": {
        _WARNINGS: {
            "description": "What the user must know of the file: a JSON array of sentences, percent-encoded",
            "schema": {"type": "string"},
        }
    },
}


def _refuse_too_large(request: SchedulesIn) -> None:
    if request.schedules or not request.files:
        require_servable(request.schedules, request.costs())


def _response(reply: Reply) -> Response:
    headers = {"content-disposition": f'attachment; filename="{reply.filename}"'} if reply.filename else {}
    if reply.warnings:
        headers[_WARNINGS] = quote(as_json(reply.warnings))
    return Response(reply.body, reply.status, headers, reply.media)


def _listed(records: Sequence[Record]) -> Response:
    return Response(as_json(records), media_type="application/json")
