"""What ranks lose between ops, measured: from the times of a step that the runtime has run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Spread
from pipeplan.model import COMPUTE_KINDS, RECEIVE_KINDS, Floats, Timeline, among, dependencies


@dataclass(frozen=True, slots=True)
class LostTime:
    """What ranks lose, in milliseconds.

    Attributes
    ----------
    op_gap
        From the end of an op to the start of the next, where nothing is sent, received or waited for in between.
    message_time
        What each message in between adds to that; None where there was none.
    """

    op_gap: Spread
    message_time: Spread | None


def lost_time(timeline: Timeline, wait: Floats) -> LostTime | None:
    """What was lost between the ops of a measured step; None where every two ops have a message between them.

    Waiting for what another rank has not sent yet is idle time, and not lost: it is left out. What remains of the time
    between two ops is a gap and, for each message that is sent or received there, what that took.

    Parameters
    ----------
    timeline
        In milliseconds, of a schedule with its communication and without overlapped pairs.
    wait
        How long the rank waited at each op, shape (ops,).
    """
    schedule = timeline.schedule
    op = np.flatnonzero(among(schedule.columns.kind, COMPUTE_KINDS))
    neighbours = schedule.rank[op[1:]] == schedule.rank[op[:-1]]
    before, after = op[:-1][neighbours], op[1:][neighbours]
    messages = after - before - 1
    alone = messages == 0
    if not alone.any():
        return None
    needs = dependencies(schedule).arrival[after]
    received = (needs >= 0) & among(schedule.columns.kind[needs], RECEIVE_KINDS)
    # What turning to an op takes is in the wait of each, and all there is of it where no message is waited for.
    turning = float(np.median(wait[after][~received])) if not received.all() else 0.0
    lost = timeline.start[after] - timeline.end[before] - np.where(received, wait[after] - turning, 0.0)
    gap = Spread.of(lost[alone])
    each = (lost[~alone] - gap.median) / messages[~alone]
    return LostTime(gap, Spread.of(np.maximum(each, 0.0)) if each.size else None)
