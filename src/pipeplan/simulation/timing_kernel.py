"""The simulator's hot loops: start and end of every op.

Ops are numbered rank after rank, each rank's in the order of its row. Both loops keep a stack of ranks that can go on.
A rank is taken off the stack and runs its row until an op needs another rank that has not come far enough. Every op is
timed once, so the time is linear in the ops, whatever their order::

    rank 0   F0  F1  B0 ...          1. rank 0 runs F0 and F1, and needs B0 of rank 1: it waits in B0's line
    rank 1   F0  B0  F1 ...          2. rank 1 runs F0 and B0, which puts rank 0 back on the stack

Arrays: ``rows`` has what ops take, ``transfers`` what they wait for; ``times`` and ``arrivals`` are written. The module
``streams_kernel`` shares ``rows``, ``times``, and what copies and collectives do beside the computation. Annotations have
the shapes: ``ranks`` and ``ops`` are their numbers.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.foundation.kernels import inlined
from pipeplan.model import Bools, Floats, Ints, Ints32

TO_HOST, FROM_HOST, COLLECTIVE = range(3)
"""Channels beside a rank's computation."""

CHANNELS = 3
"""Number of channels of a rank."""


class ScheduleRows(NamedTuple):
    """Rows of a schedule.

    ========== ==================================================================================================
    offsets    first op of each rank, and the number of ops after the last
    joined     true for the second op of an overlapped pair, which starts and ends with the first
    duration   time that the op occupies its rank, or the channel beside it
    channel    ``TO_HOST`` or ``FROM_HOST`` for a copy between a rank and its host, ``COLLECTIVE`` for a collective of its
               data-parallel group, else -1; empty if nothing runs beside the computation
    awaited    ops of the same rank, else -1, in one or two columns after each other. The first one holds the forward that
               is copied to the host, or the reload that the op needs; the second one the collective that it needs
    ========== ==================================================================================================
    """

    offsets: Annotated[Ints, "ranks + 1"]
    joined: Annotated[Bools, "ops"]
    duration: Annotated[Floats, "ops"]
    channel: Annotated[Ints32, "ops or 0"]
    awaited: Annotated[Ints32, "channel or 2 * channel"]


class RowTimes(NamedTuple):
    """Times of the ops, and the state of each rank meanwhile.

    ========== ==================================================================================================
    start, end times of the op; ``end`` begins at -1, "not timed yet"
    cursor     next op of each rank
    free       time from which each rank is free
    beside     time from which each channel of each rank, ``3 * rank + TO_HOST`` for example, is free
    stack      ranks that can go on; the last one is taken first
    ========== ==================================================================================================
    """

    start: Annotated[Floats, "ops"]
    end: Annotated[Floats, "ops"]
    cursor: Annotated[Ints, "ranks"]
    free: Annotated[Floats, "ranks"]
    beside: Annotated[Floats, "CHANNELS * ranks"]
    stack: Annotated[Ints, "2 * ranks"]


class Transfers(NamedTuple):
    """Results that cross ranks.

    ========== ==================================================================================================
    source     op of another rank that the op needs, else -1
    delay      time of the transfer of each op's result; one number if all take as long
    link       link that the op's result takes to another rank, else -1; empty if links are not contended
    ========== ==================================================================================================
    """

    source: Annotated[Ints32, "ops"]
    delay: Annotated[Floats, "ops or 1"]
    link: Annotated[Ints32, "ops or 0"]


class Arrivals(NamedTuple):
    """Arrivals of results, and the ranks that wait for them.

    ============ ================================================================================================
    arrival      when the op's result reaches the other rank, -1 at first; empty if links are not contended
    link_free    time from which each link is free
    waiter       first rank that waits for the op, else -1
    next_waiter  for each rank, the next one that waits for the same op, else -1
    ============ ================================================================================================
    """

    arrival: Annotated[Floats, "link"]
    link_free: Annotated[Floats, "link"]
    waiter: Annotated[Ints, "ops"]
    next_waiter: Annotated[Ints, "ranks"]


