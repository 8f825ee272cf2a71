"""The hot loop of the layout search: when a schedule ends whose ops take other times, and the chain that made it so."""

from collections.abc import MutableSequence, Sequence


def longest_path(
    before: Sequence[int],
    source: Sequence[int],
    second: Sequence[int],
    duration: Sequence[float],
    delay: float,
    end: MutableSequence[float],
    cause: MutableSequence[int],
    on_path: MutableSequence[int],
) -> int:
    """Time ops that stand in an order in which each comes behind all that it waits for; the last op of the longest chain.

    ``before`` is the op before it on its rank, ``source`` and ``second`` are what it waits for on other ranks (-1: nothing),
    whose message takes ``delay``. ``cause`` is set to the one that it started behind. ``on_path`` is above 0 for the chain's
    ops: 1, and 2 or 3 where the op was held up by a message from ``source`` or ``second``.
    """
    last = 0
    for op in range(len(duration)):
        begin = 0.0
        held = -1
        how = 1
        other = before[op]
        if other >= 0:
            begin = end[other]
            held = other
        other = source[op]
        if other >= 0 and end[other] + delay > begin:
            begin = end[other] + delay
            held = other
            how = 2
        other = second[op]
        if other >= 0 and end[other] + delay > begin:
            begin = end[other] + delay
            held = other
            how = 3
        end[op] = begin + duration[op]
        cause[op] = held
        on_path[op] = -how
        if end[op] > end[last]:
            last = op
    op = last
    while op >= 0:
        on_path[op] = -on_path[op]
        op = cause[op]
    return last
