"""The app: its JSON API, and how an error becomes an answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from pipeplan import __version__
from pipeplan.api import BundledCosts, Explanation, StrategyRecord, schedules, shipped
from pipeplan.errors import PipeplanError
from pipeplan.records import Record
from pipeplan.web import plans, replies, searches
from pipeplan.web.downloads import download as make_download
from pipeplan.web.downloads import downloads, media
from pipeplan.web.edits import add_edits
from pipeplan.web.faults import UNFORESEEN, fault, faults_in, refusal
from pipeplan.web.form import FormOut, form
from pipeplan.web.guard import Guard
from pipeplan.web.json_answers import as_json
from pipeplan.web.pages import add_pages
from pipeplan.web.plan_form import PlanFormOut, plan_form
from pipeplan.web.plan_requests import ChosenIn, PlanIn
from pipeplan.web.records import (
    ChosenReply,
    CompareReply,
    ConfigReply,
    Fault,
    Faults,
    FormatEntry,
    FrontLine,
    PlanLine,
    SearchLine,
    describe_records,
    replied,
)
from pipeplan.web.replies import Reply
from pipeplan.web.request_size import require_servable
from pipeplan.web.requests import FILE_LIMIT, CompareIn, DownloadIn, ExplainIn, Question
from pipeplan.web.search_requests import MOST_SECONDS, FrontIn, SearchIn
from pipeplan.web.streams import NDJSON, Sessions, streamed
from pipeplan.web.workers import TooSlowError, WorkError, Workers

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine for itself."""

_LOG = logging.getLogger("pipeplan.web")

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: replied(Faults, "It cannot be read"),
    403: replied(Faults, "It came from another page, or was sent to another name"),
    413: replied(Faults, "It is too large"),
    422: replied(Faults, "Something in it is wrong: the field and why"),
    503: replied(Faults, "The server has too much to do, or too little memory"),
    504: replied(Faults, "The answer would take too long"),
}


def create_app(*, hosts: Iterable[str] = LOOPBACK, any_address: bool = False, workers: Workers | None = None) -> Guard:
    """The whole app with its guard, for any ASGI server.

    Parameters
    ----------
    hosts, any_address
        The names that the server is known by; see :class:`~pipeplan.web.guard.Guard`.
    workers
        The processes that answer; two by default.
    """
    return Guard(create_api(workers or Workers()), hosts, any_address=any_address)


