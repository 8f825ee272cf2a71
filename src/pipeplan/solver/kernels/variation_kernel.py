"""Timing one schedule in several runs at once, in which its ops take different times.

Arrays: ``source``, ``joined``, ``duration`` and ``delay`` are by op; ``factor`` and ``end`` by op and run, ``first`` and
``clock`` by rank and run, the runs side by side; ``stack`` holds the ranks that can go on. One step, of an op with three
runs::

    clock    4.0  4.1  3.9      when the rank is free in each run
    arrived  3.5  4.3  4.0      end of the source, and the delay
    end      6.0  6.5  5.9      the later of both, and the duration times the factor of the run
"""

from collections.abc import MutableSequence, Sequence


def time_runs(
    offsets: Sequence[int],
    source: Sequence[int],
    joined: Sequence[bool],
    duration: Sequence[float],
    factor: Sequence[float],
    delay: Sequence[float],
    runs: int,
    end: MutableSequence[float],
    first: MutableSequence[float],
    clock: MutableSequence[float],
    ready: MutableSequence[int],
    cursor: MutableSequence[int],
    waiter: MutableSequence[int],
    next_waiter: MutableSequence[int],
    stack: MutableSequence[int],
) -> int:
    """Time every op that can run in all of the runs, and return how many could.

    Ranks run their rows in order, each until it needs the result of an op that has not run: then it queues for that
    op (``waiter`` heads the line, ``next_waiter`` links it). Whether an op can run does not depend on times, and so is the
    same in all runs. ``source``, ``joined``, ``duration`` and ``delay`` are by op, as in the simulator's kernel; what is by
    op and run, as ``factor`` and ``end``, or by rank and run, as ``first`` and ``clock``, has the runs side by side.
    """
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
        while op < stop:
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            # Whether the op, and the one joined to it, can run is the same in all runs.
            blocker = -1
            for member in range(op, after):
                if source[member] >= 0 and ready[source[member]] == 0:
                    blocker = source[member]
                    break
            if blocker >= 0:
                next_waiter[rank] = waiter[blocker]
                waiter[blocker] = rank
                break
            # All runs of the op, one after the other in memory.
            for run in range(runs):
                begin = clock[rank * runs + run]
                for member in range(op, after):
                    if source[member] >= 0:
                        arrived = end[source[member] * runs + run] + delay[source[member]]
                        begin = max(begin, arrived)
                if op == offsets[rank]:
                    first[rank * runs + run] = begin
                clock[rank * runs + run] = begin + duration[op] * factor[op * runs + run]
                for member in range(op, after):
                    end[member * runs + run] = clock[rank * runs + run]
            # Ranks that have queued for it can go on.
            for member in range(op, after):
                ready[member] = 1
                woken = waiter[member]
                while woken >= 0:
                    stack[top] = woken
                    top += 1
                    woken = next_waiter[woken]
            done += after - op
            op = after
        cursor[rank] = op
    return done
