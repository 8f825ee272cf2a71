"""What a sweep was asked, so that no answer is taken for that of another question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pipeplan.documents import json_text
from pipeplan.sweeps.version import version

_NAMED = 3
"""Differences that a message names."""

_LONGEST = 40
"""Letters of a value in a message."""


def identity(asked: Mapping[str, object]) -> str:
    """What was asked, and by which version of pipeplan, as JSON."""
    return json_text({"pipeplan": version(), **asked}, compact=True)


def differences(there: str, here: str) -> str:
    """In what two identities differ, in words; empty where they are the same."""
    found = list(_between(json.loads(there), json.loads(here), ""))
    words = [f"{place} is {_short(old)} there and {_short(new)} here" for place, old, new in islice(found, _NAMED)]
    more = len(found) - _NAMED
    return ", ".join([*words, f"and {more} more"] if more > 0 else words)


_ABSENT = object()


def _between(there: Any, here: Any, place: str) -> list[tuple[str, Any, Any]]:
    """Place, and the two values there."""
    if isinstance(there, dict) and isinstance(here, dict):
        names = dict.fromkeys([*there, *here])
        return [
            found
            for name in names
            for found in _between(
                there.get(name, _ABSENT), here.get(name, _ABSENT), f"{place}.{name}" if place else name
            )
        ]
    return [] if there == here else [(place, there, here)]


def _short(value: object) -> str:
    text = "absent" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
