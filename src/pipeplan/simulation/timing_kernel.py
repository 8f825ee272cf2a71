"""The simulator's hot loops: start and end of every op.

Ops are numbered rank after rank, each rank's in the order of its row. Both loops keep a stack of ranks that can go on.
A rank is taken off the stack and runs its row until an op needs another rank that has not come far enough. Every op is
timed once, so the time is linear in the ops, whatever their order::

    rank 0   F0  F1  B0 ...          1. rank 0 runs F0 and F1, and needs B0 of rank 1: it waits in B0's line
    rank 1   F0  B0  F1 ...          2. rank 1 runs F0 and B0, which puts rank 0 back on the stack

Arrays that both loops read, by op unless noted:

========== ==================================================================================================
offsets    first op of each rank, and the number of ops after the last; shape (ranks + 1,)
joined     whether the op is the second of an overlapped pair, which starts and ends with the first
duration   time that the op occupies its rank, or that a copy occupies its link
copied     ``TO_HOST`` or ``FROM_HOST`` for a copy between a rank and its host, else -1; empty without copies
awaited    op of the same rank that is copied to the host, or the reload that the op needs; else -1
========== ==================================================================================================

Arrays that both write:

========== ==================================================================================================
start, end times of the op; ``end`` begins at -1, "not timed yet"
cursor     next op of each rank
free       time from which each rank is free
host_free  time from which each rank's link to its host (``2 * rank + TO_HOST``) or back is free
stack      ranks that can go on; the last one is taken first
========== ==================================================================================================
"""

from collections.abc import MutableSequence, Sequence

TO_HOST, FROM_HOST = 0, 1
"""Directions of a copy."""


def time_ops(
    offsets: Sequence[int],
    source: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    delay: Sequence[float],
    link: Sequence[int],
    copied: Sequence[int],
    awaited: Sequence[int],
    start: MutableSequence[float],
    end: MutableSequence[float],
    arrival: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    link_free: MutableSequence[float],
    host_free: MutableSequence[float],
    waiter: MutableSequence[int],
    next_waiter: MutableSequence[int],
    stack: MutableSequence[int],
) -> int:
    """Time every op that can run when transfers do not occupy ranks. Return how many were timed.

    A result reaches the other rank its ``delay`` after its op's end. A transfer over a contended link also waits until the
    link is free.

    ============ ================================================================================================
    source       op of another rank that the op needs, else -1
    delay        time of the transfer of each op's result; one number if all take as long
    link         link that the op's result takes to another rank, else -1; empty if links are not contended
    arrival      when the op's result reaches the other rank, -1 at first; empty if links are not contended
    link_free    time from which each link is free
    waiter       first rank that waits for the op, else -1
    next_waiter  for each rank, the next one that waits for the same op, else -1
    ============ ================================================================================================
    """
    contended = len(link) > 0
    copies = len(copied) > 0
    alike = len(delay) == 1
    common = delay[0] if len(delay) > 0 else 0.0
    # Rank 0 is taken first.
    top = len(cursor)
    for rank in range(top):
        stack[rank] = top - 1 - rank
        cursor[rank] = offsets[rank]
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        op = cursor[rank]
        stop = offsets[rank + 1]
        clock = free[rank]
        while op < stop:
            # The pair or the single op from op to after starts when the rank is free ...
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            begin = clock
            if copies:
                if copied[op] >= 0:
                    clock = time_copy(op, 2 * rank + copied[op], clock, awaited, duration, start, end, host_free)
                    op = after
                    done += 1
                    continue
                # ... its activations are back from the host ...
                for member in range(op, after):
                    if awaited[member] >= 0 and end[awaited[member]] > begin:
                        begin = end[awaited[member]]
            # ... and its inputs have arrived.
            blocker = -1
            for member in range(op, after):
                needed = source[member]
                if needed >= 0:
                    arrived = arrival[needed] if contended else end[needed]
                    if arrived < 0:
                        blocker = needed
                        break
                    if not contended:
                        arrived += common if alike else delay[needed]
                    if arrived > begin:
                        begin = arrived
            # If an input has not been timed yet, the rank queues for it and another rank goes on.
            if blocker >= 0:
                next_waiter[rank] = waiter[blocker]
                waiter[blocker] = rank
                break
            clock = begin + duration[op]
            for member in range(op, after):
                start[member] = begin
                end[member] = clock
                if contended:
                    wire = link[member]
                    if wire >= 0:
                        arrived = max(link_free[wire], clock) + (common if alike else delay[member])
                        arrival[member] = link_free[wire] = arrived
                # The ranks that waited for this op can go on.
                woken = waiter[member]
                while woken >= 0:
                    stack[top] = woken
                    top += 1
                    woken = next_waiter[woken]
            done += after - op
            op = after
        cursor[rank] = op
        free[rank] = clock
    return done


