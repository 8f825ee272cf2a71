"""The page, its script and style, and the description of the API: files of this package, nothing from elsewhere."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from string import Template

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from pipeplan.web.reference import reference_page

_HTML = "text/html; charset=utf-8"
_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class _Page:
    """What the template of the pages is filled with."""

    title: str
    about: str
    skip: str
    controls: str
    script: str
    styles: tuple[str, ...] = ()


_PAGES = {
    "/": _Page(
        "pipeplan",
        "pipeline-parallel schedules, side by side",
        "Skip to the comparison",
        "shape, costs and schedules",
        "app",
    ),
    "/plan": _Page(
        "pipeplan: plan",
        "from a model and a cluster to the configuration to train with",
        "Skip to the plan",
        "model, cluster and limits",
        "plan",
        ("plan",),
    ),
}
_LINKS = {"/": "Schedules", "/plan": "Plan", "/api": "API"}


@dataclass(frozen=True, slots=True)
class _Asset:
    """A file with its type and the tag that tells a browser whether it has changed."""

    content: bytes
    media: str
    tag: str

    def answer(self, request: Request) -> Response:
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media, headers=headers)


def add_pages(app: FastAPI) -> None:
    """Add the pages at ``/`` and ``/plan``, their assets, and the description of the API at ``/api``."""
    held = _assets()

    pages = {path: _filled(path, page) for path, page in _PAGES.items()}

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return pages["/"].answer(request)

    @app.get("/plan", include_in_schema=False)
    async def plan_page(request: Request) -> Response:
        return pages["/plan"].answer(request)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        if name not in held:
            raise HTTPException(404)
        return held[name].answer(request)

    @app.get("/api", include_in_schema=False)
    async def reference() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))


def _filled(path: str, page: _Page) -> _Asset:
    """The template filled for a page; what fills it is HTML already."""
    template = (files("pipeplan.web") / "assets" / "page.html").read_text(encoding="utf-8")
    links = [f'<a href="{to}"{" aria-current=page" if to == path else ""}>{title}</a>' for to, title in _LINKS.items()]
    styles = [f'<link rel="stylesheet" href="/assets/{name}.css">' for name in page.styles]
    text = Template(template).substitute(
        title=page.title,
        about=page.about,
        skip=page.skip,
        controls=page.controls,
        script=page.script,
        styles="\n".join(styles),
        links="".join(links),
    )
    return _asset(text.encode(), _HTML)


def _assets() -> dict[str, _Asset]:
    """The files of the page and of the timeline, by their names."""
    folders = (files("pipeplan.web") / "assets", files("pipeplan.drawing.html.assets"))
    found = [file for folder in folders for file in folder.iterdir()]
    return {
        file.name: _asset(file.read_bytes(), _TYPES[ending])
        for file in found
        if (ending := file.name.rpartition(".")[2]) in _TYPES
    }


def _asset(content: bytes, media: str) -> _Asset:
    return _Asset(content, media, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
