"""Records: types that pipeplan returns, writes as JSON and publishes a schema for, each declared once."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import Any, Generic, Self, TypeVar, get_type_hints, overload

import msgspec

Held = TypeVar("Held")
AnyRecord = TypeVar("AnyRecord", bound="Record")

VERSION = 1
"""Version of every JSON schema. Adding keys keeps it; removing one, or giving it another meaning, makes another version."""


class Evidence(Generic[Held]):
    """Attribute of a record that is not part of its JSON, such as a timeline: ``timeline = Evidence[Timeline]()``.

    :func:`holding` sets it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, answer: None, owner: type) -> Self: ...
    @overload
    def __get__(self, answer: object, owner: type) -> Held: ...
    def __get__(self, answer: object | None, owner: type) -> Held | Self:
        if answer is None:
            return self
        raise AttributeError(
            f"this {owner.__name__} was read from JSON and has no {self.name}: JSON leaves it out; compute the "
            f"{owner.__name__} again"
        )


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Base of records: immutable, with the keys of its fields and no others.

    The fields are the JSON. What else an instance holds, :class:`Evidence` and cached properties, is not part of it.
    A field that is :data:`msgspec.UNSET` is left out of the JSON.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, strings and numbers: exactly what ``--json`` prints."""
        document: dict[str, Any] = _with_lists(msgspec.to_builtins(self, str_keys=True))
        return document

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), msgspec.structs.asdict(self), vars(self))

    def __copy__(self) -> Self:
        return replaced(self)


def holding(record: AnyRecord, **evidence: Any) -> AnyRecord:
    """Set the :class:`Evidence` of a record that was just made, and return the record."""
    vars(record).update(evidence)
    return record


def replaced(record: AnyRecord, **changes: Any) -> AnyRecord:
    """Return a copy with other values of some fields, and with all that is not part of the JSON."""
    return _restored(type(record), msgspec.structs.asdict(record) | changes, vars(record))


def _with_lists(value: Any) -> Any:
    """Return builtins with lists for tuples, which msgspec leaves as they are and JSON does not tell apart."""
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_lists(item) for item in value]
    return value


def _restored(kind: type[AnyRecord], fields: dict[str, Any], rest: dict[str, Any]) -> AnyRecord:
    record = kind(**fields)
    vars(record).update(rest)
    return record


@cache
def titles_of(record: type[msgspec.Struct]) -> dict[str, str]:
    """Return the titles of a record's fields, by their names in Python; those of fields with ``Meta(title=...)``."""
    return {
        name: meta.title
        for name, hint in get_type_hints(record, include_extras=True).items()
        for meta in getattr(hint, "__metadata__", ())
        if isinstance(meta, msgspec.Meta) and meta.title is not None
    }


def schema_of(name: str, record: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a record under its name and version."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pipeplan:{name}:{VERSION}",
        "title": f"{name}, version {VERSION}",
        **without_indents(msgspec.json.schema(record)),
    }


def without_indents(schema: Any) -> Any:
    """Return a schema with descriptions that do not depend on the release of Python, which indents docstrings until 3.12."""
    if isinstance(schema, list):
        return [without_indents(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: cleandoc(part) if key == "description" and isinstance(part, str) else without_indents(part)
        for key, part in schema.items()
    }
