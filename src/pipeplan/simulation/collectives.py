"""Spans of ranks with collectives beside their computation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pipeplan.model import COLLECTIVE_KINDS, Floats, Kind, Timeline, among, collectives_awaited


def spans_with_collectives(timeline: Timeline) -> Floats:
    """Return the time from the first op of each rank to its last, shape (ranks,).

    A simulated rank gathers its first parameters from time 0, however long it then waits for its first microbatch. These
    collectives count from the latest time at which they can begin without delaying anything, because without a barrier the
    rank would run its previous step until then::

        collectives  UNSHARD ====  . . . . . . . .          simulated
        rank                                      F0
        collectives                  UNSHARD ====           counted
    """
    schedule, start, end = timeline.schedule, timeline.start, timeline.end
    collective = among(schedule.columns.kind, COLLECTIVE_KINDS)
    # Ops that take no time on their rank.
    passing = collective | among(schedule.columns.kind, (Kind.RESHARD, Kind.RELOAD))
    awaited = collectives_awaited(schedule)
    begins = np.zeros(schedule.ranks)
    for rank, (first, stop) in enumerate(pairwise(schedule.offsets.tolist())):
        ahead = first + int(np.append(passing[first:stop], False).argmin())
        leading = first + np.flatnonzero(collective[first:ahead])
        own = np.arange(ahead, stop)
        rest = own[collective[own]]
        latest = [*start[own[~collective[own]]].tolist()]
        if leading.size:
            waiting = own[(awaited[own] >= 0) & (awaited[own] < ahead)]
            latest += (start[waiting] - end[awaited[waiting]]).tolist()
            latest += (start[rest[:1]] - end[leading[-1]]).tolist()
        begins[rank] = max(min(latest, default=0.0), 0.0)
    spans: Floats = np.where(timeline.last_end > 0, timeline.last_end - begins, 0.0)
    return spans
