"""Write the TypeScript types of what the web app answers, from its OpenAPI document.

``python .ci/records_ts.py`` writes them; with ``--check`` it fails where the written file is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipeplan.drawing import KIND_TITLES, REASON_TITLES
from pipeplan.web.app import create_api
from pipeplan.web.workers import Workers

PATH = Path(__file__).parents[1] / "web_ui" / "src" / "records.ts"

HEAD = """/** What the server answers. Made from its records by `make web-ui`; do not edit it. */

import type { TimelineData } from "./data.js";

export type Value = number | string | boolean | readonly (number | string)[];
export type Settings = Readonly<Record<string, Value>>;
"""

WRITTEN_ELSEWHERE = {"TimelineData", "Settings"}
"""Types that TypeScript declares by itself."""

Schema = dict[str, Any]


def typescript() -> str:
    """Return the module: a type for each record of a reply, in the order of the alphabet."""
    document = create_api(Workers()).openapi()
    schemas = document["components"]["schemas"]
    answers = [
        operation["responses"][status]["content"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status in operation["responses"]
        if "content" in operation["responses"][status]
    ]
    titles = {"KIND_TITLES": {kind.name: title for kind, title in KIND_TITLES.items()}, "REASON_TITLES": REASON_TITLES}
    constants = [
        f"export const {name}: Readonly<Record<string, string>> = {json.dumps(texts, indent=2)};\n"
        for name, texts in titles.items()
    ]
    return "\n".join([HEAD, *constants, *(_declared(name, schemas[name]) for name in sorted(_names(answers, schemas)))])


def _names(holds: Any, schemas: dict[str, Schema]) -> set[str]:
    """Return the names of the schemas that a part of the document refers to, and those that they refer to in turn."""
    found: set[str] = set()
    waiting = [holds]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = part.get("$ref", "").rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(schemas[name])
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return found


def _declared(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f"{_comment(schema, '')}export type {name} = {_type(schema)};\n"
    # A field with a default is always written; one that may be left out has none.
    required = schema.get("required", ())
    fields = "".join(
        f"{_comment(holds, '  ')}  readonly {key}{'' if key in required or 'default' in holds else '?'}: {_type(holds)};\n"
        for key, holds in schema["properties"].items()
    )
    return f"{_comment(schema, '')}export type {name} = {{\n{fields}}};\n"


def _comment(schema: Schema, indent: str) -> str:
    text = " ".join(schema.get("description", "").partition("\n\n")[0].replace("``", "`").split())
    return f"{indent}/** {text} */\n" if text else ""


def _type(schema: Schema) -> str:
    title = str(schema.get("$ref", schema.get("title", ""))).rpartition("/")[2]
    if "$ref" in schema or title in WRITTEN_ELSEWHERE:
        return title
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "enum" in schema or "const" in schema:
        return " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "")
    if kind == "array" and "prefixItems" in schema:
        return f"readonly [{', '.join(map(_type, schema['prefixItems']))}]"
    if kind == "array":
        part = _part(schema.get("items"))
        return f"readonly {f'({part})' if ' ' in part else part}[]"
    if kind == "object":
        return f"Readonly<Record<string, {_part(schema.get('additionalProperties'))}>>"
    return {"integer": "number", "": "unknown"}.get(kind, kind)


def _part(schema: Any) -> str:
    return _type(schema) if isinstance(schema, dict) and schema else "unknown"


if __name__ == "__main__":
    text = typescript()
    if "--check" not in sys.argv:
        PATH.write_text(text, encoding="utf-8")
    elif not PATH.exists() or PATH.read_text(encoding="utf-8") != text:
        sys.exit(f"{PATH.name} differs from the records of the web app: run 'make web-ui' and commit the result")
