"""Pages of the app, their scripts and styles, and the reference of the API; all are files of this package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

_HTML = "text/html; charset=utf-8"
_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class _Page:
    """Texts of the template of the pages."""

    title: str
    about: str
    skip: str
    controls: str
    script: str
    styles: tuple[str, ...] = ()


_PAGES = {
    "/": _Page(
        "pipeplan",
        "compare pipeline-parallel schedules",
        "Skip to the comparison",
        "shape, costs and schedules",
        "app",
    ),
    "/plan": _Page(
        "pipeplan: plan",
        "choose the configuration to train with, for a model on a cluster",
        "Skip to the plan",
        "model, cluster and limits",
        "plan",
        ("plan",),
    ),
    "/review": _Page(
        "pipeplan: review",
        "review the launch script or recipe that you already have",
        "Skip to the review",
        "trainer, model and cluster",
        "review",
        ("review",),
    ),
}
_LINKS = {"/": "Schedules", "/plan": "Plan", "/review": "Review", "/api": "API"}


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media: str
    tag: str

    def answer(self, request: Request) -> Response:
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media, headers=headers)


def add_pages(app: FastAPI) -> None:
    """Add the pages at ``/``, ``/plan`` and ``/review``, their assets, and the reference of the API at ``/api``."""
    held = _assets()

    pages = {path: _filled(path, page) for path, page in _PAGES.items()}

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return pages["/"].answer(request)

    @app.get("/plan", include_in_schema=False)
    async def plan_page(request: Request) -> Response:
        return pages["/plan"].answer(request)

    @app.get("/review", include_in_schema=False)
    async def review_page(request: Request) -> Response:
        return pages["/review"].answer(request)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        if name not in held:
            raise HTTPException(404)
        return held[name].answer(request)

    @app.get("/api", include_in_schema=False)
    async def reference() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))


def _filled(path: str, page: _Page) -> _Asset:
    """Fill the template for a page; the texts are HTML already."""
    template = (files("pipeplan.extensions.web") / "assets" / "page.html").read_text(encoding="utf-8")
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
    folders = (files("pipeplan.extensions.web") / "assets", files("pipeplan.drawing.html") / "assets")
    contents = [file for folder in folders for file in folder.iterdir()]
    return {
        file.name: _asset(file.read_bytes(), _TYPES[ending])
        for file in contents
        if (ending := file.name.rpartition(".")[2]) in _TYPES
    }


def _asset(content: bytes, media: str) -> _Asset:
    return _Asset(content, media, f'"{hashlib.sha256(content).hexdigest()[:16]}"')


# The OpenAPI document as a page: plain HTML without a script, needing nothing from the network.

Document = Mapping[str, Any]

_REFERENCE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>pipeplan API</title>
<link rel="icon" href="/assets/favicon.svg">
<link rel="stylesheet" href="/assets/app.css">
</head>
<body class="reference">
<header><h1>pipeplan API</h1><nav><a href="/">workbench</a> <a href="/api/openapi.json">openapi.json</a></nav></header>
<main>
<p>{description} Version {version}. Every refusal is <code>{{"errors": [{{"field", "message"}}]}}</code>.</p>
{operations}
<h2>Schemas</h2>
{schemas}
</main>
</body>
</html>
"""


def reference_page(document: Document) -> str:
    """Return the page of an OpenAPI document: each operation with its inputs and answers, then the schemas."""
    info = document["info"]
    return _REFERENCE.format(
        description=escape(info["description"]),
        version=escape(info["version"]),
        operations="\n".join(_operations(document)),
        schemas="\n".join(_schemas(document)),
    )


def _operations(document: Document) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (
                f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"
                f"<p>{escape(operation.get('description') or operation['summary'])}</p>"
                f"<dl>{''.join(_parts(operation))}</dl></section>"
            )


def _parts(operation: Document) -> Iterator[str]:
    """Yield the inputs and answers of an operation, as terms with their meaning."""
    for parameter in operation.get("parameters", []):
        yield _term(f"{parameter['in']} {parameter['name']}", escape(parameter.get("description", "")))
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        yield _term("body", f"{escape(media)} {_type(body.get('schema', {}))}")
    for status, response in operation["responses"].items():
        types = " ".join(_type(body.get("schema", {})) for body in response.get("content", {}).values())
        yield _term(status, f"{escape(response['description'])} {types}")


def _term(name: str, meaning: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{meaning}</dd>"


def _schemas(document: Document) -> Iterator[str]:
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        text = escape(json.dumps(schema, indent=2))
        about = escape(schema.get("description", ""))
        yield (
            f'<details id="{escape(name)}"><summary><code>{escape(name)}</code> {about}</summary>'
            f"<pre>{text}</pre></details>"
        )


def _type(schema: Document) -> str:
    """Return a schema in a few words, with a link if it has a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return escape(str(schema.get("type", "")))
