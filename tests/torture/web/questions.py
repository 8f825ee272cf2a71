"""Requests made from the app's own description, so that a new endpoint or setting is asked the day it is added."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

from pipeplan.strategies import STRATEGIES

Document = Mapping[str, Any]

_CSV = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
_CONFIGURATION = {
    "model": "llama3-8b",
    "cluster": "h100-sxm:8x2",
    "global_batch": 64,
    "sequence": 4096,
    "pipeline": 4,
    "schedule": "1f1b",
}

_POOLS: dict[str, tuple[Any, ...]] = {
    "schedules": tuple(STRATEGIES),
    "start": tuple(STRATEGIES),
    "draw": tuple(STRATEGIES),
    "name": ("a.csv", "b.json", "mine"),
    "text": (_CSV, "0F0,0B0\n", '{"schedule": 1}', "{}", "x"),
    "rows": (_CSV.replace(",", " "), "0F0 0B0", "0F0 0I0 0W0"),
    "before": (_CSV.replace(",", " "),),
    "document": (_CONFIGURATION, {}),
    "model": ("llama3-8b", "llama3-70b"),
    "cluster": ("h100-sxm:8x2", "a100-sxm-80gb:8x4"),
    "memory_limit": ("8act", "12GiB", 3.0),
    "recompute": ("none", "all", "0-1"),
    "seconds": (0.2, 0.5),
    "points": (2, 3),
    "session": ("", "one"),
    "ranks": (1, 2, 4, 8),
    "microbatches": (1, 4, 8, 16, 32),
    "chunks": (1, 2, 3),
    "stages": (2, 4, 8),
    "slices": (1, 2, 4),
    "global_batch": (64,),
    "sequence": (4096,),
    "fix": ("pipeline=4",),
}
"""By the names of fields: values that are often right. A field without a row is filled from its schema alone."""

_SOME = 0.12
"""How often what may be left out is said."""


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked."""

    method: str
    path: str
    schema: Document | None
    """Of its JSON; None where it takes none."""
    parameters: tuple[Document, ...]
    media: str
    """Of its body; empty without one."""


class Description:
    """The OpenAPI document of the app."""

    def __init__(self, document: Document) -> None:
        self._schemas: Document = document["components"]["schemas"]
        self.operations = tuple(self._operations(document))

    def _operations(self, document: Document) -> Iterator[Operation]:
        for path, methods in document["paths"].items():
            for method, about in methods.items():
                content = about.get("requestBody", {}).get("content", {})
                media = next(iter(content), "")
                schema = content[media].get("schema") if media == "application/json" else None
                yield Operation(method.upper(), path, schema, tuple(about.get("parameters", ())), media)

    def address(self, operation: Operation, rng: Random, values: tuple[str, ...] = ("a.yaml", "gpt-6.2b-24")) -> str:
        """The path with its parameters, filled from ``values``."""
        path = operation.path
        asked: list[str] = []
        for each in operation.parameters:
            value = quote(rng.choice(values).encode("utf-8", "replace"), safe="")
            if each["in"] == "path":
                path = path.replace("{" + each["name"] + "}", value)
            else:
                asked.append(f"{each['name']}={value}")
        return path + ("?" + "&".join(asked) if asked else "")

    def body(self, operation: Operation, rng: Random) -> Any:
        """A document that the schema allows, or nearly."""
        assert operation.schema is not None
        return self.value(operation.schema, rng, "")

    def value(self, schema: Document, rng: Random, name: str, deep: int = 0) -> Any:
        """A value of a schema, for a field of some name."""
        if "$ref" in schema:
            return self.value(self._schemas[schema["$ref"].rpartition("/")[2]], rng, name, deep)
        for either in ("anyOf", "oneOf", "allOf"):
            if either in schema:
                some = [each for each in schema[either] if each.get("type") != "null"]
                return self.value(rng.choice(some), rng, name, deep)
        if "enum" in schema or "const" in schema:
            return rng.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type")
        if name in _POOLS and kind != "array" and not (kind == "object" and "properties" in schema):
            return rng.choice(_POOLS[name])
        return _MAKERS.get(kind, _anything)(self, schema, rng, name, deep)

    def _object(self, schema: Document, rng: Random, name: str, deep: int) -> Any:
        properties = schema.get("properties", {})
        needed = set(schema.get("required", ())) | ({"settings", "schedules"} if deep == 0 else set())
        return {
            key: self.value(each, rng, key, deep + 1)
            for key, each in properties.items()
            if key in needed or rng.random() < (_SOME if len(properties) > 8 else 0.4)
        }

    def _array(self, schema: Document, rng: Random, name: str, deep: int) -> Any:
        least = schema.get("minItems", 0)
        return [self.value(schema.get("items", {}), rng, name, deep + 1) for _ in range(max(least, rng.randint(0, 3)))]


