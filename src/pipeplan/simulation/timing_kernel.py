"""The hot loop of the simulator: start and end of every op when compute is never blocked by communication."""

from collections.abc import MutableSequence, Sequence


def time_ops(
    offsets: Sequence[int],
    source: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    delay: float,
    link: Sequence[int],
    start: MutableSequence[float],
    end: MutableSequence[float],
    arrival: MutableSequence[float],
    cursor: MutableSequence[int],
    free: MutableSequence[float],
    link_free: MutableSequence[float],
    waiter: MutableSequence[int],
    next_waiter: MutableSequence[int],
    stack: MutableSequence[int],
) -> int:
    """Time every op that can run, and return how many could.

    Ranks run their rows in order. A rank goes on until it needs the result of an op of another rank that has not run;
    then it lines up behind that op (``waiter`` heads the line, ``next_waiter`` links it) and is pushed back on the stack
    when the op has run. Every op is visited once, so the time is linear in the ops whatever their order.

    ``source`` is the op of another rank to wait for, or -1; ``joined`` marks the second op of an overlapped pair, which
    starts and ends with the first. A result reaches the other rank ``delay`` after its op's ``end`` (-1: not yet).

    Where links carry one transfer at a time, ``link`` numbers the one that an op's result takes (-1: none), and ``arrival``
    (-1: not yet) is when it reaches the other rank: ``delay`` after the op's end, and not before the link is free. Elsewhere
    both are empty.
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
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            begin = clock
            blocker = -1
            for member in range(op, after):
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
