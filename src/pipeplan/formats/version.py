"""Files of pipeplan's own say which version of their format they are of, and a newer one is refused as such.

A newer file may have keys that nobody here knows, so its version is looked at before any of them is called wrong.
"""

from __future__ import annotations

import msgspec


class _Versioned(msgspec.Struct):
    """Of a file, its version alone."""

    version: int


def other_version(text: str, known: int) -> str | None:
    """What to say of a file of another version than the one known; None of others, and of what is no such file."""
    try:
        found = msgspec.json.decode(text, type=_Versioned).version
    except (msgspec.DecodeError, RecursionError):
        return None
    if found == known:
        return None
    newer = ": a newer pipeplan wrote it, which reads it" if found > known else ""
    return f"it is of version {found}; this pipeplan reads version {known}{newer}"
