"""The app: its JSON API, and the answers to errors. It has the routes of the extensions that are installed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from pipeplan import __version__
from pipeplan.answers import BundledCosts, Explanation, StrategyRecord, schedules, shipped
from pipeplan.answers.published import allowed_needs
from pipeplan.costs import SETTINGS
from pipeplan.extensions.web import edits, replies
from pipeplan.extensions.web.faults import UNFORESEEN, as_json, fault, faults_in, refusal
from pipeplan.extensions.web.forms import FormOut, form_of
from pipeplan.extensions.web.guard import Guard
from pipeplan.extensions.web.pages import add_pages
from pipeplan.extensions.web.records import (
    CompareReply,
    ConfigReply,
    DrawReply,
    EditBegin,
    EditReply,
    Fault,
    Faults,
    FormatEntry,
    describe_records,
    replied,
)
from pipeplan.extensions.web.requests import (
    FILE_LIMIT,
    MOST_SECONDS,
    CompareIn,
    DownloadIn,
    DrawIn,
    EditIn,
    ExplainIn,
    FileIn,
    RequestError,
    SchedulesIn,
    request_schemas,
)
from pipeplan.extensions.web.routes import REFUSALS, WARNINGS, AppPart, body_of, post, response
from pipeplan.extensions.web.schedules import require_servable, servable
from pipeplan.extensions.web.workers import Pools, TooSlowError, WorkError, Workers
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.extensions import extension, loaded
from pipeplan.foundation.records import Record
from pipeplan.strategies import STRATEGIES

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Loopback names of this machine."""

_LOG = logging.getLogger("pipeplan.extensions.web")


def create_app(*, hosts: Iterable[str] = LOOPBACK, any_address: bool = False, workers: Workers | None = None) -> Guard:
    """Return the app behind its guard, for any ASGI server."""
    return Guard(create_api(workers or Workers()), hosts, any_address=any_address)


