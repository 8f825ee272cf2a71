"""Loops that attribute waiting time to the chain of ops that causes it: a forest of ops, and sums along its branches.

An op's *holder* is the op that it had to wait for last. Following holders yields the chain of ops that causes a wait; the
chains of all ops form a forest::

    rank 0   F0 F1 .. .. .. B0           rank 0 waits for its B0, whose chain of holders is
    rank 1      F0 B0 B0 F1              B0 of rank 1, F0 of rank 1, F0 of rank 0, root

A wait from ``begin`` to ``stop`` before an op was spent on the part of the op's branch that lies between the two times. That
is a difference of sums from the root, so no branch is walked op by op. The ends of the part are found in a logarithmic
number of steps by *jumps*: each node knows its parent and one far ancestor, chosen so that few jumps lead to any ancestor
(Myers, "An applicative random-access stack", Information Processing Letters 17, 1983).

Every op occupies five intervals of its branch, of which each belongs to one *sort*::

    taken     start              expected    end        freed        the next op on the branch starts
      | OVERHEAD |    COMPUTE        | IMBALANCE | OVERHEAD |  TRANSFER  |

A copy between a rank and its host has two: the copy itself (``OFFLOAD`` or ``RELOAD``), then ``TRANSFER``.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

from pipeplan.model import Floats, Ints

TRANSFER, COMPUTE, IMBALANCE, OVERHEAD, OFFLOAD, RELOAD = range(6)
SORTS = 6
"""Sorts of time that an op keeps others waiting for; a row of sums has a column for each."""


class Ops(NamedTuple):
    """Times and kinds of the ops; arrays of shape (ops,).

    ======== ====================================================================================================
    taken    time at which the op occupies its rank; earlier than ``start`` by its overhead
    start    start of its computation
    expected end of its computation if it took the mean of its kind over the stages; at most ``end``
    end      end of its computation
    freed    time at which it frees its rank
    copy     ``OFFLOAD`` or ``RELOAD`` for a copy, which occupies no rank; -1 for all other ops
    stage    stage of the model
    ======== ====================================================================================================
    """

    taken: Floats
    start: Floats
    expected: Floats
    end: Floats
    freed: Floats
    copy: Ints
    stage: Ints


class Forest(NamedTuple):
    """The forest. Node ``ops`` is the root; arrays of shape (ops + 1,) unless noted.

    ======== ====================================================================================================
    since    time at which the node occupies its rank, or starts if it is a copy; minus infinity for the root
    above    parent: the first op on the chain of holders that occupies its rank earlier than the node
    jump     far ancestor of the node
    depth    number of nodes between the node and the root
    lowest   node of the lowest stage between the node and its jump
    highest  node of the highest stage between the node and its jump
    sums     time from the root to ``since`` by sort, shape (ops + 1, sorts), flattened
    ======== ====================================================================================================
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
    """Add the node's intervals between ``begin`` and ``clock`` to ``into``, from the last to the first.

    Return where they begin. ``row`` is the first column of the sums in ``into``.
    """
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
        # An interval that would leave no more than rounding before it takes that, too.
        if earliest - begin <= rounding:
            earliest = begin
        if clock - earliest > rounding:
            into[row + spent] += clock - earliest
            clock, last = earliest, spent
    # What is left is too short to be an interval, and belongs to the last one.
    if last >= 0 and clock > floor:
        into[row + last] += clock - floor
    return floor


def _first_before(forest: Forest, node: int, moment: float) -> int:
    """Return the first node at or above this one that occupies its rank before ``moment``, by jumps."""
    while forest.since[node] >= moment:
        node = forest.jump[node] if forest.since[forest.jump[node]] >= moment else forest.above[node]
    return node


def _farther_down(stage: Sequence[int] | Ints, root: int, node: int, other: int) -> int:
    """Return the node of the lower stage; of equal ones ``other``, which is nearer to the root."""
    if node == root or (other != root and stage[other] <= stage[node]):
        return other
    return node


def _farther_up(stage: Sequence[int] | Ints, root: int, node: int, other: int) -> int:
    """Return the node of the higher stage; of equal ones ``other``, which is nearer to the root."""
    if node == root or (other != root and stage[other] >= stage[node]):
        return other
    return node


def grow(holder: Sequence[int], ops: Ops, rounding: float, forest: Forest, pending: MutableSequence[int]) -> None:
    """Build the forest from the holder of each op, which is the root for none.

    ``since`` is given. ``depth`` is -1 except for the root, and every other array of the forest names the root. ``pending``
    is scratch of shape (ops,).
    """
    root = len(holder)
    for op in range(root):
        # Collect the ops of the chain that are not in the forest yet, then add them from the root on.
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
            # The time until this node is its parent's, on top of the parent's sums.
            _spend(ops, above, forest.since[above], forest.since[at], rounding, forest.sums, SORTS * at)
            # Myers's rule: where the parent's jump and the jump from there are equally long, jump over both, else to the
            # parent.
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
    """Attribute the time from ``begin`` to ``stop`` before each ``op`` to the chain that leads to it.

    ``stop`` is not later than the op could have started. All arrays have one entry per wait, ``spent`` one per wait and
    sort::

        root ---- last ---- ... ---- near ---- first ---- op
             |  begin   |     sums     |   begin of first   | stop
          start_up    part of last                part of first

    ======== ====================================================================================================
    first    latest node of the branch within the time; the root for none
    last     earliest node of the branch within the time
    start_up time before anything on the chain had started
    spent    the rest by sort, flattened
    ======== ====================================================================================================
    """
    root = len(ops.start)
    for wait in range(len(op)):
        since, clock, row = begin[wait], stop[wait], SORTS * wait
        first[wait] = last[wait] = root
        if clock - since <= rounding:
            continue
        # The latest node takes the end of the time, from its own beginning on ...
        node = _first_before(forest, forest.above[op[wait]], clock - rounding)
        if node == root:
            start_up[wait] = clock - since
            continue
        first[wait] = node
        clock = _spend(ops, node, since, clock, rounding, spent, row)
        if forest.since[node] - since > rounding:
            # ... all nodes that begin within the time count whole, as a difference of sums ...
            near = node
            while forest.since[forest.above[node]] - since > rounding:
                far = forest.jump[node]
                node = far if forest.since[far] - since > rounding else forest.above[node]
            for sort in range(SORTS):
                spent[row + sort] += forest.sums[SORTS * near + sort] - forest.sums[SORTS * node + sort]
            # ... and the next one, or the start-up, takes the rest.
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
    farthest_node: MutableSequence[int],
) -> None:
    """Find the node of each branch from ``first`` up to ``last`` whose stage is farthest from ``stage``.

    Of several it is the earliest. ``farthest_node`` gets one node per branch, the root for an empty one.
    """
    root = len(ops.start)
    for branch in range(len(first)):
        # The lowest and the highest stage on the branch: by jumps as long as they stay on it, then by single steps.
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
        # One of the two is the farthest from any stage.
        farthest_node[branch] = low
        if low != root:
            below, over = abs(ops.stage[low] - stage[branch]), abs(ops.stage[high] - stage[branch])
            if over > below or (over == below and forest.depth[high] < forest.depth[low]):
                farthest_node[branch] = high
