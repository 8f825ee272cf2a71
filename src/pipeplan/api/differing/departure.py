"""First op at which a run departs from its plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Floats, Timeline, crosses_ranks, dependencies, tolerances
from pipeplan.records import Record


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

    Parameters
    ----------
    planned, measured
        Timelines of the same compute ops.
    match
        Position in the run of each planned op, shape (ops,).
    transfer
        Planned transfer time.
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
