"""The loops that say what chains of ops spend their time on: a forest of holders, and sums along its branches.

A node is an op, and what it hangs from is the first op up the chain behind it that takes its rank earlier. Time runs down
from the root, which is behind everything: number ``len(holder)``. A branch from one node up to another is a difference of
sums from the root, and either end is found in steps of the logarithm of the branch's length by *jumps* (Myers 1983,
"An applicative random-access stack"): each node knows one far node above it, chosen so that few jumps lead anywhere.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

from pipeplan.model import Floats, Ints

TRANSFER, COMPUTE, IMBALANCE, OVERHEAD, OFFLOAD, RELOAD = range(6)
SORTS = 6
"""What a node on a branch keeps others waiting for; a row of sums has a column for each."""


class Ops(NamedTuple):
    """What the loops know of the ops, each of shape (ops,).

    When an op takes its rank, starts, ends but for what it takes too long, ends, and frees its rank; ``copy`` is its sort
    where it is a copy to the host or back, which takes no rank, and -1 elsewhere.
    """

    taken: Floats
    start: Floats
    expected: Floats
    end: Floats
    freed: Floats
    copy: Ints
    stage: Ints


class Forest(NamedTuple):
    """The forest: arrays of shape (ops + 1,), and ``sums`` of shape (ops + 1, sorts); the root stands behind the last op.

    ``above`` and ``jump`` are nodes, ``sums`` is the time from the root down to where a node takes its rank, and ``lowest``
    and ``highest`` are the nodes of the least and the greatest stage among those above a node, up to where it jumps.
    """

    since: Floats
    above: Ints
    jump: Ints
    depth: Ints
    lowest: Ints
    highest: Ints
    sums: Floats


def _spend(
    ops: Ops, node: int, begin: float, clock: float, rounding: float, into: MutableSequence[float] | Floats, row: int
) -> float:
    """Add what the time up to ``clock`` was spent on, back to where the node takes its rank; not before ``begin``."""
    copy = ops.copy[node]
    floor: float = max(begin, ops.start[node] if copy >= 0 else ops.taken[node])
    last = -1
    for step in range(2 if copy >= 0 else 5):
        if step == 0:
            earliest = ops.end[node] if copy >= 0 else ops.freed[node]
            spent = TRANSFER
        elif step == 1:
            earliest = ops.start[node] if copy >= 0 else ops.end[node]
            spent = copy if copy >= 0 else OVERHEAD
        elif step == 2:
            earliest, spent = ops.expected[node], IMBALANCE
        elif step == 3:
            earliest, spent = ops.start[node], COMPUTE
        else:
            earliest, spent = ops.taken[node], OVERHEAD
        if earliest - begin <= rounding:
            earliest = begin
        if clock - earliest > rounding:
            into[row + spent] += clock - earliest
            clock, last = earliest, spent
    if last >= 0 and clock > floor:  # What is too short to be a piece belongs to the one before.
        into[row + last] += clock - floor
    return floor


def _first_before(forest: Forest, node: int, moment: float) -> int:
    """The first node at or above this one that takes its rank before this moment."""
    while forest.since[node] >= moment:
        node = forest.jump[node] if forest.since[forest.jump[node]] >= moment else forest.above[node]
    return node


def _farther_down(stage: Sequence[int] | Ints, root: int, node: int, other: int) -> int:
    """Of a node and another that stands nearer to the root, the one of the lower stage; of equals the latter."""
    if node == root or (other != root and stage[other] <= stage[node]):
        return other
    return node


def _farther_up(stage: Sequence[int] | Ints, root: int, node: int, other: int) -> int:
    """The same for the higher stage."""
    if node == root or (other != root and stage[other] >= stage[node]):
        return other
    return node


def grow(holder: Sequence[int], ops: Ops, rounding: float, forest: Forest, pending: MutableSequence[int]) -> None:
    """Hang every op from what held it, the root for none; ``pending`` is scratch of shape (ops,).

    ``since`` is filled, and minus infinity for the root; ``depth`` is -1, and 0 for the root; the other nodes are the root.
    """
    root = len(holder)
    for op in range(root):
        top = 0
        at = op
        while forest.depth[at] < 0:
            pending[top] = at
            top += 1
            at = holder[at]
        while top > 0:
            top -= 1
            at = pending[top]
            above = _first_before(forest, holder[at], forest.since[at] - rounding)
            far = forest.jump[above]
            forest.above[at], forest.depth[at] = above, forest.depth[above] + 1
            for sort in range(SORTS):
                forest.sums[SORTS * at + sort] = forest.sums[SORTS * above + sort]
            if above == root:
                continue
            _spend(ops, above, forest.since[above], forest.since[at], rounding, forest.sums, SORTS * at)
            if forest.depth[above] - forest.depth[far] == forest.depth[far] - forest.depth[forest.jump[far]]:
                low = _farther_down(ops.stage, root, above, forest.lowest[above])
                high = _farther_up(ops.stage, root, above, forest.highest[above])
                forest.lowest[at] = _farther_down(ops.stage, root, low, forest.lowest[far])
                forest.highest[at] = _farther_up(ops.stage, root, high, forest.highest[far])
                forest.jump[at] = forest.jump[far]
            else:
                forest.jump[at] = forest.lowest[at] = forest.highest[at] = above


def branches(
    begin: Sequence[float],
    stop: Sequence[float],
    op: Sequence[int],
    ops: Ops,
    rounding: float,
    forest: Forest,
    first: MutableSequence[int],
    last: MutableSequence[int],
    start_up: MutableSequence[float],
    spent: MutableSequence[float],
) -> None:
    """What the chain behind each ``op`` spent the time from ``begin`` to ``stop`` on, which is not after it is possible.

    ``first`` and ``last`` are the nodes of the branch, the latest and the earliest, the root where there is none;
    ``start_up`` is the time before anything had started, ``spent`` the rest by sort.
    """
    root = len(ops.start)
    for wait in range(len(op)):
        since, clock, row = begin[wait], stop[wait], SORTS * wait
        first[wait] = last[wait] = root
        if clock - since <= rounding:
            continue
        node = _first_before(forest, forest.above[op[wait]], clock - rounding)
        if node == root:
            start_up[wait] = clock - since
            continue
        first[wait] = node
        clock = _spend(ops, node, since, clock, rounding, spent, row)
        if forest.since[node] - since > rounding:
            # Down to the last node that takes its rank within the time, all of it counts.
            near = node
            while forest.since[forest.above[node]] - since > rounding:
                far = forest.jump[node]
                node = far if forest.since[far] - since > rounding else forest.above[node]
            for sort in range(SORTS):
                spent[row + sort] += forest.sums[SORTS * near + sort] - forest.sums[SORTS * node + sort]
            above = forest.above[node]
            if above == root:
                start_up[wait] = forest.since[node] - since
            else:
                _spend(ops, above, since, forest.since[node], rounding, spent, row)
                node = above
        last[wait] = node


def farthest(
    first: Sequence[int],
    last: Sequence[int],
    stage: Sequence[int],
    ops: Ops,
    forest: Forest,
    found: MutableSequence[int],
) -> None:
    """The node of each branch whose stage is farthest from ``stage``, the earliest of several; the root of none."""
    root = len(ops.start)
    for branch in range(len(first)):
        node = low = high = first[branch]
        while node != root and forest.depth[node] > forest.depth[last[branch]]:
            far = forest.jump[node]
            if forest.depth[far] >= forest.depth[last[branch]] and far != root:
                low = _farther_down(ops.stage, root, low, forest.lowest[node])
                high = _farther_up(ops.stage, root, high, forest.highest[node])
                node = far
            else:
                node = forest.above[node]
                low = _farther_down(ops.stage, root, low, node)
                high = _farther_up(ops.stage, root, high, node)
        found[branch] = low
        if low != root:
            below, over = abs(ops.stage[low] - stage[branch]), abs(ops.stage[high] - stage[branch])
            if over > below or (over == below and forest.depth[high] < forest.depth[low]):
                found[branch] = high
