"""Moving weight backwards into the waits for messages, where sends and receives occupy their ranks and meet.

A rank that comes first to a message waits for the rank at its other end. Weight backwards (W) that the rank would run later
and that fit into that wait run there instead, in their own order: no other op then starts later than it did.

========== ============================================================================================================
before     rank 0: ``F1 SEND_F1 F2 W0``,  rank 1: ``W0 . RECV_F1``: the send of rank 0 waits for the W of rank 1
after      rank 0: ``F1 W0 SEND_F1 F2``:  its own W0 fits into that wait
========== ============================================================================================================
"""

from collections.abc import MutableSequence, Sequence

from pipeplan.kernels import inlined


def fill_waits(
    offsets: Sequence[int],
    partner: Sequence[int],
    rank_of: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    owed_by: Sequence[int],
    order: MutableSequence[int],
    ran: MutableSequence[bool],
    cursor: MutableSequence[int],
    pending: MutableSequence[int],
    filled: MutableSequence[int],
    free: MutableSequence[float],
    stack: MutableSequence[int],
    waiting: MutableSequence[bool],
) -> int:
    """Time the schedule as ``time_ops_blocking`` does, filling waits, and return how many ops could run.

    ``partner`` is the other end of a message, or -1; ``owed_by`` the op that must come before a W, or -1 for other ops.
    ``pending`` is where to look for the next W of a rank, and ``filled`` the next place of the rank in ``order``, which
    becomes the order of the ops by their numbers. The other arrays are those of the simulator's kernel.
    """
    top = len(cursor)
    for rank in range(top):
        stack[rank] = top - 1 - rank
        cursor[rank] = pending[rank] = filled[rank] = offsets[rank]
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        waiting[rank] = False
        op = cursor[rank]
        stop = offsets[rank + 1]
        while op < stop:
            cursor[rank] = op
            # A W that has filled a wait is done.
            if ran[op]:
                op += 1
                continue
            # A message: it begins when both ranks have come to it.
            other = partner[op]
            if other >= 0:
                peer = rank_of[other]
                if not (waiting[peer] and cursor[peer] == other):
                    waiting[rank] = True
                    break
                # Both ranks have come to the message; the one that came first has waited for the other.
                early = rank if free[rank] < free[peer] else peer
                late = peer if early == rank else rank
                done += fill(offsets, duration, owed_by, early, free[late], order, ran, cursor, pending, filled, free)
                free[rank] = free[peer] = free[late] + duration[op]
                order[filled[rank]] = op
                order[filled[peer]] = other
                filled[rank] += 1
                filled[peer] += 1
                cursor[peer] = other + 1
                waiting[peer] = False
                stack[top] = peer
                top += 1
                done += 2
                op += 1
                continue
            # A single op, or two that overlap.
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            free[rank] += duration[op]
            for member in range(op, after):
                order[filled[rank]] = member
                filled[rank] += 1
                ran[member] = True
            done += after - op
            op = after
        cursor[rank] = op
    return done


@inlined
def fill(
    offsets: Sequence[int],
    duration: Sequence[float],
    owed_by: Sequence[int],
    rank: int,
    until: float,
    order: MutableSequence[int],
    ran: MutableSequence[bool],
    cursor: Sequence[int],
    pending: MutableSequence[int],
    filled: MutableSequence[int],
    free: MutableSequence[float],
) -> int:
    """Run the rank's next Ws that end by ``until``, and return how many."""
    count = 0
    weight = pending[rank]
    while weight < offsets[rank + 1]:
        if owed_by[weight] < 0 or ran[weight]:
            weight += 1
            continue
        # Its I has not run yet, or it does not fit: those after it wait too, as Ws keep their order.
        if owed_by[weight] >= cursor[rank] or free[rank] + duration[weight] > until:
            break
        free[rank] += duration[weight]
        order[filled[rank]] = weight
        filled[rank] += 1
        ran[weight] = True
        count += 1
    pending[rank] = weight
    return count