def create_api(workers: Workers) -> FastAPI:
    """Return the app without its guard. Plans and searches run in their own processes and delay no other request."""
    pools = Pools(
        workers,
        plans=Workers(1, seconds=4 * MOST_SECONDS, waiting=2),
        searches=Workers(2, seconds=2 * MOST_SECONDS, waiting=2),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Pages are answered meanwhile; a first comparison waits for its process as it would without this.
        starting = asyncio.create_task(workers.start(replies.compare, CompareIn(schedules=["1f1b"])))
        yield
        starting.cancel()
        with suppress(asyncio.CancelledError, WorkError, TooSlowError):
            await starting
        pools.end()

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
    parts: list[AppPart] = [_CORE, *(loaded(address) for name, address in _PARTS.items() if extension(name))]
    for part in parts:
        part.add_routes(app, pools)
    requests = [record for part in parts for record in part.requests]
    options = {name: table for part in parts for name, table in part.options.items()}
    describe_records(
        app, [record for part in parts for record in part.replies], partial(request_schemas, requests, options)
    )
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


def _add_schedules(app: FastAPI, pools: Pools) -> None:
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
        return form_of(setting for setting in SETTINGS.values() if setting.in_form)

    @app.get("/api/presets", responses={200: replied(BundledCosts, several=True)}, summary="All presets")
    async def list_presets() -> Response:
        """Return the built-in costs: measured profiles, and configurations whose costs are predicted."""
        return _listed(shipped())

    @app.get("/api/presets/{name}", responses={200: replied(ConfigReply), **REFUSALS}, summary="The costs of a preset")
    async def preset(name: Annotated[str, Path(max_length=80)]) -> Response:
        """Return the settings of a preset, as in a config file."""
        return response(await pools.answers.ask(replies.preset, name))

    @post(app, "/api/compare", CompareIn, replied(CompareReply), "Compare schedules")
    async def compare(request: Annotated[CompareIn, body_of(CompareIn)]) -> Response:
        """Return figures of every schedule, why others have none, and timelines to draw.

        Of a large shape, it returns the schedules that this server can hold, and says which are left out.
        """
        if request.schedules or not request.files:
            settings = request.costs()
            servable(request.schedules or STRATEGIES, settings, allowed_needs(request.allow, settings))
        return response(await pools.answers.ask(replies.compare, request))

    @post(app, "/api/draw", DrawIn, replied(DrawReply), "Draw schedules")
    async def draw(request: Annotated[DrawIn, body_of(DrawIn)]) -> Response:
        """Return the timelines of schedules."""
        _refuse_too_large(request)
        return response(await pools.answers.ask(replies.draw, request))

    @post(app, "/api/shape", FileIn, replied(ConfigReply), "The shape of a schedule file")
    async def shape(file: Annotated[FileIn, body_of(FileIn)]) -> Response:
        """Return the ranks and microbatches of a schedule or timeline, as settings."""
        return response(await pools.answers.ask(replies.shape, file))

    @post(app, "/api/explain", ExplainIn, replied(Explanation), "Explain one schedule")
    async def explain(request: Annotated[ExplainIn, body_of(ExplainIn)]) -> Response:
        """Return why each rank idles, the critical path, and what would help."""
        _refuse_too_large(request)
        return response(await pools.answers.ask(replies.explain, request))

    @post(app, "/api/download", DownloadIn, _FILE, "Download a file")
    async def download(request: Annotated[DownloadIn, body_of(DownloadIn)]) -> Response:
        """Return a picture, a page, or a schedule in another tool's format."""
        _refuse_too_large(request)
        return response(await pools.answers.ask(replies.download, request))

    @app.post(
        "/api/config",
        responses={200: replied(ConfigReply), **REFUSALS},
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
        return response(await pools.answers.ask(replies.config, (name, content)))


def _add_edits(app: FastAPI, pools: Pools) -> None:
    @post(app, "/api/edit/begin", ExplainIn, replied(EditBegin), "Begin an edit")
    async def begin_edit(request: Annotated[ExplainIn, body_of(ExplainIn)]) -> Response:
        """Return the text of one schedule, one line per rank, and its shape."""
        _refuse_too_large(request)
        return response(await pools.answers.ask(edits.begin, request))

    @post(app, "/api/edit", EditIn, replied(EditReply), "Validate an edited schedule")
    async def edit(request: Annotated[EditIn, body_of(EditIn)]) -> Response:
        """Return whether a text is valid, its times, the effect of the last change, and each flaw with its words."""
        return response(await pools.answers.ask(edits.judge, request))


_FILE = {
    "description": "The file",
    "content": {media.partition(";")[0]: {} for media in replies.media()},
    "headers": {
        WARNINGS: {
            "description": "What the user must know of the file: a JSON array of sentences, percent-encoded",
            "schema": {"type": "string"},
        }
    },
}


def _refuse_too_large(request: SchedulesIn) -> None:
    if request.schedules or not request.files:
        require_servable(request.schedules, request.costs())


def _listed(records: Sequence[Record]) -> Response:
    return Response(as_json(records), media_type="application/json")


def _add_routes(app: FastAPI, pools: Pools) -> None:
    _add_schedules(app, pools)
    _add_edits(app, pools)


_CORE = AppPart(
    add_routes=_add_routes,
    requests=(CompareIn, DownloadIn, DrawIn, EditIn, ExplainIn, FileIn),
    replies=(
        BundledCosts,
        CompareReply,
        ConfigReply,
        DrawReply,
        EditBegin,
        EditReply,
        Explanation,
        Faults,
        FormatEntry,
        StrategyRecord,
    ),
    options={"SettingsIn": SETTINGS},
)

_PARTS = {
    "review": "pipeplan.extensions.web.reviews:PART",
    "planning": "pipeplan.extensions.web.plans:PART",
    "search": "pipeplan.extensions.web.searches:PART",
}
"""Parts of the app by the extension that they show."""
