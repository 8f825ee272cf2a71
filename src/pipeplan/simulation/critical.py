"""The critical path: the chain of ops and messages that made the makespan what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs
from pipeplan.model import Floats, Kind, Timeline, tolerances
from pipeplan.simulation.chain import Chains, lost, timed_only


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """A longest chain through a timeline, from its start to its last end.

    Attributes
    ----------
    ops
        Positions in the timeline's compute ops and copies, earliest first.
    by_kind
        Time on the path by kind.
    by_stage
        Time of the path's ops by stage, shape (stages,).
    overhead
        Time on the path that its ops lose before they start and behind their ends.
    transfer
        The rest of the time between the end of an op and the start of the next: messages, and whatever else kept it waiting.
    """

    ops: tuple[int, ...]
    by_kind: dict[Kind, float]
    by_stage: Floats
    overhead: float
    transfer: float


def critical_path(timeline: Timeline, costs: Costs | None = None) -> CriticalPath:
    """The chain behind the op that ends last; of several chains, the one through messages.

    Parameters
    ----------
    costs
        They say what is lost between ops; None: nothing that is known of.
    """
    timeline = timed_only(timeline)
    chains = Chains(timeline, costs)
    path: list[int] = []
    op = int(timeline.end.argmax()) if len(timeline.end) else -1
    while op >= 0:
        path.append(op)
        op = chains.holder(op)
    path.reverse()
    columns = timeline.schedule.columns
    times = (timeline.end - timeline.start)[path]
    before, behind = lost(timeline.schedule, costs)
    overhead = float(before[path].sum() + behind[path[:-1]].sum())
    rest = float(timeline.makespan - times.sum() - overhead)
    by_kind = np.bincount(columns.kind[path], times, minlength=len(Kind))
    return CriticalPath(
        tuple(path),
        {kind: float(by_kind[kind]) for kind in Kind if by_kind[kind] > 0},
        np.bincount(columns.stage[path], times, minlength=timeline.schedule.stages).astype(np.float64),
        overhead,
        rest if rest > tolerances.ROUNDING * timeline.makespan else 0.0,
    )
