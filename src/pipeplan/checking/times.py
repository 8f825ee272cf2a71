"""Checks that a simulated timeline is possible: ops start after time 0, after their inputs, and on a free rank."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    RECEIVE_KINDS,
    Kind,
    Timeline,
    among,
    dependencies,
    tolerances,
)


def check_times(timeline: Timeline) -> Iterator[Finding]:
    """Yield the ops of a simulated timeline that start too early.

    ``Timeline`` itself rejects ops that end before they start and ops that compute at once. Measured timelines are skipped,
    because clocks differ between ranks and a receive may end after the op that uses it has started.
    """
    if timeline.source == "measured":
        return
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    slack = tolerances.ROUNDING * timeline.makespan
    for op in np.flatnonzero(start < -slack)[:SHOWN].tolist():
        yield finding("times", schedule.place(op), f"starts at {start[op]:g}, before the start of the step at 0", op)
    for sources in dependencies(schedule).all:
        needy = np.flatnonzero(sources >= 0)
        arrived = end[sources[needy]]
        # A receive may be posted before its message is sent, and ends after that.
        receives = among(schedule.columns.kind[needy], RECEIVE_KINDS)
        begun = np.where(receives, end[needy], start[needy])
        early = needy[begun < np.where(receives, start[sources[needy]], arrived) - slack]
        for op in early[:SHOWN].tolist():
            yield _too_early(timeline, op, int(sources[op]))
    for op, awaited in _before_collectives(timeline, slack)[:SHOWN]:
        yield _too_early(timeline, op, awaited)
    for op, first, second in _collectives_at_once(timeline, slack)[:SHOWN]:
        message = f"starts at {first:g}, before the collective ahead of it on the same stream ends at {second:g}"
        yield finding("times", schedule.place(op), message, op)
    for op, around in _inside_another(timeline, slack)[:SHOWN]:
        message = (
            f"has no duration at {start[op]:g}, inside {schedule.op(around)} ({start[around]:g} to {end[around]:g})"
        )
        yield finding("times", schedule.place(op), message, op)


def _too_early(timeline: Timeline, op: int, source: int) -> Finding:
    schedule, starts, ends = timeline.schedule, timeline.start[op], timeline.end[source]
    message = f"starts at {starts:g}, before {schedule.op(source)}, which it waits for, ends at {ends:g}"
    return finding("times", schedule.place(op), message, op)


def _before_collectives(timeline: Timeline, slack: float) -> list[tuple[int, int]]:
    """Return each op that starts before the UNSHARD of its stage, or the REDUCE_GRAD, has ended, and that collective."""
    schedule = timeline.schedule
    if schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
        return []
    start, end = timeline.start.tolist(), timeline.end.tolist()
    kinds, stages = schedule.columns.kind.tolist(), schedule.columns.stage.tolist()
    early: list[tuple[int, int]] = []
    for first, stop in pairwise(schedule.offsets.tolist()):
        gathering: dict[int, int] = {}
        reducing: dict[int, int] = {}
        for op in range(first, stop):
            kind, stage, awaited = kinds[op], stages[op], -1
            if kind == Kind.UNSHARD:
                gathering[stage] = op
            elif kind == Kind.REDUCE_GRAD:
                reducing[stage] = op
            elif kind == Kind.WAIT_REDUCE_GRAD:
                awaited = reducing.get(stage, -1)
            elif kind in COMPUTE_KINDS:
                awaited = gathering.get(stage, -1)
            begun = end[op] if kind == Kind.WAIT_REDUCE_GRAD else start[op]
            if awaited >= 0 and begun < end[awaited] - slack:
                early.append((op, awaited))
    return early


def _collectives_at_once(timeline: Timeline, slack: float) -> list[tuple[int, float, float]]:
    """Return each collective that starts before the one ahead of it on its rank has ended, and these two times."""
    schedule = timeline.schedule
    wrong: list[tuple[int, float, float]] = []
    if schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
        return wrong
    collectives = schedule.where(*COLLECTIVE_KINDS).tolist()
    for ahead, behind in pairwise(collectives):
        starts, ends = float(timeline.start[behind]), float(timeline.end[ahead])
        if schedule.rank[ahead] == schedule.rank[behind] and starts < ends - slack:
            wrong.append((behind, starts, ends))
    return wrong


def _inside_another(timeline: Timeline, slack: float) -> list[tuple[int, int]]:
    """Return each compute op without duration that is inside another op of its rank, and that other op."""
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    computes = among(schedule.columns.kind, COMPUTE_KINDS)
    pairs: list[tuple[int, int]] = []
    for first, stop in pairwise(schedule.offsets.tolist()):
        ops = first + np.flatnonzero(computes[first:stop])
        lasting, instant = ops[end[ops] > start[ops] + slack], ops[end[ops] <= start[ops] + slack]
        if not lasting.size or not instant.size:
            continue
        lasting = lasting[np.argsort(start[lasting], kind="stable")]
        before = np.searchsorted(start[lasting], start[instant] - slack, side="left") - 1
        around: NDArray[np.intp] = lasting[np.maximum(before, 0)]
        within = (before >= 0) & (start[instant] < end[around] - slack) & (schedule.columns.group[around] < 0)
        pairs += zip(instant[within].tolist(), around[within].tolist(), strict=True)
    return pairs
