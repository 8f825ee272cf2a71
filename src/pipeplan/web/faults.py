"""What is wrong with a request: the field that is at fault, and a sentence. Neither a path nor a traceback is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi.responses import Response

from pipeplan.costs import SETTINGS
from pipeplan.errors import PipeplanError
from pipeplan.web.json_answers import as_json, whole_text
from pipeplan.web.records import Fault, Faults

UNFORESEEN = "an error that should not have happened"


def refusal(status: int, *faults: Fault) -> Response:
    """The answer to a request that is refused."""
    soon = {"retry-after": "2"} if status == 503 else None
    return Response(as_json(Faults(errors=faults)), status, soon, media_type="application/json")


def fault(error: PipeplanError, field: str | None = None) -> Fault:
    """An error of the workbench as a fault, at its own field or at another one."""
    return Fault(field=plain(error.field if field is None else field, 60), message=plain(str(error)))


def plain(text: str, most: int = 600) -> str:
    """A text that any answer can hold: without halves of characters, and not longer than ``most``."""
    text = whole_text(text)
    return text if len(text) <= most else f"{text[:most]}..."


def faults_in(errors: Iterable[Mapping[str, Any]]) -> list[Fault]:
    """Faults from what pydantic found, one a field."""
    faults: dict[str, Fault] = {}
    for error in errors:
        field, place = _place(error["loc"])
        message = _sentence(error)
        faults.setdefault(field, Fault(field=plain(field, 60), message=plain(f"{place}{message}")))
    return list(faults.values())


_LAYERS = {"body", "query", "settings", "number", "text", "list"}


def _place(location: Sequence[int | str]) -> tuple[str, str]:
    """The field that a location is in, and in words where in it."""
    names = [part for part in location if isinstance(part, str) and part not in _LAYERS]
    numbers = [part for part in location if isinstance(part, int)]
    field = names[0] if names else ""
    return field, f"value {numbers[0] + 1}: " if numbers and field in SETTINGS else ""


_SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is no known name",
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


def _sentence(error: Mapping[str, Any]) -> str:
    """What pydantic found, in our words; its own where we have none."""
    known = _SENTENCES.get(error["type"])
    return str(error["msg"]) if known is None else known.format(**error.get("ctx", {}))