def time_ops_blocking(
    offsets: Sequence[int],
    partner: Sequence[int],
    rank_of: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    copied: Sequence[int],
    awaited: Sequence[int],
    start: MutableSequence[float],
    end: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    host_free: MutableSequence[float],
    stack: MutableSequence[int],
    waiting: MutableSequence[bool],
) -> int:
    """Time every op that can run when sends and receives occupy their ranks and meet. Return how many were timed.

    Both ends of a message start when both ranks have come to them. The rank that comes first waits; the one that comes
    second times both ends and puts the first back on the stack::

        rank 0   F0  SEND ---.          rank 0 came first: waiting
        rank 1       F0  F1  RECV       rank 1 times SEND and RECV

    ========= ===================================================================================================
    partner   other end of a send or receive, -1 for all other ops
    rank_of   rank of the op
    waiting   whether each rank waits at a send or receive
    ========= ===================================================================================================
    """
    copies = len(copied) > 0
    top = len(cursor)
    for rank in range(top):
        stack[rank] = top - 1 - rank
        cursor[rank] = offsets[rank]
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        waiting[rank] = False
        op = cursor[rank]
        stop = offsets[rank + 1]
        clock = free[rank]
        while op < stop:
            # A message starts when both ranks are there.
            other = partner[op]
            if other >= 0:
                peer = rank_of[other]
                if not (waiting[peer] and cursor[peer] == other):
                    waiting[rank] = True
                    break
                begin = max(clock, free[peer])
                clock = begin + duration[op]
                start[op] = start[other] = begin
                end[op] = end[other] = clock
                free[peer] = clock
                cursor[peer] = other + 1
                waiting[peer] = False
                stack[top] = peer
                top += 1
                done += 2
                op += 1
                continue
            # Every other op starts when its rank is free and its activations are back from the host.
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            if copies:
                if copied[op] >= 0:
                    clock = time_copy(op, 2 * rank + copied[op], clock, awaited, duration, start, end, host_free)
                    op = after
                    done += 1
                    continue
                for member in range(op, after):
                    if awaited[member] >= 0 and end[awaited[member]] > clock:
                        clock = end[awaited[member]]
            for member in range(op, after):
                start[member] = clock
                end[member] = clock + duration[op]
            clock += duration[op]
            done += after - op
            op = after
        cursor[rank] = op
        free[rank] = clock
    return done


def time_copy(
    op: int,
    wire: int,
    clock: float,
    awaited: Sequence[int],
    duration: Sequence[float],
    start: MutableSequence[float],
    end: MutableSequence[float],
    host_free: MutableSequence[float],
) -> float:
    """Time a copy that its rank comes to at ``clock``, and return when the rank goes on.

    A copy to the host begins when the op that it waits for has freed its rank and the link is free; the rank goes on when
    it has ended. A copy back begins when the rank comes to it and the link is free; the rank goes on at once::

        rank       F0 | OFFLOAD waits | F1 ...  RELOAD  F2 ... | B0 waits |
        to host         ===========
        from host                                       =================
    """
    begin = clock if wire % 2 == FROM_HOST else end[awaited[op]]
    if host_free[wire] > begin:
        begin = host_free[wire]
    start[op] = begin
    end[op] = begin + duration[op]
    host_free[wire] = end[op]
    if wire % 2 == TO_HOST and end[op] > clock:
        return end[op]
    return clock
