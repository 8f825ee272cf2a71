"""The reference of pipeplan's own JSON: each schema's fields as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = """# JSON schemas

What pipeplan writes as JSON of its own, each with its [JSON Schema](https://json-schema.org/draft/2020-12/schema). A
field that may be left out is not there unless it says something.
"""


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """The path and the text of the page."""
    parts = [PAGE]
    for path in sorted((root / "docs" / "schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {path.stem}\n\n{schema['title']}: [{path.name}](../schema/{path.name}).\n")
        parts += [_record(name, record) for name, record in _ordered(schema)]
    yield "reference/schemas.md", "\n".join(parts)


def _ordered(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The records of a schema that have fields, the outermost first."""
    outermost = _name(schema)
    records = schema.get("$defs", {})
    return [
        (name, records[name]) for name in sorted(records, key=lambda name: name != outermost) if _fields(records[name])
    ]


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record.get("properties", {})
    return found


def _record(name: str, record: dict[str, Any]) -> str:
    needed = set(record.get("required", ()))
    lines = ["| field | holds | |", "|---|---|---|"]
    for field, holds in _fields(record).items():
        lines.append(f"| `{field}` | {_type(holds)} | {'' if field in needed else 'may be left out'} |")
    described = " ".join(record.get("description", "").replace("``", "`").split())
    return f"### {name}\n\n{described}\n\n" + "\n".join(lines) + "\n"


def _type(holds: dict[str, Any]) -> str:
    """What a field holds, in words."""
    if "$ref" in holds:
        return _name(holds)
    if "anyOf" in holds:
        return " or ".join(dict.fromkeys(_type(each) for each in holds["anyOf"]))
    if "enum" in holds:
        return ", ".join(f"`{each}`" for each in holds["enum"])
    if holds.get("type") == "array":
        items = holds.get("items") or {}
        return f"list of {_type(items)}" if items else "list"
    if holds.get("type") == "object":
        values = holds.get("additionalProperties")
        return f"object of {_type(values)}" if isinstance(values, dict) and values else "object"
    return str(holds.get("type", "anything"))


def _name(holds: dict[str, Any]) -> str:
    return str(holds.get("$ref", "")).rpartition("/")[2]
