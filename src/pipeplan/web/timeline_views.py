"""Views of results for the timeline, as far as a browser can hold them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.api import Result
from pipeplan.drawing import View

MOST_DRAWN = 400_000
"""Ops that all the timelines of an answer may have together."""

MOST_LANES = 2_000
"""Ranks that they may have together."""

_MOST_EXPLAINED = 400_000
"""Ops whose idle time is explained in a moment."""


def choose(results: Sequence[Result], wanted: Sequence[str] | None) -> tuple[list[Result], list[str]]:
    """The results to draw, in the order asked for, and the names of those that are too large.

    The first one is drawn without a wish, and where none of what is wished for can be had.
    """
    by_name = {result.name: result for result in results}
    had = [name for name in dict.fromkeys(wanted or ()) if name in by_name]
    asked = [results[0].name] if not had and wanted != [] else had
    drawn: list[Result] = []
    undrawn: list[str] = []
    for name in asked:
        drawn.append(by_name[name])
        if _ops(drawn) > MOST_DRAWN or sum(result.schedule.ranks for result in drawn) > MOST_LANES:
            undrawn.append(drawn.pop().name)
    return drawn, undrawn


def views(results: Sequence[Result], *, reasons: bool = True) -> list[View]:
    """A view of each result; with ``reasons``, and unless there are too many ops, also why ranks idle."""
    explained = reasons and can_be_explained(results)
    return [result.view(reasons=explained) for result in results]


def can_be_explained(results: Sequence[Result]) -> bool:
    """Whether the reasons for all idle time can be found in a moment."""
    return _ops(results) <= _MOST_EXPLAINED


def _ops(results: Sequence[Result]) -> int:
    return sum(len(result.schedule) for result in results)
