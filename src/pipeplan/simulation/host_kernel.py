"""The hot loops of the simulator for schedules that copy activations to the host and back."""

from collections.abc import MutableSequence, Sequence

TO_HOST, FROM_HOST = 0, 1
"""The two directions; ``host_free[2 * rank + direction]`` is when a rank's link is free."""


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

    A copy to the host begins when the op that it waits for has freed its rank and the link is free, and the rank goes on
    when it has ended. A copy back begins when the rank comes to it and the link is free, and the rank goes on at once.
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


def time_ops_and_copies(
    offsets: Sequence[int],
    source: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    delay: float,
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
    """Time every op that can run, and return how many could: ``time_ops`` with copies between ranks and their hosts.

    ``copied`` says which ops are copies, and in which direction (else -1). ``awaited`` is the op of its own rank that a copy
    to the host copies, or the reload that an op needs back (else -1).
    """
    contended = len(link) > 0
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
            way = copied[op]
            if way >= 0:
                clock = time_copy(op, 2 * rank + way, clock, awaited, duration, start, end, host_free)
                op += 1
                done += 1
                continue
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            begin = clock
            blocker = -1
            for member in range(op, after):
                if awaited[member] >= 0 and end[awaited[member]] > begin:
                    begin = end[awaited[member]]
                needed = source[member]
                if needed >= 0:
                    arrived = arrival[needed] if contended else end[needed]
                    if arrived < 0:
                        blocker = needed
                        break
                    if not contended:
                        arrived += delay
                    if arrived > begin:
                        begin = arrived
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
                        arrival[member] = link_free[wire] = max(link_free[wire], clock) + delay
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


def time_ops_and_copies_blocking(
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
    """Time every op that can run, and return how many could: ``time_ops_blocking`` with copies, as above.

    A copy does not occupy its rank: sends, receives and compute go on beside it.
    """
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
            way = copied[op]
            if way >= 0:
                clock = time_copy(op, 2 * rank + way, clock, awaited, duration, start, end, host_free)
                op += 1
                done += 1
                continue
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
            after = op + 1
            if after < stop and joined[after]:
                after += 1
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
