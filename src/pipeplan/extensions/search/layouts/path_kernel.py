"""Kernel of the layout search: the longest path through a schedule's ops, and the chain of ops on it.

Arrays, by op in topological order, -1 for none:

| array | content |
| --- | --- |
| ``before`` | op before it on its rank |
| ``source``, ``second`` | ops on other ranks that it (and its overlapped partner) waits for, ``delay`` later |
| ``duration`` | seconds of the op |
| ``end`` | output: end of the op |
| ``cause`` | output: op that it started directly after |
| ``on_path`` | output: > 0 on the longest path: 1 after ``before``, 2 after ``source``, 3 after ``second`` |

One step, for an op whose message arrives last::

    before   ######|                    end[before] = 6
    source   ########|--delay-->        end[source] + delay = 10
    op                         |####    starts at 10: cause = source, on_path = -2 until the path is traced back
"""

from __future__ import annotations

from typing import Annotated

from pipeplan.model import Floats, Ints


def longest_path(
    before: Annotated[Ints, "ops > 0"],
    source: Annotated[Ints, "ops"],
    second: Annotated[Ints, "ops"],
    duration: Annotated[Floats, "ops"],
    delay: float,
    end: Annotated[Floats, "ops"],
    cause: Annotated[Ints, "ops"],
    on_path: Annotated[Ints, "ops"],
) -> int:
    """Compute the end of every op and mark the longest path; return its last op."""
    last = 0
    # Forward pass: start each op after the latest of its predecessors, and remember which one that is.
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
    # Backward pass: the chain of causes from the last op is the longest path; its marks become positive.
    op = last
    while op >= 0:
        on_path[op] = -on_path[op]
        op = cause[op]
    return last
