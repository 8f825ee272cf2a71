"""What colour each bar of a view has: that of its kind and shade, or of its ratio where the view has ratios."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeplan.drawing.theme import Theme
from pipeplan.drawing.view import Ratios, View
from pipeplan.model import Kind

STEPS = 16
"""From the middle of a scale of ratios to either end."""

_NONE = 2 * STEPS + 1
"""The code of a bar without a ratio."""


def codes_of(view: View) -> NDArray[np.int64]:
    """A number for each bar's colour, shape (bars,): :func:`fill_of` says which it is."""
    if view.ratios is None:
        return view.bars.kind.astype(np.int64) * (view.copies * view.chunks) + view.shade
    known = view.ratios.values > 0
    share = np.log(np.where(known, view.ratios.values, 1.0)) / np.log(view.ratios.reach)
    steps = np.rint(STEPS * (1 + np.clip(share, -1, 1))).astype(np.int64)
    return np.where(known, steps, _NONE)


def fill_of(view: View, theme: Theme, code: int) -> str:
    """The colour that a code stands for."""
    if view.ratios is not None:
        return theme.lane if code == _NONE else theme.ratio(code / STEPS - 1)
    shades = view.copies * view.chunks
    return theme.shades(Kind(code // shades), shades)[code % shades]


def colored(view: View, theme: Theme) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Each colour of a view with its bars, messages last, so that they lie on top."""
    code = codes_of(view)
    order = np.argsort(code, kind="stable")
    codes, first = np.unique(code[order], return_index=True)
    groups: dict[str, list[NDArray[np.intp]]] = {}
    for value, chosen in zip(codes.tolist(), np.split(order, first[1:]), strict=True):
        groups.setdefault(fill_of(view, theme, value), []).append(chosen)
    return ((fill, np.concatenate(parts)) for fill, parts in groups.items())


def scale_fills(theme: Theme) -> tuple[str, ...]:
    """The colours of a scale of ratios, from its lower end to its upper one."""
    return tuple(theme.ratio(step / STEPS - 1) for step in range(0, 2 * STEPS + 1, 2))


def scale_title(ratios: Ratios) -> str:
    """What a legend says of a scale."""
    below, above = ratios.ends
    return f"{ratios.title}: {below} ({1 / ratios.reach:.2f}) to {above} ({ratios.reach:.2f})"
