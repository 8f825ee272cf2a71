"""Faults of a request: the field and a sentence, never a path or a traceback; and all answers as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
from fastapi.responses import Response
from pydantic_core import PydanticSerializationError, to_json

from pipeplan.costs import SETTINGS
from pipeplan.errors import PipeplanError
from pipeplan.web.records import Fault, Faults

UNFORESEEN = "internal error"


def refusal(status: int, *faults: Fault) -> Response:
    """Return the answer to a refused request."""
    soon = {"retry-after": "2"} if status == 503 else None
    return Response(as_json(Faults(errors=faults)), status, soon, media_type="application/json")


def fault(error: PipeplanError, field: str | None = None) -> Fault:
    """Return an error of the workbench as a fault, at its own field or at another one."""
    return Fault(field=plain(error.field if field is None else field, 60), message=plain(str(error)))


@contextmanager
def at_field(field: str) -> Iterator[None]:
    """Attribute errors of the block to a field of the request."""
    try:
        yield
    except PipeplanError as error:
        error.field = field
        raise


def plain(text: str, most: int = 600) -> str:
    """Return a text that every answer can hold: without lone surrogates, and at most ``most`` characters long."""
    text = _whole_text(text)
    return text if len(text) <= most else f"{text[:most]}..."


def faults_in(errors: Iterable[Mapping[str, Any]]) -> list[Fault]:
    """Return pydantic's errors as faults, one per field."""
    faults: dict[str, Fault] = {}
    for error in errors:
        field, place = _place(error["loc"])
        sentence = _SENTENCES.get(error["type"])
        message = str(error["msg"]) if sentence is None else sentence.format(**error.get("ctx", {}))
        faults.setdefault(field, Fault(field=plain(field, 60), message=plain(f"{place}{message}")))
    return list(faults.values())


_LAYERS = {"body", "query", "settings", "number", "text", "list"}
"""Parts of pydantic's locations that are not fields of a form."""


def _place(location: Sequence[int | str]) -> tuple[str, str]:
    """Return the field of a location, and the place within the field in words."""
    names = [part for part in location if isinstance(part, str) and part not in _LAYERS]
    numbers = [part for part in location if isinstance(part, int)]
    field = names[0] if names else ""
    return field, f"value {numbers[0] + 1}: " if numbers and field in SETTINGS else ""


_SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is an unknown name",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "json_invalid": "the request is not JSON",
    "model_attributes_type": "must be a group of names and values",
    "model_type": "must be a group of names and values",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "is empty",
    "too_long": "must have at most {max_length} values",
    "too_short": "is empty",
}
"""Messages by the type of pydantic's error."""


def as_json(document: Any, *, not_a_number: Literal["null", "strings"] = "null") -> bytes:
    r"""Return a document or a record as JSON.

    A lone surrogate, which a file can hold as ``"\ud800"`` and no answer can, becomes a question mark. Infinities and NaN
    become null, or text.
    """
    document = msgspec.to_builtins(document)
    try:
        return to_json(document, inf_nan_mode=not_a_number)
    except PydanticSerializationError:
        return to_json(_whole(document), inf_nan_mode=not_a_number)


def _whole_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _whole(document: Any) -> Any:
    if isinstance(document, str):
        return _whole_text(document)
    if isinstance(document, dict):
        return {_whole(key): _whole(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_whole(value) for value in document]
    return document
