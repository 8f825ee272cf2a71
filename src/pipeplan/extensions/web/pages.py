"""Pages of the app, their scripts and styles; all are files of this package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from string import Template

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from pipeplan.answers import simulate, view_of_result
from pipeplan.answers.simulating.result import editable
from pipeplan.drawing.html import html_page
from pipeplan.extensions.web.guard import OWN_SCRIPTS
from pipeplan.foundation.extensions import extension, extensions

_HTML = "text/html; charset=utf-8"
_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Texts of the template of the pages, which are HTML already, and the extension that a page shows."""

    title: str
    link: str
    about: str
    skip: str
    controls: str
    script: str
    styles: str = ""
    extension: str = ""


_PAGES = {
    "/": _Page(
        title="pipeplan",
        link="Schedules",
        about="compare pipeline-parallel schedules",
        skip="Skip to the comparison",
        controls="shape, costs and schedules",
        script="app",
    ),
    "/plan": _Page(
        title="pipeplan: plan",
        link="Plan",
        about="choose the configuration to train with, for a model on a cluster",
        skip="Skip to the plan",
        controls="model, cluster and limits",
        script="plan",
        styles='<link rel="stylesheet" href="/assets/plan.css">',
        extension="planning",
    ),
    "/review": _Page(
        title="pipeplan: review",
        link="Review",
        about="review the launch script or recipe that you already have",
        skip="Skip to the review",
        controls="trainer, model and cluster",
        script="review",
        styles='<link rel="stylesheet" href="/assets/review.css">',
        extension="review",
    ),
}


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media: str
    tag: str

    async def answer(self, request: Request) -> Response:
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media, headers=headers)


def add_pages(app: FastAPI) -> None:
    """Add the pages of the core and of extensions that are installed, and their assets."""
    held = _assets()
    shown = {path: page for path, page in _PAGES.items() if not page.extension or extension(page.extension)}
    links = {path: page.link for path, page in shown.items()} | {"/api/openapi.json": "API"}

    for path, page in shown.items():
        app.add_api_route(path, _filled(path, page, links).answer, include_in_schema=False)

    @app.get("/order", include_in_schema=False)
    def order_page() -> Response:
        """Return a page that shows the order in the fragment of its address, as the pages that ``simulate`` writes do."""
        return Response(_order_page(), media_type=_HTML, headers=_OF_ORDERS)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        if name not in held:
            raise HTTPException(404)
        return await held[name].answer(request)


_OF_ORDERS = {"cache-control": "no-cache", "content-security-policy": OWN_SCRIPTS}


@cache
def _order_page() -> str:
    result = simulate("1f1b", ranks=4, microbatches=8)
    return html_page(editable(result, view_of_result(result, reasons=True)))


def _filled(path: str, page: _Page, links: Mapping[str, str]) -> _Asset:
    """Fill the template for a page."""
    template = (files("pipeplan.extensions.web") / "assets" / "page.html").read_text(encoding="utf-8")
    anchors = [f'<a href="{to}"{" aria-current=page" if to == path else ""}>{title}</a>' for to, title in links.items()]
    text = Template(template).substitute(
        {field.name: getattr(page, field.name) for field in fields(page)},
        links="".join(anchors),
        extensions=" ".join(present.name for present in extensions()),
    )
    return _asset(text.encode(), _HTML)


def _assets() -> dict[str, _Asset]:
    folders = (files("pipeplan.extensions.web") / "assets", files("pipeplan.drawing.html") / "assets")
    contents = [file for folder in folders for file in folder.iterdir()]
    return {
        file.name: _asset(file.read_bytes(), _TYPES[ending])
        for file in contents
        if (ending := file.name.rpartition(".")[2]) in _TYPES
    }


def _asset(content: bytes, media: str) -> _Asset:
    return _Asset(content, media, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
