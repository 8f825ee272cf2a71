"""The OpenAPI description as a page: plain HTML without a script, needing nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

Document = Mapping[str, Any]

_PAGE = """<!doctype html>
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
    """The page of an OpenAPI document: each operation with its inputs and answers, then the schemas."""
    info = document["info"]
    return _PAGE.format(
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
    """What an operation takes and answers, as terms with their meaning."""
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
    """A schema in a few words, with a link where it has a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return escape(str(schema.get("type", "")))
