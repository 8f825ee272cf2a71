"""Communication inside ops, such as the all-to-all of experts: how much of it delays its rank, and how much pairs hide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeplan.costs import COMPUTE, Segment, Segments
from pipeplan.model import Floats, Kind, Timeline

_OPS = {Kind.F: "forward", Kind.I: "backward_input", Kind.W: "backward_weight"}
"""Segments of each kind that runs alone as it stands; a full backward may hide communication behind its weights."""


@dataclass(frozen=True, slots=True, eq=False)
class InnerCommunication:
    """Time that the communication inside ops is exposed, and hidden behind computation; two arrays of shape (ranks,)."""

    exposed: Floats
    hidden: Floats


def inner_communication(timeline: Timeline, segments: Segments) -> InnerCommunication:
    """Return the exposed and hidden communication of each rank, of overlapped pairs and of ops that run alone.

    The shares of an op or pair are those of its stages. Recomputations have no segments and count as computation.
    """
    schedule, columns = timeline.schedule, timeline.schedule.columns
    exposed, hidden = np.zeros((2, len(Kind), schedule.stages))
    for kind, op in _OPS.items():
        exposed[kind] = [_communication(getattr(stage, op)) / stage.time(op) for stage in segments.stages]
    alone = segments.alone()
    exposed[Kind.B], hidden[Kind.B] = alone.exposed / alone.time, alone.hidden / alone.time
    of_op = [table[columns.kind, columns.stage] for table in (exposed, hidden)]
    forward, backward = schedule.pairs
    stage = columns.stage
    together = segments.together(stage[forward], stage[backward], columns.kind[backward] == Kind.I)
    for share, of_pairs in zip(of_op, (together.exposed, together.hidden), strict=True):
        share[forward], share[backward] = of_pairs / together.time, 0.0
    taken = timeline.end - timeline.start
    of_ranks: list[Floats] = [
        np.bincount(schedule.rank, share * taken, schedule.ranks).astype(np.float64) for share in of_op
    ]
    return InnerCommunication(*of_ranks)


def _communication(segments: Iterable[Segment]) -> float:
    return sum(time for kind, time in segments if kind != COMPUTE)
