"""How many received messages wait for their op at once?

A receive takes its buffer when it is posted, and holds it until the op that needs it runs. A plan that receives early keeps
ranks from waiting, and pays with buffers; one that receives far too early runs out of memory that no plan of activations
accounts for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.problem import Problem
from pipeplan.model import Dependencies, Kind, Schedule, dependencies
from pipeplan.passes.communication import insert_communication

SPARE = 2
"""Buffers a rank that a plan may use for early receives beyond twice what it needs: one a direction."""


def check_buffers(schedule: Schedule, needs: Dependencies, *, limit: int | None = None) -> Iterator[Problem]:
    """The first op on each rank at which more messages wait than its limit allows.

    Parameters
    ----------
    limit
        Messages a rank; None: twice what the same plan needs when every receive stands right before its op, and ``SPARE``.
    """
    waiting = waiting_messages(schedule, needs)
    late = insert_communication(schedule, receives="late")
    needed = _peaks(late, waiting_messages(late, dependencies(late)))
    peaks = _peaks(schedule, waiting)
    allowed = 2 * needed + SPARE if limit is None else np.full(schedule.ranks, limit)
    for rank in np.flatnonzero(peaks > allowed).tolist():
        first, stop = schedule.offsets[rank : rank + 2]
        position = int(first + np.flatnonzero(waiting[first:stop] > allowed[rank])[0])
        message = (
            f"{peaks[rank]} received messages wait for their ops at the peak of this rank, each in a buffer of its own; "
            f"the plan needs {needed[rank]} when nothing is received early, and {allowed[rank]} are allowed"
        )
        yield Problem("buffers", schedule.place(position), message, position)


def waiting_messages(schedule: Schedule, needs: Dependencies) -> NDArray[np.int64]:
    """How many messages each rank has received and not yet used, after each op; shape (ops,)."""
    change = np.zeros(len(schedule), np.int64)
    change[schedule.where(Kind.RECV_F, Kind.RECV_B)] = 1
    compute = np.flatnonzero((schedule.columns.kind <= Kind.R) & (needs.arrival >= 0))
    received = np.isin(schedule.columns.kind[needs.arrival[compute]], (Kind.RECV_F, Kind.RECV_B))
    change[compute[received]] = -1
    waiting: NDArray[np.int64] = np.cumsum(change)
    waiting -= np.repeat(np.concatenate(([0], waiting))[schedule.offsets[:-1]], np.diff(schedule.offsets))
    return waiting


def _peaks(schedule: Schedule, waiting: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most on each rank, shape (ranks,)."""
    peaks = np.zeros(schedule.ranks, np.int64)
    np.maximum.at(peaks, schedule.rank, waiting)
    return peaks
