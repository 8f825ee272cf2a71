"""Documents as the JSON of an answer, whatever texts they hold."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic_core import PydanticSerializationError, to_json


def as_json(document: Any, *, not_a_number: Literal["null", "strings"] = "null") -> bytes:
    r"""Return a document or a record as JSON.

    A half of a character, which a file can hold as ``"\ud800"`` and no answer can, is a question mark; what is no number is
    null, or the text that it is written as.
    """
    document = msgspec.to_builtins(document)
    try:
        return to_json(document, inf_nan_mode=not_a_number)
    except PydanticSerializationError:
        return to_json(_whole(document), inf_nan_mode=not_a_number)


def whole_text(text: str) -> str:
    """Return a text without halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _whole(document: Any) -> Any:
    if isinstance(document, str):
        return whole_text(document)
    if isinstance(document, dict):
        return {_whole(key): _whole(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_whole(value) for value in document]
    return document
