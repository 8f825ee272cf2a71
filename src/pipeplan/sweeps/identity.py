"""Identity of a sweep: everything that its answers depend on, so that a store is never used for another sweep."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pipeplan.documents import json_text

_MAX_NAMED = 3
"""Maximum number of differences listed in an error message."""

_MAX_LETTERS = 40
"""Maximum length of a value in an error message."""


def version() -> str:
    """Return the version of the running package, which may differ from the installed one."""
    return str(sys.modules[__package__.partition(".")[0]].__version__)


def identity(asked: Mapping[str, object]) -> str:
    """Return what the answers depend on, with the version of pipeplan, as JSON."""
    return json_text({"pipeplan": version(), **asked}, compact=True)


def differences(there: str, here: str) -> str:
    """Describe the differences of two identities; empty if they are equal."""
    different = list(_between(json.loads(there), json.loads(here), ""))
    words = [
        f"{place} is {_short(old)} there and {_short(new)} here" for place, old, new in islice(different, _MAX_NAMED)
    ]
    more = len(different) - _MAX_NAMED
    return ", ".join([*words, f"and {more} more"] if more > 0 else words)


_ABSENT = object()


def _between(there: Any, here: Any, place: str) -> list[tuple[str, Any, Any]]:
    """Return the path of every difference, and its two values."""
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            difference
            for name in dict.fromkeys([*there, *here])
            for difference in _between(
                there.get(name, _ABSENT), here.get(name, _ABSENT), f"{place}.{name}" if place else name
            )
        ]
    return [] if there == here else [(place, there, here)]


def _short(value: object) -> str:
    text = "absent" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 3]}..."
