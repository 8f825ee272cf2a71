"""The hot loop of the simulator where sends and receives occupy their ranks and meet."""

from collections.abc import MutableSequence, Sequence


def time_ops_blocking(
    offsets: Sequence[int],
    partner: Sequence[int],
    rank_of: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    start: MutableSequence[float],
    end: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    stack: MutableSequence[int],
    waiting: MutableSequence[bool],
) -> int:
    """Time every op that can run, and return how many could.

    ``partner`` is the other end of a send or receive, or -1 for an op that needs no other rank. Both ends start when both
    ranks have come to them and take ``duration``. A rank that comes first waits; the one that comes second does both and
    pushes the first back on the stack.
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
                start[member] = clock
                end[member] = clock + duration[op]
            clock += duration[op]
            done += after - op
            op = after
        cursor[rank] = op
        free[rank] = clock
    return done
