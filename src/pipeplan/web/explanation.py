"""Why ranks idle, what the critical path is made of, and what would help, with titles for people."""

from __future__ import annotations

from pipeplan.api import explained, timed
from pipeplan.costs import Settings
from pipeplan.drawing import KIND_TITLES, REASON_TITLES
from pipeplan.errors import InputError
from pipeplan.web.asked_schedules import Meant
from pipeplan.web.records import ExplainReply, IdleByReason, KindTime, Peak, TitledPath, TitledReason
from pipeplan.web.timeline_views import can_be_explained


def explanation(meant: Meant, settings: Settings) -> ExplainReply:
    """Return idle time by rank and reason, the shares of the critical path, what would help, and what to do next.

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
    path = found.path
    if found.peak_bytes is None:
        peak = Peak(value=max(found.peak_activation), unit="activations")
    else:
        peak = Peak(value=max(found.peak_bytes), unit="bytes")
    return ExplainReply(
        schedule=found.name,
        makespan=found.makespan,
        time_unit=found.time_unit,
        idle=IdleByReason(
            reasons=tuple(TitledReason(key=key, title=REASON_TITLES[key]) for key in found.explain.reasons),
            by_rank=found.totals.tolist(),
        ),
        critical_path=TitledPath(
            ops=len(path.ops),
            by_kind=tuple(
                KindTime(kind=kind.name, title=KIND_TITLES[kind], time=time) for kind, time in path.by_kind.items()
            ),
            transfer=path.transfer,
            overhead=path.overhead,
            by_stage=path.by_stage.tolist(),
        ),
        sentences=found.sentences,
        advice=found.advice,
        per_microbatch=found.per_microbatch,
        peak=peak,
        what_ifs=found.what_ifs,
    )