def create_api(workers: Workers) -> FastAPI:
    """The app without its guard. Plans and searches have processes of their own, so that nobody waits for one."""
    planners = Workers(1, seconds=4 * plans.MOST_SECONDS, waiting=2)
    searchers = Workers(2, seconds=2 * MOST_SECONDS, waiting=2)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await workers.start(replies.compare, CompareIn(schedules=["1f1b"]))
        yield
        workers.end()
        planners.end()
        searchers.end()

    app = FastAPI(
        title="pipeplan",
        version=__version__,
        description="Pipeline-parallel training schedules: figures, timelines, reasons and files.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    _add_handlers(app)
    add_pages(app)
    _add_questions(app, workers)
    add_edits(app, workers, _REFUSALS)
    _add_plans(app, workers, planners)
    _add_searches(app, searchers)
    describe_records(app)
    return app


def _add_handlers(app: FastAPI) -> None:
    async def invalid(_: Request, error: Any) -> Response:
        return refusal(422, *faults_in(error.errors()))

    async def wrong(_: Request, error: Any) -> Response:
        return refusal(422, fault(error))

    async def refused(_: Request, error: Any) -> Response:
        said = {404: "there is no such page", 405: "this page does not take such a request"}
        answer = refusal(error.status_code, Fault(field="", message=said.get(error.status_code, "it cannot be read")))
        answer.headers.update(error.headers or {})
        return answer

    async def unanswered(_: Request, error: Exception) -> Response:
        return refusal(504 if isinstance(error, TooSlowError) else 503, Fault(field="", message=str(error)))

    async def unforeseen(_: Request, error: Exception) -> Response:
        _LOG.error(UNFORESEEN, exc_info=error)
        return refusal(500, Fault(field="", message=f"{UNFORESEEN}; please report it"))

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(PipeplanError, wrong)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(WorkError, unanswered)
    app.add_exception_handler(Exception, unforeseen)


def _add_questions(app: FastAPI, workers: Workers) -> None:
    @app.get("/api/schedules", responses={200: replied(StrategyRecord, several=True)}, summary="All schedules")
    async def list_schedules() -> Response:
        """Every schedule that can be asked for, in the order of the documentation."""
        return _listed(schedules().schedules)

    @app.get("/api/formats", responses={200: replied(FormatEntry, several=True)}, summary="All formats")
    async def list_formats() -> Response:
        """Every format that a file can be downloaded in, in the order of a menu."""
        return _listed(downloads())

    @app.get("/api/settings", summary="All settings")
    async def list_settings() -> FormOut:
        """Every setting that a form has a field for, in its group."""
        return form()

    @app.get("/api/presets", responses={200: replied(BundledCosts, several=True)}, summary="All presets")
    async def list_presets() -> Response:
        """Costs that come with pipeplan, by name: measured profiles, and configurations whose costs are predicted."""
        return _listed(shipped())

    @app.get("/api/presets/{name}", responses={200: replied(ConfigReply), **_REFUSALS}, summary="The costs of a preset")
    async def preset(name: Annotated[str, Path(max_length=80)]) -> Response:
        """The settings that a preset stands for, as a config file has them."""
        return _response(await workers.ask(replies.preset, name))

    @app.post("/api/compare", responses={200: replied(CompareReply), **_REFUSALS}, summary="Compare schedules")
    async def compare(question: CompareIn) -> Response:
        """Figures of every schedule, why others cannot be had, and timelines to draw."""
        _refuse_too_large(question)
        return _response(await workers.ask(replies.compare, question))

    @app.post("/api/explain", responses={200: replied(Explanation), **_REFUSALS}, summary="Explain one schedule")
    async def explain(question: ExplainIn) -> Response:
        """Why each rank idles, the critical path, and what would help."""
        _refuse_too_large(question)
        return _response(await workers.ask(replies.explain, question))

    @app.post("/api/download", responses={200: _FILE, **_REFUSALS}, summary="Download a file")
    async def download(question: DownloadIn) -> Response:
        """A picture, a page, or a schedule in another tool's format."""
        _refuse_too_large(question)
        return _response(await workers.ask(make_download, question))

    @app.post(
        "/api/config",
        responses={200: replied(ConfigReply), **_REFUSALS},
        openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
        summary="Read a config or profile file",
    )
    async def config(
        request: Request,
        name: str = Query(min_length=1, max_length=80, description="Its name; the ending tells the language."),
    ) -> Response:
        """The settings of a YAML, TOML or JSON file, which is the body of the request."""
        content = await request.body()
        if len(content) > FILE_LIMIT:
            return refusal(413, Fault(field="file", message=f"a file has at most {FILE_LIMIT >> 20} MiB"))
        return _response(await workers.ask(replies.config, (name, content)))


def _add_plans(app: FastAPI, workers: Workers, planners: Workers) -> None:
    @app.get("/api/plan/settings", summary="All settings of a plan")
    async def list_plan_settings() -> PlanFormOut:
        """Every setting of a plan that a form has a field for, in its group, and the parts of its bars."""
        return plan_form()

    @app.post("/api/plan", responses={200: _lines(PlanLine), **_REFUSALS}, summary="Plan")
    async def plan(question: PlanIn) -> Response:
        """The configuration to train with, as lines of JSON: `progress` while it is made, `plan` at its end.

        Who closes the connection ends the work.
        """
        return await streamed(planners.stream(plans.make_plan, question))

    @app.post("/api/plan/chosen", responses={200: replied(ChosenReply), **_REFUSALS}, summary="Look at a configuration")
    async def chosen(question: ChosenIn) -> Response:
        """One configuration: its estimate, the flags to paste, and its timeline."""
        return _response(await workers.ask(plans.look_at, question))


def _add_searches(app: FastAPI, searchers: Workers) -> None:
    sessions = Sessions()

    @app.post("/api/search", responses={200: _lines(SearchLine), **_REFUSALS}, summary="Search for a better schedule")
    async def search(question: SearchIn) -> Response:
        """A better schedule under the memory limit, as lines of JSON: `progress` and the `best` so far, then `found`.

        Who closes the connection ends the work; nothing of it is kept.
        """
        return await streamed(sessions.alone(question.session, searchers.stream(searches.make_search, question)))

    @app.post("/api/front", responses={200: _lines(FrontLine), **_REFUSALS}, summary="Time against memory")
    async def front(question: FrontIn) -> Response:
        """The best schedule under each of several limits, as lines of JSON: `progress`, each `point`, then the `front`.

        Who closes the connection ends the work; nothing of it is kept.
        """
        return await streamed(sessions.alone(question.session, searchers.stream(searches.make_front, question)))


def _lines(record: type[Record]) -> dict[str, Any]:
    """Return how a route describes an answer that comes line by line."""
    return replied(record, "Lines of JSON: `progress`, then the answer; or `errors`", media=NDJSON)


_FILE = {"description": "The file", "content": {each.partition(";")[0]: {} for each in media()}}


def _refuse_too_large(question: Question) -> None:
    """Refuse what is too large before any work."""
    if question.schedules or not question.files:
        require_servable(question.schedules, question.settings.settings())


def _response(reply: Reply) -> Response:
    headers = {"content-disposition": f'attachment; filename="{reply.filename}"'} if reply.filename else {}
    return Response(reply.body, reply.status, headers, reply.media)


def _listed(records: Sequence[Record]) -> Response:
    return Response(as_json(records), media_type="application/json")