def _integer(_: Description, schema: Document, rng: Random, name: str, deep: int) -> int:
    return rng.randint(int(schema.get("minimum", 0)), int(min(schema.get("maximum", 8), 8)))


def _float(_: Description, schema: Document, rng: Random, name: str, deep: int) -> float:
    return round(rng.uniform(schema.get("minimum", 0.1), min(schema.get("maximum", 4.0), 4.0)), 2) or 0.5


def _text(_: Description, schema: Document, rng: Random, name: str, deep: int) -> str:
    return rng.choice(("x", "1", "none", "2GiB"))


def _anything(*_: Any) -> Any:
    return {}


_MAKERS: dict[Any, Any] = {
    "object": Description._object,
    "array": Description._array,
    "integer": _integer,
    "number": _float,
    "string": _text,
    "boolean": lambda _, __, rng, *___: rng.random() < 0.5,
}

TEXTS = (
    "",
    "\0",
    "a\0b.csv",
    "\ud800",
    "\udfff.json",
    "\u202e",
    "\x1b[31m",
    "\x1b]8;;http://x\x07",
    "\ufeff",
    "\ufffe",
    "e\u0301" * 30,
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "NaN",
    "1e400",
    "-0",
    "0x10",
    "1_000",
    "٣",
    "{}",
    "%s%n",
    "{0.__class__}",
    "${jndi:x}",
    "'; --",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "x" * 300,
    "x" * 100_000,
    " ",
    "\n\n",
    "\r\nX: y",
    "\\",
    '"',
)
NUMBERS = (0, -1, 1, 2, 3.5, -0.0, 1e-320, 5e-324, 1e308, -1e308, 10**8, 2**31, 2**63, 2**64, 10**30, 10**400, 1e16)
_LISTS: tuple[Any, ...] = (
    [],
    [[]],
    [1, "x", None],
    [0] * 50,
    [1e308, 1e-308],
    list(range(30_000)),
    [None] * 21,
    [{}] * 9,
)
_OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    {},
    {"a": {"b": {}}},
    {"": 1},
    {"\ud800": 1},
    {f"k{n}": n for n in range(200)},
)


def nasty(rng: Random) -> Any:
    """A value that stands nowhere."""
    pool = rng.choice((TEXTS, NUMBERS, NUMBERS, _LISTS, _OTHERS))
    if rng.random() < 0.05:
        found: Any = 1
        for _ in range(rng.choice((5, 20, 200, 900))):
            found = [found] if rng.random() < 0.5 else {"a": found}
        return found
    return rng.choice(pool)


def spoilt(document: Any, rng: Random) -> Any:
    """A document with something in it replaced, added, or taken away."""
    if isinstance(document, dict) and document and rng.random() < 0.8:
        key = rng.choice(list(document))
        kind = rng.random()
        if kind < 0.08:
            return {name: value for name, value in document.items() if name != key}
        if kind < 0.16:
            return document | {rng.choice((*TEXTS, "settings", "ranks")): nasty(rng)}
        return document | {key: spoilt(document[key], rng)}
    if isinstance(document, list) and document and rng.random() < 0.7:
        place = rng.randrange(len(document))
        return [*document[:place], spoilt(document[place], rng), *document[place + 1 :]]
    return nasty(rng)


def as_text(document: Any, rng: Random) -> bytes:
    """A document as JSON, sometimes as what nearly is."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.7)
    kind = rng.random()
    if kind < 0.03:
        text = text[: rng.randrange(len(text) + 1)]
    elif kind < 0.06 and text.startswith("{") and len(text) > 2:
        text = "{" + text[1:-1] + "," + text[1:]  # every name twice
    elif kind < 0.09:
        text = text.replace("1", rng.choice(("NaN", "Infinity", "-Infinity", "1" + "0" * 5000, "1e999", "01", "+1")), 1)
    elif kind < 0.11:
        return text.encode(rng.choice(("utf-16", "utf-32", "utf-8-sig")), "surrogatepass")
    elif kind < 0.13:
        return b"\xff\xfe" + text.encode("utf-8", "surrogatepass") + b"\x80"
    elif kind < 0.15:
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(("\0", "//", "'", ",", "[" * 2000, "\x7f")) + text[place:]
    return text.encode("utf-8", "surrogatepass")
