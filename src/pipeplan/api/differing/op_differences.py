"""Measured against planned times of single ops, of whole kinds of ops, and of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeplan.api.differing.resimulation import KindDifference, Resimulation
from pipeplan.model import Floats, Timeline
from pipeplan.records import Record

SLOWEST = 5
"""Maximum number of listed ops, those furthest over their plan first."""

_SCALES = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Ends that a colour scale of ratios can have."""


class OpDifference(Record, frozen=True, kw_only=True):
    """One op, in the unit of the measured timeline.

    Attributes
    ----------
    op, rank, start
        Op in the schedule's notation, its rank, and its start in the run.
    planned, measured
        Planned and measured time.
    typical
        The median of what the ops of its kind and stage took.
    """

    op: str
    rank: int
    start: float
    planned: float
    measured: float
    typical: float


class RankDifference(Record, frozen=True, kw_only=True):
    """One rank: how long it was busy and idle, until the last op ended on any rank; in the unit of the measured timeline."""

    rank: int
    busy_planned: float
    busy_measured: float
    idle_planned: float
    idle_measured: float


class WholeKind(Record, frozen=True, kw_only=True):
    """All ops of one kind on all stages.

    Attributes
    ----------
    kind
        Name of the kind; ``F+B`` are overlapped pairs.
    least, most
        The smallest and the largest of its stages' ratios, measured over planned.
    effect
        By how much the planned makespan changes if the ops of this kind alone take their measured times.
    """

    kind: str
    least: float
    most: float
    effect: float


def slowest_ops(planned: Timeline, before: Floats, after: Floats, starts: Floats) -> Iterator[OpDifference]:
    """Return the ops that took the most beyond their plan, the worst first; an overlapped pair counts as its forward.

    Parameters
    ----------
    planned
        Compute ops.
    before, after, starts
        The planned and the measured time of each op, and its start in the run, shape (ops,).
    """
    schedule = planned.schedule
    beyond = np.where(schedule.joined, -np.inf, after - before)
    for position in np.argsort(-beyond, kind="stable")[:SLOWEST].tolist():
        if beyond[position] <= 0:
            return
        columns = schedule.columns
        alike = (columns.kind == columns.kind[position]) & (columns.stage == columns.stage[position])
        yield OpDifference(
            op=str(schedule.op(position)),
            rank=int(schedule.rank[position]),
            start=float(starts[position]),
            planned=float(before[position]),
            measured=float(after[position]),
            typical=float(np.median(after[alike])),
        )


def rank_differences(planned: Timeline, measured: Timeline) -> Iterator[RankDifference]:
    """Yield the difference of each rank of two timelines of the same ops."""
    for rank in range(planned.schedule.ranks):
        yield RankDifference(
            rank=rank,
            busy_planned=float(planned.work[rank]),
            busy_measured=float(measured.work[rank]),
            idle_planned=float(planned.idle[rank]),
            idle_measured=float(measured.idle[rank]),
        )


def whole_kinds(
    planned: Timeline, before: Floats, after: Floats, kinds: Sequence[KindDifference], resimulate: Resimulation
) -> Iterator[WholeKind]:
    """Yield the difference of each kind over all of its stages, in the order of ``kinds``."""
    unchanged = resimulate(before).makespan
    for name in dict.fromkeys(kind.kind for kind in kinds):
        ratios = [kind.measured / kind.planned for kind in kinds if kind.kind == name and kind.planned]
        if ratios:
            alone = resimulate(np.where(_of_kind(planned, name), after, before)).makespan
            yield WholeKind(kind=name, least=min(ratios), most=max(ratios), effect=alone - unchanged)


def _of_kind(planned: Timeline, name: str) -> NDArray[np.bool_]:
    """Return the ops of a kind that run alone, or those of overlapped pairs."""
    schedule = planned.schedule
    paired: NDArray[np.bool_] = schedule.joined | np.append(schedule.joined[1:], False)
    if name == "F+B":
        return paired
    kind = next(kind for kind in schedule.kinds if kind.name == name)
    alone: NDArray[np.bool_] = (schedule.columns.kind == kind) & ~paired
    return alone


def measured_over_planned(before: Floats, after: Floats) -> Floats:
    """Return the measured over the planned time of each op, shape (ops,).

    Where no time was planned it is the end of the longest scale.
    """
    ratios = np.full(len(before), _SCALES[-1])
    np.divide(after, before, out=ratios, where=before > 0)
    return ratios


def scale_of(ratios: Floats) -> float:
    """Return the end of a colour scale from ``1 / limit`` to ``limit``: at least 1.1, and beyond 95 of 100 ratios."""
    if not len(ratios):
        return _SCALES[0]
    wanted = float(np.exp(np.percentile(np.abs(np.log(ratios)), 95)))
    return next((limit for limit in _SCALES if limit >= wanted), _SCALES[-1])
