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
duration   time that the op occupies its rank, or the channel beside it
channel    ``TO_HOST`` or ``FROM_HOST`` for a copy between a rank and its host, ``COLLECTIVE`` for a collective of its
           data-parallel group, else -1; empty if nothing runs beside the computation
awaited    ops of the same rank, else -1, in one or two columns after each other. The first one holds the forward that
           is copied to the host, or the reload that the op needs; the second one the collective that it needs
========== ==================================================================================================

Arrays that both write:

========== ==================================================================================================
start, end times of the op; ``end`` begins at -1, "not timed yet"
cursor     next op of each rank
free       time from which each rank is free
beside     time from which each channel of each rank, ``3 * rank + TO_HOST`` for example, is free
stack      ranks that can go on; the last one is taken first
========== ==================================================================================================
"""

from collections.abc import MutableSequence, Sequence

TO_HOST, FROM_HOST, COLLECTIVE = range(3)
"""Channels beside a rank's computation."""

CHANNELS = 3
"""Number of channels of a rank."""


def time_ops(
    offsets: Sequence[int],
    source: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    delay: Sequence[float],
    link: Sequence[int],
    channel: Sequence[int],
    awaited: Sequence[int],
    start: MutableSequence[float],
    end: MutableSequence[float],
    arrival: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    link_free: MutableSequence[float],
    beside: MutableSequence[float],
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
    channels = len(channel) > 0
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
            if channels:
                if channel[op] >= 0:
                    clock = time_beside(op, 3 * rank + channel[op], clock, awaited, duration, start, end, beside)
                    op = after
                    done += 1
                    continue
                # ... its activations are back from the host, and its parameters gathered ...
                for member in range(op, after):
                    for place in range(member, len(awaited), len(end)):
                        if awaited[place] >= 0 and end[awaited[place]] > begin:
                            begin = end[awaited[place]]
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
    channel: Sequence[int],
    awaited: Sequence[int],
    start: MutableSequence[float],
    end: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    beside: MutableSequence[float],
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
    channels = len(channel) > 0
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
            # Every other op starts when its rank is free, its activations are back, and its parameters gathered.
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            if channels:
                if channel[op] >= 0:
                    clock = time_beside(op, 3 * rank + channel[op], clock, awaited, duration, start, end, beside)
                    op = after
                    done += 1
                    continue
                for member in range(op, after):
                    for place in range(member, len(awaited), len(end)):
                        if awaited[place] >= 0 and end[awaited[place]] > clock:
                            clock = end[awaited[place]]
            for member in range(op, after):
                start[member] = clock
                end[member] = clock + duration[op]
            clock += duration[op]
            done += after - op
            op = after
        cursor[rank] = op
        free[rank] = clock
    return done


def time_beside(
    op: int,
    wire: int,
    clock: float,
    awaited: Sequence[int],
    duration: Sequence[float],
    start: MutableSequence[float],
    end: MutableSequence[float],
    beside: MutableSequence[float],
) -> float:
    """Time a copy or collective that its rank comes to at ``clock``, and return when the rank goes on.

    A copy to the host begins when the op that it waits for has freed its rank and the link is free; the rank goes on when
    it has ended. Any other begins when the rank comes to it and its channel is free; the rank goes on at once::

        rank         UNSHARD  F0 | OFFLOAD waits | F1 ...  RELOAD  F2 ... | B0 waits |  REDUCE_GRAD  F3 ...
        to host                    ===========
        from host                                          =================
        collectives  ========                                                           ===========
    """
    outward = wire % 3 == TO_HOST
    begin = end[awaited[op]] if outward else clock
    if beside[wire] > begin:
        begin = beside[wire]
    start[op] = begin
    end[op] = begin + duration[op]
    beside[wire] = end[op]
    if outward and end[op] > clock:
        return end[op]
    return clock
