"""Stages in words: ``0-3,6``."""

from __future__ import annotations

import re

from pipeplan.errors import ShapeError
from pipeplan.model import shortened


def ranges_in(text: str, name: str) -> list[tuple[int, int]]:
    """First and last of every range in a text such as ``0-3,6``.

    Parameters
    ----------
    name
        The setting that it is of, for the error.

    Raises
    ------
    ShapeError
        For any other text.
    """
    found = [re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", word) for word in re.split(r"[\s,]+", text.strip())]
    ranges = [(int(match[1]), int(match[2] or match[1])) for match in found if match is not None]
    if len(ranges) < len(found) or any(first > last for first, last in ranges):
        raise ShapeError(f"{name} must be none, all or stages such as 0-3,6, not '{shortened(text, 60)}'", field=name)
    return ranges
