"""Faults of a request: the field and a sentence, never a path or a traceback; and all answers as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
from fastapi.responses import Response
from pydantic_core import PydanticSerializationError, to_json

from pipeplan.extensions.web.records import Fault, Faults
from pipeplan.foundation.errors import PipeplanError

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
    """Return FastAPI's errors about parts of an address as faults."""
    return [
        Fault(
            field=str(error["loc"][-1]),
            message=_SENTENCES.get(error["type"], str(error["msg"])).format(**error.get("ctx", {})),
        )
        for error in errors
    ]


_SENTENCES = {
    "missing": "is missing",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "is empty",
}
"""Messages by the type of FastAPI's error."""


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


def json_line(record: object) -> bytes:
    """Return a record as a line of JSON."""
    return as_json(record) + b"\n"


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
