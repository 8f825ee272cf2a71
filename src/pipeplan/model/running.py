"""Running a schedule without a clock: which ops can run at all, and in which step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.kernels import Kernel
from pipeplan.model.dependency import NONE, Dependencies
from pipeplan.model.op import RECEIVE_KINDS
from pipeplan.model.quantities import Bools, Ints
from pipeplan.model.running_kernel import run_rows
from pipeplan.model.schedule import Schedule

_RUN_ROWS = Kernel(run_rows)


@dataclass(frozen=True, slots=True, eq=False)
class RowProgress:
    """The ops that the ranks of a schedule reach.

    Attributes
    ----------
    source
        The op of another rank that must be done before each op runs, or ``NONE``; shape (ops,).
    step
        The step after which each op is done when every op takes one, from 1; 0 for one that never runs. Shape (ops,).
    reached
        The first op of each rank that never runs, or the end of its row. Shape (ranks,).
    """

    source: NDArray[np.int32]
    step: NDArray[np.int32]
    reached: Ints

    @property
    def complete(self) -> bool:
        """Whether every op runs."""
        return bool((self.step > 0).all())


def progress(schedule: Schedule, needs: Dependencies) -> RowProgress:
    """Run every rank's row as far as arrivals from other ranks allow; linear in the ops.

    What an op waits for on its own rank is taken for granted: it must come earlier in the row.
    """
    return _run(schedule, needs.crossing)


def farthest(schedule: Schedule, needs: Dependencies, blocked: Bools) -> RowProgress:
    """How far the ranks get of a schedule that is not right, where the ops that are ``blocked``, shape (ops,), never run.

    Neither does what waits for them, on their rank or on another one.
    """
    source = needs.crossing.copy()
    # An op that waits for itself is never reached.
    source[blocked] = np.flatnonzero(blocked)
    return _run(schedule, source)


def rendezvous(schedule: Schedule, needs: Dependencies) -> RowProgress:
    """Run every rank's row where a send and its receive block until both ranks have come to them.

    Two ops that meet are each done once the op before the *other* one is done: that op is their ``source``. Every result
    that goes to another rank must have its SEND and RECV.
    """
    receives = schedule.where(*RECEIVE_KINDS)
    sends = needs.arrival[receives]
    source = np.full(len(schedule), NONE, np.int64)
    for here, there in ((sends, receives), (receives, sends)):
        source[here] = np.where(np.isin(there, schedule.offsets), NONE, there - 1)
    return _run(schedule, source)


def _run(schedule: Schedule, source: NDArray[np.signedinteger]) -> RowProgress:
    source = source.astype(np.int32, copy=False)
    step = np.zeros(len(schedule), np.int32)
    reached = np.zeros(schedule.ranks, np.int64)
    scratch = np.full(2 * schedule.ranks, -1, np.int64), np.zeros(schedule.ranks + 1, np.int64)
    inputs = schedule.offsets, source, schedule.rank, schedule.joined
    _RUN_ROWS(inputs, (step, reached, *scratch), work=len(schedule))
    return RowProgress(source, step, reached)
