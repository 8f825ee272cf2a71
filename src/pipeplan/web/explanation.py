"""Why ranks idle, what the critical path is made of, and what would help, as JSON with words for people."""

from __future__ import annotations

from typing import Any

from pipeplan.api import Explanation, explained, timed
from pipeplan.costs import Settings
from pipeplan.drawing import KIND_TITLES, REASON_TITLES
from pipeplan.errors import InputError
from pipeplan.simulation import CriticalPath, Reason
from pipeplan.web.asked_schedules import Meant
from pipeplan.web.timeline_views import can_be_explained


def explanation(meant: Meant, settings: Settings) -> dict[str, Any]:
    """Idle time by rank and reason, the shares of the critical path, what would help, and what to do next.

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
        "sentences": list(found.sentences),
        "advice": found.advice,
        "per_microbatch": found.per_microbatch,
        "peak": _peak(found),
        "what_ifs": [what.to_dict() | {"helps": what in found.helping} for what in found.what_ifs],
    }


def _peak(found: Explanation) -> dict[str, Any]:
    """What the fullest rank holds now."""
    memory = found.result.memory
    in_bytes = memory.peak_bytes is not None
    peaks = memory.peak_activation if memory.peak_bytes is None else memory.peak_bytes
    return {"value": float(peaks.max()), "unit": "bytes" if in_bytes else "activations"}


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
