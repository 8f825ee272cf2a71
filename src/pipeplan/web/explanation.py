"""Explanations of schedules that are small enough for the page."""

from __future__ import annotations

from pipeplan.api import Explanation, explained, timed
from pipeplan.costs import Settings
from pipeplan.errors import InputError
from pipeplan.web.asked_schedules import Meant
from pipeplan.web.timeline_views import can_be_explained


def explanation(meant: Meant, settings: Settings) -> Explanation:
    """Return the explanation of a schedule that is small enough to be explained in a moment.

    Raises
    ------
    InputError
        For more ops and ranks than are explained here.
    PipeplanError
        For what :func:`pipeplan.explain` raises it.
    """
    if not can_be_explained([timed(meant, settings)]):
        raise InputError("too large to be explained here: 'pipeplan explain' has no such limit")
    return explained(meant, settings)
