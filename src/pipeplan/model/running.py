"""Execution of a schedule without times: which ops can run, and in which step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.kernels import Kernel
from pipeplan.model.dependency import NONE, Dependencies
from pipeplan.model.op import RECEIVE_KINDS
from pipeplan.model.running_kernel import run_rows
from pipeplan.model.schedule import Schedule
from pipeplan.model.values import Bools, Ints

_RUN_ROWS = Kernel(run_rows)

Streams = Literal["rank", "direction", "edge"]
"""Communication streams of a rank: one, one per direction of messages, or one per pair of sending and receiving rank."""

Sharding = Literal["none", "pytorch", "megatron"]
"""Rules that place the collectives of sharded stages."""


@dataclass(frozen=True, slots=True, eq=False)
class RowProgress:
    """The ops of a schedule that can run, and those that block forever.

    Attributes
    ----------
    source
        The op of another rank that each op waits for, or ``NONE``; shape (ops,).
    step
        Step in which each op runs if every op takes one step, counted from 1; 0 if it never runs. Shape (ops,).
    reached
        First op of each rank that never runs, or the end of its row. Shape (ranks,).
    """

    source: NDArray[np.int32]
    step: NDArray[np.int32]
    reached: Ints

    @property
    def complete(self) -> bool:
        """True if every op runs."""
        return bool((self.step > 0).all())


def progress(schedule: Schedule, needs: Dependencies) -> RowProgress:
    """Advance every rank through its row as far as arrivals from other ranks allow; linear in the ops.

    Dependencies on the same rank are not checked: their sources must come earlier in the row.
    """
    return _run(schedule, needs.crossing)


def farthest(schedule: Schedule, needs: Dependencies, blocked: Bools) -> RowProgress:
    """Return the progress of an invalid schedule in which the ops of a mask ``blocked``, shape (ops,), never run.

    Ops that wait for a blocked op do not run either, on its rank or on another one.
    """
    source = needs.crossing.copy()
    # An op that waits for itself never runs.
    source[blocked] = np.flatnonzero(blocked)
    return _run(schedule, source)


def rendezvous(schedule: Schedule, needs: Dependencies) -> RowProgress:
    """Return the progress if a send and its receive block until both ranks have reached them.

    Both are done once the op before the *other* one is done: that op is their ``source``. Every result that crosses
    ranks must have its SEND and RECV.
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
    _RUN_ROWS(inputs, (step, reached, *scratch))
    return RowProgress(source, step, reached)
