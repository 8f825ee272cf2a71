"""Kernel that runs rows without times: how far every rank gets, and in which step each op runs."""

from __future__ import annotations

from typing import Annotated

from pipeplan.model.values import Bools, Ints, Ints32


def run_rows(
    offsets: Annotated[Ints, "ranks + 1"],
    source: Annotated[Ints32, "ops"],
    rank_of: Annotated[Ints32, "ops"],
    joined: Annotated[Bools, "ops"],
    step: Annotated[Ints32, "ops"],
    reached: Annotated[Ints, "ranks"],
    asleep: Annotated[Ints, "2 * ranks"],
    stack: Annotated[Ints, "ranks + 1"],
) -> int:
    """Advance every rank through its row as far as possible, and return the number of ops that ran.

    Legend::

        offsets    rank r's ops are offsets[r] to offsets[r + 1] - 1
        source     op of another rank that an op waits for, or -1
        rank_of    rank of each op
        joined     second op of an overlapped pair, which runs with the first as one
        step       out: step in which an op runs if each takes one; 0 if it never runs
        reached    out: first op of a rank that could not run, or the end of its row
        asleep     asleep[r] heads the linked list of ranks that wait for rank r; asleep[ranks + r] is r's own link
        stack      ranks to advance

    A step: rank 1 is popped, runs its op 5 and stops at op 6, whose source is op 2 of rank 0::

        rank 0   0  1 |2                  2 has not run: rank 1 joins the list asleep[0]
        rank 1   4  5 |6                  rank 1 moved: all ranks in the list asleep[1] go back on the stack

    Each rank is pushed only after the rank it waits for has moved, so the time is linear in the ops.
    """
    ranks = len(offsets) - 1
    top = ranks
    for rank in range(ranks):
        stack[rank] = rank
        reached[rank] = offsets[rank]
        asleep[rank] = -1
    ran = 0
    while top > 0:
        top -= 1
        rank = stack[top]
        first = reached[rank]
        op = first
        stop = offsets[rank + 1]
        clock = step[op - 1] if op > offsets[rank] else 0
        while op < stop:
            # op to after - 1 run as one: a single op or an overlapped pair.
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            # Look for a source that has not run; otherwise the latest source determines the step.
            blocker = -1
            for member in range(op, after):
                needed = source[member]
                if needed >= 0:
                    if reached[rank_of[needed]] <= needed:
                        blocker = rank_of[needed]
                        break
                    if step[needed] > clock:
                        clock = step[needed]
            # Sleep in the blocker's list until it moves.
            if blocker >= 0:
                asleep[ranks + rank] = asleep[blocker]
                asleep[blocker] = rank
                break
            clock += 1
            for member in range(op, after):
                step[member] = clock
            op = after
        ran += op - first
        reached[rank] = op
        # The rank has moved: wake the ranks that wait for it.
        if op > first:
            sleeper = asleep[rank]
            asleep[rank] = -1
            while sleeper >= 0:
                stack[top] = sleeper
                top += 1
                sleeper = asleep[ranks + sleeper]
    return ran
