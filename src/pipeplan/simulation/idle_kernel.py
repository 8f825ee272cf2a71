"""The loop that attributes waiting time to the chain of ops that causes it.

An op's *holder* is the op that it had to wait for last. Following holders yields the chain of ops that causes a wait::

    rank 0   F0 F1 .. .. .. B0           rank 0 waits for its B0, whose chain of holders is
    rank 1      F0 B0 B0 F1              B0 of rank 1, F0 of rank 1, F0 of rank 0

A wait from ``begin`` to ``stop`` before an op was spent on the part of the op's chain that lies between the two times. Every
op occupies six intervals of its chain, of which each belongs to one *sort*::

    taken     start              expected    end        freed   left         the next op on the chain starts
      | OVERHEAD |    COMPUTE        | IMBALANCE | OVERHEAD | QUEUE |  TRANSFER  |

A copy or collective has two: itself (``OFFLOAD``, ``RELOAD``, ``UNSHARD`` or ``REDUCE``), then ``TRANSFER``.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints

TRANSFER, COMPUTE, IMBALANCE, OVERHEAD, OFFLOAD, RELOAD, QUEUE, UNSHARD, REDUCE = range(9)
SORTS = 9
"""Sorts of time that an op keeps others waiting for."""


class Ops(NamedTuple):
    """Holders, times and kinds of the ops.

    ======== ====================================================================================================
    holder   op that the op had to wait for last; -1 for none
    since    time at which the op occupies its rank, earlier than ``start`` by its overhead; the start of a copy or
             collective
    start    start of its computation
    expected end of its computation if it took the mean of its kind over the stages; at most ``end``
    end      end of its computation
    freed    time at which it frees its rank
    left     time at which its result begins to move to another rank; at least ``freed``
    copy     ``OFFLOAD``, ``RELOAD``, ``UNSHARD`` or ``REDUCE`` for a copy or collective, which occupies no rank; -1
             for all other ops
    stage    stage of the model
    ======== ====================================================================================================
    """

    holder: Annotated[Ints, "ops"]
    since: Annotated[Floats, "ops"]
    start: Annotated[Floats, "ops"]
    expected: Annotated[Floats, "ops"]
    end: Annotated[Floats, "ops"]
    freed: Annotated[Floats, "ops"]
    left: Annotated[Floats, "ops"]
    copy: Annotated[Ints, "ops"]
    stage: Annotated[Ints, "ops"]


class Waits(NamedTuple):
    """Times from ``begin`` to ``stop`` before each ``op``, which could not start earlier."""

    begin: Annotated[Floats, "waits"]
    stop: Annotated[Floats, "waits"]
    op: Annotated[Ints, "waits"]


class Spent(NamedTuple):
    """Waits for an op divided by what the chain that leads to it was doing.

    ======== ====================================================================================================
    nearest  last op on the chain within the wait; -1 for none
    lowest   the op on the chain within it of the lowest stage, of several the earliest; -1 for none
    highest  the same for the highest stage
    holders  number of ops on the chain within it
    start_up time before anything on the chain had started
    by_sort  remaining time by sort, wait after wait
    ======== ====================================================================================================
    """

    nearest: Annotated[Ints, "waits"]
    lowest: Annotated[Ints, "waits"]
    highest: Annotated[Ints, "waits"]
    holders: Annotated[Ints, "waits"]
    start_up: Annotated[Floats, "waits"]
    by_sort: Annotated[Floats, "SORTS * waits"]


@inlined
def spend(ops: Ops, node: int, begin: float, clock: float, rounding: float, into: Floats, row: int) -> float:
    """Add an op's intervals between ``begin`` and ``clock`` to ``into``, from the last to the first.

    Return where they begin. ``row`` is the first column of the sums in ``into``.
    """
    copy = ops.copy[node]
    # Nothing before the wait counts, nor before the op.
    floor: float = max(begin, ops.since[node])
    last = -1
    for step in range(2 if copy >= 0 else 6):
        if step == 0:
            earliest = ops.end[node] if copy >= 0 else ops.left[node]
            spent = TRANSFER
        elif step == 1:
            earliest = ops.start[node] if copy >= 0 else ops.freed[node]
            spent = copy if copy >= 0 else QUEUE
        elif step == 2:
            earliest, spent = ops.end[node], OVERHEAD
        elif step == 3:
            earliest, spent = ops.expected[node], IMBALANCE
        elif step == 4:
            earliest, spent = ops.start[node], COMPUTE
        else:
            earliest, spent = ops.since[node], OVERHEAD
        # An interval that would leave no more than rounding before it takes that, too.
        if earliest - begin <= rounding:
            earliest = begin
        if clock - earliest > rounding:
            into[row + spent] += clock - earliest
            clock, last = earliest, spent
    # What is left is too short to be an interval, and belongs to the last one.
    if last >= 0 and clock > floor:
        into[row + last] += clock - floor
    return floor


def divide_waits(waits: Waits, ops: Ops, rounding: float, spent: Spent) -> None:
    """Divide each wait along the chain of its op; differences up to ``rounding`` are none."""
    for wait in range(len(waits.op)):
        # From the end of the wait back to its begin.
        since, clock = waits.begin[wait], waits.stop[wait]
        node, low, high = waits.op[wait], -1, -1
        spent.nearest[wait] = -1
        while clock - since > rounding:
            # The next op on the chain that began before what is left of the wait ends.
            node = ops.holder[node]
            while node >= 0 and ops.since[node] >= clock - rounding:
                node = ops.holder[node]
            if node < 0:
                spent.start_up[wait] = clock - since
                break
            if spent.nearest[wait] < 0:
                spent.nearest[wait] = low = high = node
            # Of ops on equal stages the earliest counts, which comes last.
            if ops.stage[node] <= ops.stage[low]:
                low = node
            if ops.stage[node] >= ops.stage[high]:
                high = node
            spent.holders[wait] += 1
            clock = spend(ops, node, since, clock, rounding, spent.by_sort, SORTS * wait)
        spent.lowest[wait], spent.highest[wait] = low, high
