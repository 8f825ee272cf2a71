"""Why ranks idle, what the critical path is made of, and what would help, as JSON with words for people."""

from __future__ import annotations

from typing import Any

from pipeplan.api import explained, timed
from pipeplan.costs import Settings
from pipeplan.drawing import KIND_TITLES, REASON_TITLES
from pipeplan.errors import InputError
from pipeplan.simulation import CriticalPath, Reason
from pipeplan.web.asked_schedules import Meant
from pipeplan.web.timeline_views import can_be_explained


def explanation(meant: Meant, settings: Settings) -> dict[str, Any]:
    """Idle time by rank and reason, the shares of the critical path, and makespans with one thing changed.

    Raises
    ------
    InputError
        For more ops and ranks than are explained here.
    PipeplanError
        For what :func:`pipeplan.explain` raises it.
    """
    if not can_be_explained([timed(meant, settings)]):
        raise InputError("too large to be explained here: 'pipeplan explain' has no such limit")
    found = explained(meant, settings)
    reasons = [{"key": reason.key, "title": REASON_TITLES[reason.key]} for reason in Reason]
    return {
        "schedule": found.result.name,
        "makespan": found.result.makespan,
        "time_unit": found.result.timeline.unit,
        "idle": {"reasons": reasons, "by_rank": found.totals.tolist()},
        "critical_path": _path(found.path),
        "what_ifs": [{"change": change.change, "makespan": change.makespan} for change in found.what_ifs],
    }


def _path(path: CriticalPath) -> dict[str, Any]:
    return {
        "ops": len(path.ops),
        "by_kind": [
            {"kind": kind.name, "title": KIND_TITLES[kind], "time": time} for kind, time in path.by_kind.items()
        ],
        "transfer": path.transfer,
        "overhead": path.overhead,
        "by_stage": path.by_stage.tolist(),
    }
