"""Communication inside ops, such as the all-to-all of experts: how much of it delays its rank, and how much pairs hide."""

from __future__ import annotations

import numpy as np

from pipeplan.costs import OPS, Segments
from pipeplan.model import Floats, Kind, Timeline


def inner_communication(timeline: Timeline, segments: Segments) -> tuple[Floats, Floats]:
    """Return the exposed and the hidden time of the communication inside the ops of each rank, two of shape (ranks,).

    The shares of an op or pair are those of its stages. Recomputations have no segments and count as computation.
    """
    schedule, columns = timeline.schedule, timeline.schedule.columns
    tables = np.zeros((2, len(Kind), schedule.stages))
    times, computing = segments.times(), segments.scaled(np.ones((schedule.stages, 3)), communication=0.0).times()
    for kind, op in zip((Kind.F, Kind.I, Kind.W), OPS, strict=True):
        tables[0, kind] = (times[op] - computing[op]) / times[op]
    # A full backward alone may hide communication behind its weights.
    alone = segments.alone()
    tables[:, Kind.B] = alone.exposed / alone.time, alone.hidden / alone.time
    of_op = tables[:, columns.kind, columns.stage]
    forward, backward = schedule.pairs
    stage = columns.stage
    together = segments.together(stage[forward], stage[backward], columns.kind[backward] == Kind.I)
    of_op[:, forward] = together.exposed / together.time, together.hidden / together.time
    of_op[:, backward] = 0.0
    taken = timeline.end - timeline.start
    exposed, hidden = (np.bincount(schedule.rank, share * taken, schedule.ranks) for share in of_op)
    return exposed.astype(np.float64), hidden.astype(np.float64)
