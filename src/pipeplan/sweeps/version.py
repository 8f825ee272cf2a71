"""Which pipeplan this is."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Of the package that is installed here; what runs elsewhere must be the same."""
    return metadata.version("pipeplan")