def time_ops(rows: ScheduleRows, transfers: Transfers, times: RowTimes, arrivals: Arrivals) -> int:
    """Time every op that can run when transfers do not occupy ranks. Return how many were timed.

    A result reaches the other rank its ``delay`` after its op's end. A transfer over a contended link also waits until the
    link is free.
    """
    joined, duration, channel = rows.joined, rows.duration, rows.channel
    source, delay, link = transfers.source, transfers.delay, transfers.link
    start, end, stack = times.start, times.end, times.stack
    arrival, link_free = arrivals.arrival, arrivals.link_free
    waiter, next_waiter = arrivals.waiter, arrivals.next_waiter
    contended = len(link) > 0
    channels = len(channel) > 0
    alike = len(delay) == 1
    common = delay[0] if len(delay) > 0 else 0.0
    top = stack_all(rows, times)
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        op = times.cursor[rank]
        stop = rows.offsets[rank + 1]
        clock = times.free[rank]
        while op < stop:
            # The pair or the single op from op to after starts when the rank is free ...
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            begin = clock
            if channels:
                if channel[op] >= 0:
                    clock = time_beside(rows, op, rank, clock, times)
                    op = after
                    done += 1
                    continue
                # ... its activations are back from the host, and its parameters gathered ...
                begin = ready_beside(rows, op, after, begin, end)
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
            # It runs; over a contended link its result leaves when the link is free.
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
        times.cursor[rank] = op
        times.free[rank] = clock
    return done


def time_ops_blocking(
    rows: ScheduleRows,
    partner: Annotated[Ints32, "ops"],
    rank_of: Annotated[Ints32, "ops"],
    times: RowTimes,
    waiting: Annotated[Ints, "ranks"],
) -> int:
    """Time every op that can run when sends and receives occupy their ranks and meet. Return how many were timed.

    Both ends of a message start when both ranks have come to them. The rank that comes first waits; the one that comes
    second times both ends and puts the first back on the stack::

        rank 0   F0  SEND ---.          rank 0 came first: waiting
        rank 1       F0  F1  RECV       rank 1 times SEND and RECV

    ========= ===================================================================================================
    partner   other end of a send or receive, -1 for all other ops
    rank_of   rank of the op
    waiting   1 for each rank that waits at a send or receive
    ========= ===================================================================================================
    """
    joined, duration, channel = rows.joined, rows.duration, rows.channel
    start, end, stack = times.start, times.end, times.stack
    cursor, free = times.cursor, times.free
    channels = len(channel) > 0
    top = stack_all(rows, times)
    done = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        waiting[rank] = 0
        op = cursor[rank]
        stop = rows.offsets[rank + 1]
        clock = free[rank]
        while op < stop:
            # A message starts when both ranks are there.
            other = partner[op]
            if other >= 0:
                peer = rank_of[other]
                if not (waiting[peer] == 1 and cursor[peer] == other):
                    waiting[rank] = 1
                    break
                begin = max(clock, free[peer])
                clock = begin + duration[op]
                start[op] = start[other] = begin
                end[op] = end[other] = clock
                free[peer] = clock
                cursor[peer] = other + 1
                waiting[peer] = 0
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
                    clock = time_beside(rows, op, rank, clock, times)
                    op = after
                    done += 1
                    continue
                clock = ready_beside(rows, op, after, clock, end)
            for member in range(op, after):
                start[member] = clock
                end[member] = clock + duration[op]
            clock += duration[op]
            done += after - op
            op = after
        times.cursor[rank] = op
        times.free[rank] = clock
    return done


def stack_all(rows: ScheduleRows, times: RowTimes) -> int:
    """Put every rank on the stack at the beginning of its row, rank 0 on top; return their number."""
    ranks = len(times.cursor)
    for rank in range(ranks):
        times.stack[rank] = ranks - 1 - rank
        times.cursor[rank] = rows.offsets[rank]
    return ranks


@inlined
def ready_beside(rows: ScheduleRows, op: int, after: int, begin: float, end: Floats) -> float:
    """Return when a pair or single op can start: from ``begin`` on, once the copies and collectives it needs have ended."""
    for member in range(op, after):
        for place in range(member, len(rows.awaited), len(end)):
            if rows.awaited[place] >= 0 and end[rows.awaited[place]] > begin:
                begin = end[rows.awaited[place]]
    return begin


def time_beside(rows: ScheduleRows, op: int, rank: int, clock: float, times: RowTimes) -> float:
    """Time a copy or collective that its rank comes to at ``clock``, and return when the rank goes on.

    A copy to the host begins when the op that it waits for has freed its rank and the link is free; the rank goes on when
    it has ended. Any other begins when the rank comes to it and its channel is free; the rank goes on at once::

        rank         UNSHARD  F0 | OFFLOAD waits | F1 ...  RELOAD  F2 ... | B0 waits |  REDUCE_GRAD  F3 ...
        to host                    ===========
        from host                                          =================
        collectives  ========                                                           ===========
    """
    channel = rows.channel[op]
    wire = CHANNELS * rank + channel
    begin = times.end[rows.awaited[op]] if channel == TO_HOST else clock
    begin = max(begin, times.beside[wire])
    times.start[op] = begin
    times.end[op] = begin + rows.duration[op]
    times.beside[wire] = times.end[op]
    # The rank waits for a copy to the host, whose memory it then has.
    return max(clock, times.end[op]) if channel == TO_HOST else clock
