"""Decoding of pipeplan's own JSON: records of a known version, and every fault in words."""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.foundation.documents import require_unique_keys
from pipeplan.foundation.errors import FormatError
from pipeplan.foundation.syntax import record_fault


def decoded(text: str, kind: Any, version: int | None = None) -> Any:
    """Return the record of this class in a JSON text; ``version`` is the supported one, if its class has versions.

    Raises FormatError, with the place and the remedy, for another version, a fault of syntax, a duplicate key, or a value of
    the wrong type.
    """
    try:
        record = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        other = None if version is None else _other_version(text, version)
        raise FormatError(other or record_fault(error, text)) from None
    if version is not None and record.version != version:
        raise FormatError(_other_version(text, version) or "its version is unknown")
    require_unique_keys(text)
    return record


class _Versioned(msgspec.Struct):
    version: int


def _other_version(text: str, supported: int) -> str | None:
    """Return a message if a file has another version than the supported one, else None."""
    try:
        version = msgspec.json.decode(text, type=_Versioned).version
    except (msgspec.DecodeError, RecursionError):
        return None
    if version == supported:
        return None
    newer = "; a newer pipeplan wrote it" if version > supported else ""
    return f"unsupported version {version}: this pipeplan reads version {supported}{newer}"
