"""Checks that a simulated timeline is possible: ops start after time 0, after their inputs, and on a free rank."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN
from pipeplan.model import COMPUTE_KINDS, RECEIVE_KINDS, Timeline, among, dependencies, tolerances


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
            source = int(sources[op])
            message = (
                f"starts at {start[op]:g}, before {schedule.op(source)}, which it waits for, ends at {end[source]:g}"
            )
            yield finding("times", schedule.place(op), message, op)
    for op, around in _inside_another(timeline, slack)[:SHOWN]:
        message = (
            f"has no duration at {start[op]:g}, inside {schedule.op(around)} ({start[around]:g} to {end[around]:g})"
        )
        yield finding("times", schedule.place(op), message, op)


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
