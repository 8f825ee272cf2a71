"""Measured against planned: times of ops, of whole kinds of ops and of ranks, and the first op out of the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from pipeplan.costs import Segments, Settings
from pipeplan.foundation.records import Record
from pipeplan.model import Floats, Kind, Schedule, Timeline, crosses_ranks, dependencies, tolerances
from pipeplan.simulation import gap_of, inner_communication, simulate, transfer_of

Positions = NDArray[np.intp]


class KindDifference(Record, frozen=True, kw_only=True):
    """All ops of one kind and stage, in the unit of the measured timeline.

    Attributes
    ----------
    kind, stage, ops
        Kind (``F+B``: overlapped pairs, by the forward's stage), stage, and number of ops.
    planned, measured
        Medians of their durations.
    effect
        By how much the planned makespan changes if these ops alone take their measured times.
    """

    kind: str
    stage: int
    ops: int
    planned: float
    measured: float
    effect: float


class Resimulation:
    """Simulates the schedule of a planned timeline with other op times and its own transfers."""

    def __init__(self, planned: Timeline) -> None:
        self.schedule, self.unit = planned.schedule, planned.unit
        self.transfer = transfer_of(planned)
        gap = gap_of(planned)
        ones = tuple(np.ones(self.schedule.stages).tolist())
        self._costs = Settings(
            forward_times=ones,
            backward_input_times=ones,
            backward_weight_times=ones,
            p2p_time=max(self.transfer - gap, 0.0),
            op_gap=gap,
        ).costs(self.schedule.placement)
        self._unit_durations = self._costs.durations(self.schedule)

    def __call__(self, durations: Floats) -> Timeline:
        """Return the timeline with these op times, shape (ops,)."""
        simulation = simulate(self.schedule, self._costs, factors=durations / self._unit_durations)
        return replace(simulation.timeline, unit=self.unit)


def kind_differences(
    planned: Timeline, before: Floats, after: Floats, resimulate: Resimulation
) -> Iterator[KindDifference]:
    """Yield a difference for the ops of each kind on each stage, and for the overlapped pairs of each stage."""
    unchanged = resimulate(before).makespan
    for kind, stage, counted, changed in _groups(planned.schedule):
        # Every simulation takes as long as there are ops: none for those that took what was planned.
        same = np.array_equal(before[changed], after[changed])
        alone = unchanged if same else resimulate(_with(before, after, changed)).makespan
        yield KindDifference(
            kind=kind,
            stage=stage,
            ops=len(counted),
            planned=float(np.median(before[counted])),
            measured=float(np.median(after[counted])),
            effect=alone - unchanged,
        )


def _with(before: Floats, after: Floats, changed: Positions) -> Floats:
    durations = before.copy()
    durations[changed] = after[changed]
    return durations


def _groups(schedule: Schedule) -> Iterator[tuple[str, int, Positions, Positions]]:
    """Yield kind, stage, the counted ops, and the ops whose time changes with them: a pair counts once and is two ops."""
    columns, second = schedule.columns, schedule.joined
    first = np.append(second[1:], False)
    number = columns.kind.astype(np.int64) * schedule.stages + columns.stage
    for group, alone in _alike(np.flatnonzero(~(first | second)), number):
        kind, stage = divmod(group, schedule.stages)
        yield Kind(kind).name, stage, alone, alone
    for stage, pairs in _alike(np.flatnonzero(first), columns.stage):
        yield "F+B", stage, pairs, np.concatenate((pairs, pairs + 1))


def _alike(chosen: Positions, numbers: NDArray[np.integer[Any]]) -> Iterator[tuple[int, Positions]]:
    """Yield each number among the chosen ops, in order, with the ops that have it."""
    order = chosen[np.argsort(numbers[chosen], kind="stable")]
    classes, begins = np.unique(numbers[order], return_index=True)
    yield from zip(classes.tolist(), np.split(order, begins[1:]), strict=len(classes) > 0)


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
    """One rank: how long it was busy and idle, until the last op ended on any rank; in the unit of the measured timeline.

    ``exposed_planned`` and ``exposed_measured`` are the parts of its busy time in which it communicates and does not
    compute. None: it is not known; both are left out if no rank is known to have any.
    """

    rank: int
    busy_planned: float
    busy_measured: float
    idle_planned: float
    idle_measured: float
    exposed_planned: float | UnsetType | None = UNSET
    exposed_measured: float | UnsetType | None = UNSET


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
    """Return the ops that took the most beyond their plan, the worst first; an overlapped pair counts as its forward."""
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


Exposed = Sequence[float | UnsetType | None]
"""Exposed communication of each rank, None where it is not known, UNSET where nothing is said of it."""


def exposed_of(planned: Timeline, segments: Segments | None, measured: Exposed) -> tuple[Exposed, Exposed]:
    """Return the exposed communication in the plan and in the run; UNSET if neither is known to have any."""
    ranks = planned.schedule.ranks
    in_run = measured or [None] * ranks
    in_plan = [None] * ranks if segments is None else inner_communication(planned, segments)[0].tolist()
    return (in_plan, in_run) if any(in_plan) or any(in_run) else ([UNSET] * ranks, [UNSET] * ranks)


def rank_differences(
    planned: Timeline, measured: Timeline, exposed: tuple[Exposed, Exposed]
) -> Iterator[RankDifference]:
    """Yield the difference of each rank of two timelines of the same ops."""
    for rank in range(planned.schedule.ranks):
        yield RankDifference(
            rank=rank,
            busy_planned=float(planned.work[rank]),
            busy_measured=float(measured.work[rank]),
            idle_planned=float(planned.idle[rank]),
            idle_measured=float(measured.idle[rank]),
            exposed_planned=exposed[0][rank],
            exposed_measured=exposed[1][rank],
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
    paired: NDArray[np.bool_] = schedule.joined | schedule.begins_pair
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


class Departure(Record, frozen=True, kw_only=True):
    """The first op, by its start in the run, at which a run departs from its plan.

    Attributes
    ----------
    op, rank, start
        The op that the rank ran, and when it started in the run.
    planned, happened
        Planned and actual event, in words.
    reordered
        True if the op ran out of order; else it was in order, and waited for something else than planned.
    """

    op: str
    rank: int
    start: float
    planned: str
    happened: str
    reordered: bool


def first_departure(
    planned: Timeline, measured: Timeline, match: NDArray[np.intp], transfer: float
) -> Departure | None:
    """Return the first op that runs out of order on its rank; else the first that waits for something else than planned.

    An op waits for its rank, or for its message, whichever comes last. Where both come at once, either will do.
    """
    return _other_order(planned, measured, match) or _other_cause(planned, measured, match, transfer)


def _other_order(planned: Timeline, measured: Timeline, match: NDArray[np.intp]) -> Departure | None:
    """Return the first op at another position in its rank's order."""
    mine = np.lexsort((np.arange(len(match)), planned.start, planned.schedule.rank))
    theirs = np.lexsort((np.arange(len(match)), measured.start, measured.schedule.rank))
    same_rank = planned.schedule.rank[mine] == measured.schedule.rank[theirs]
    differs = np.flatnonzero((match[mine] != theirs) | ~same_rank)
    differs = differs[planned.start[mine[differs]] != _start_in_plan(planned, match, theirs[differs])]
    if not differs.size:
        return None
    first = int(differs[measured.start[theirs[differs]].argmin()])
    position = int(theirs[first])
    return Departure(
        op=str(measured.schedule.op(position)),
        rank=int(measured.schedule.rank[position]),
        start=float(measured.start[position]),
        planned=f"{planned.schedule.op(int(mine[first]))} runs here",
        happened=f"{measured.schedule.op(position)} ran before it",
        reordered=True,
    )


def _start_in_plan(planned: Timeline, match: NDArray[np.intp], positions: NDArray[np.intp]) -> Floats:
    """Return the planned starts of ops of the run; both ops of an overlapped pair start together, in either order."""
    back = np.empty(len(match), np.intp)
    back[match] = np.arange(len(match))
    return planned.start[back[positions]]


def _other_cause(planned: Timeline, measured: Timeline, match: NDArray[np.intp], transfer: float) -> Departure | None:
    """Return the first op that waits for its rank instead of its message, or for its message instead of its rank."""
    schedule = planned.schedule
    arrival = dependencies(schedule).arrival
    ops = np.flatnonzero(crosses_ranks(schedule, arrival))
    ops = ops[~schedule.joined[ops] & (ops > schedule.offsets[schedule.rank[ops]])]
    message, free = planned.end[arrival[ops]] + transfer, planned.end[ops - 1]
    slack = tolerances.ROUNDING * planned.makespan
    sent, was_free = measured.end[match[arrival[ops]]], measured.end[match[ops - 1]]
    late = (message < free - slack) & (sent > was_free)
    early = (message > free + slack) & (sent + transfer < was_free)
    if not (late | early).any():
        return None
    departed = np.flatnonzero(late | early)
    which = int(departed[measured.start[match[ops[departed]]].argmin()])
    op = int(ops[which])
    source, before = schedule.op(int(arrival[op])), schedule.op(op - 1)
    there, waits = f"the result of {source} arrives before {before} ends", f"the rank waits for the result of {source}"
    return Departure(
        op=str(schedule.op(op)),
        rank=int(schedule.rank[op]),
        start=float(measured.start[match[op]]),
        planned=there if late[which] else waits,
        happened=f"{source} ended after {before}" if late[which] else f"it arrived before {before} ended",
        reordered=False,
    )
