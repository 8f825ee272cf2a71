"""The interactive timeline's data: views with their colours, in few bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.theme import DARK, LIGHT, Theme
from pipeplan.drawing.view import View

_INTEGERS = (np.int8, np.int16, np.int32)
_SHORT = 16
"""Columns up to this length stay lists, which people can read."""


def timeline_data(views: View | Sequence[View]) -> dict[str, Any]:
    """What ``mountTimeline`` draws, ready for JSON.

    ::

        views    each as View.to_json_dict says, with its columns packed
        themes   light and dark, each: the theme's JSON by the number of shades that a view needs, as text

    Raises
    ------
    ValueError
        For no views.
    """
    chosen = [views] if isinstance(views, View) else list(views)
    return {"themes": themes_for(chosen), "views": [view.to_json_dict(packed) for view in chosen]}


def themes_for(views: Sequence[View]) -> dict[str, Any]:
    """The colours that views need: light and dark, each by the number of shades.

    Raises
    ------
    ValueError
        For no views.
    """
    if not views:
        raise ValueError("a timeline needs at least one view")
    shades = sorted({view.copies * view.chunks for view in views})
    return {theme.name: _by_shades(theme, shades) for theme in (LIGHT, DARK)}


def _by_shades(theme: Theme, shades: Sequence[int]) -> dict[str, Any]:
    return {str(count): theme.to_json_dict(count) for count in shades}


def packed(column: NDArray[Any]) -> list[Any] | str:
    """A column as ``TYPE:BASE64`` of its little-endian bytes, in the narrowest type that holds every value exactly.

    Types are ``i1``, ``i2``, ``i4``, ``f4`` and ``f8``; short columns stay lists.

    Raises
    ------
    ValueError
        For a value that is not finite.
    """
    if not np.isfinite(column).all():
        raise ValueError("a timeline's numbers must be finite")
    if len(column) <= _SHORT:
        return list(column.tolist())
    narrow = _narrowest(column)
    data = narrow.astype(narrow.dtype.newbyteorder("<"))
    return f"{narrow.dtype.kind}{narrow.itemsize}:{b64encode(data.tobytes()).decode('ascii')}"


def _narrowest(column: NDArray[Any]) -> NDArray[Any]:
    low, high = float(column.min()), float(column.max())
    for kind in _INTEGERS:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max and np.array_equal(column, whole := column.astype(kind)):
            return whole
    with np.errstate(over="ignore"):
        single = column.astype(np.float32)
    return single if np.array_equal(column, single) else column.astype(np.float64)
