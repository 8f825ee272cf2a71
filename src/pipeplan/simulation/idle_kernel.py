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

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints

TRANSFER, COMPUTE, IMBALANCE, OVERHEAD, OFFLOAD, RELOAD, QUEUE, UNSHARD, REDUCE = range(9)
SORTS = 9
"""Sorts of time that an op keeps others waiting for."""


class Ops(NamedTuple):
    """Holders, times and kinds of the ops; arrays of shape (ops,).

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

    holder: Ints
    since: Floats
    start: Floats
    expected: Floats
    end: Floats
    freed: Floats
    left: Floats
    copy: Ints
    stage: Ints


@inlined
def spend(
    ops: Ops, node: int, begin: float, clock: float, rounding: float, into: MutableSequence[float], row: int
) -> float:
    """Add an op's intervals between ``begin`` and ``clock`` to ``into``, from the last to the first.

    Return where they begin. ``row`` is the first column of the sums in ``into``.
    """
    copy = ops.copy[node]
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


def divide_waits(
    begin: Sequence[float],
    stop: Sequence[float],
    op: Sequence[int],
    ops: Ops,
    rounding: float,
    nearest: MutableSequence[int],
    lowest: MutableSequence[int],
    highest: MutableSequence[int],
    holders: MutableSequence[int],
    start_up: MutableSequence[float],
    spent: MutableSequence[float],
) -> None:
    """Divide the time from ``begin`` to ``stop`` before each ``op``, which could not start earlier, along its chain.

    All outputs have one entry per wait, ``spent`` one per wait and sort, flattened; see
    :class:`~pipeplan.simulation.idle.Spent`. Ops are -1 where nothing on the chain had started.
    """
    for wait in range(len(op)):
        since, clock = begin[wait], stop[wait]
        node, low, high = op[wait], -1, -1
        nearest[wait] = -1
        while clock - since > rounding:
            # The next op on the chain that began before what is left of the wait ends.
            node = ops.holder[node]
            while node >= 0 and ops.since[node] >= clock - rounding:
                node = ops.holder[node]
            if node < 0:
                start_up[wait] = clock - since
                break
            if nearest[wait] < 0:
                nearest[wait] = low = high = node
            # Of ops on equal stages the earliest counts, which comes last.
            if ops.stage[node] <= ops.stage[low]:
                low = node
            if ops.stage[node] >= ops.stage[high]:
                high = node
            holders[wait] += 1
            clock = spend(ops, node, since, clock, rounding, spent, SORTS * wait)
        lowest[wait], highest[wait] = low, high
