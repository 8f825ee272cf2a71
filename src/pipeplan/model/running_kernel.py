"""The hot loop of running rows without any notion of time: how far every rank gets, and in which step."""

from collections.abc import MutableSequence, Sequence


def run_rows(
    offsets: Sequence[int],
    source: Sequence[int],
    rank_of: Sequence[int],
    joined: Sequence[bool],
    step: MutableSequence[int],
    reached: MutableSequence[int],
    asleep: MutableSequence[int],
    stack: MutableSequence[int],
) -> int:
    """Advance every rank through its row as far as it can, and return how many ops ran.

    ``source`` is the op of another rank that an op waits for, or -1. ``joined`` marks the second op of an overlapped
    pair, which runs with the first as one. ``step`` becomes the step after which an op is done when each takes one, and
    ``reached[rank]`` the first op that could not run (or the row's end). ``asleep[rank]`` heads the list of ranks waiting
    for that rank to move; a waiting rank's own link is ``asleep[ranks + rank]``.
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
            after = op + 1
            if after < stop and joined[after]:
                after += 1
            blocker = -1
            for member in range(op, after):
                needed = source[member]
                if needed >= 0:
                    if reached[rank_of[needed]] <= needed:
                        blocker = rank_of[needed]
                        break
                    if step[needed] > clock:
                        clock = step[needed]
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
        if op > first:
            sleeper = asleep[rank]
            asleep[rank] = -1
            while sleeper >= 0:
                stack[top] = sleeper
                top += 1
                sleeper = asleep[ranks + sleeper]
    return ran
