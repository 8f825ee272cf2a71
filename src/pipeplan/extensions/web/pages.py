"""Pages of the app, their scripts and styles, and the reference of the API; all are files of this package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

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
    """Add the pages of the core and of extensions that are installed, their assets, and the reference at ``/api``."""
    held = _assets()
    shown = {path: page for path, page in _PAGES.items() if not page.extension or extension(page.extension)}
    links = {path: page.link for path, page in shown.items()} | {"/api": "API"}

    for path, page in shown.items():
        app.add_api_route(path, _filled(path, page, links).answer, include_in_schema=False)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        if name not in held:
            raise HTTPException(404)
        return await held[name].answer(request)

    @app.get("/api", include_in_schema=False)
    async def reference() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))


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
