"""Time along the chains that cause waits, by sort, without walking them; see :mod:`~pipeplan.simulation.idle_kernel`."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import Floats, Ints, Kind, Schedule
from pipeplan.simulation.chain import Chains
from pipeplan.simulation.idle_kernel import OFFLOAD, RELOAD, SORTS, Forest, Ops, branches, farthest, grow

_GROW, _BRANCHES, _FARTHEST = Kernel(grow), Kernel(branches), Kernel(farthest)


@dataclass(frozen=True, slots=True, eq=False)
class Spent:
    """Stretches of time divided by what the chain that leads to an op was doing: arrays of shape (stretches,).

    Attributes
    ----------
    nearest, earliest
        Last and first op on the chain within the stretch; -1 for none.
    holders
        Number of ops from one to the other.
    start_up
        Time before anything on the chain had started.
    by_sort
        Remaining time by the sorts of :mod:`~pipeplan.simulation.idle_kernel`; shape (stretches, sorts).
    """

    nearest: Ints
    earliest: Ints
    holders: Ints
    start_up: Floats
    by_sort: Floats

    def chosen(self, which: Ints) -> Spent:
        """Return the rows of some stretches."""
        return Spent(*(getattr(self, field.name)[which] for field in fields(self)))


class Branches:
    """The chains that lead to all ops of a timeline as a forest, in which part of a chain is a difference of sums.

    Building it takes time linear in the ops; a stretch takes the logarithm of its ops.

    Parameters
    ----------
    chains, schedule
        The timeline's chains, and its schedule.
    excess
        Time of each op beyond the mean of its kind, shape (ops,).
    """

    def __init__(self, chains: Chains, schedule: Schedule, excess: Floats) -> None:
        start, end = np.array(chains.start), np.array(chains.end)
        copy = np.full(len(Kind), -1)
        copy[Kind.OFFLOAD], copy[Kind.RELOAD] = OFFLOAD, RELOAD
        copies: Ints = copy[schedule.columns.kind]
        taken = np.array(chains.taken)
        self._ops = Ops(
            taken, start, end - excess, end, np.array(chains.freed), copies, schedule.columns.stage.astype(np.int64)
        )
        self._rounding = chains.rounding
        self._forest = _forest(np.where(copies >= 0, start, taken))
        root = len(start)
        holder = np.where(chains.holders < 0, root, chains.holders)
        _GROW((holder, self._ops, self._rounding), (self._forest, np.zeros(root, np.int64)), work=root)

    def spent(self, begin: Floats, stop: Floats, op: Ints) -> Spent:
        """Divide the time from ``begin`` to ``stop`` before each ``op``, which could not start earlier."""
        count, root = len(op), len(self._ops.start)
        first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
        start_up, by_sort = np.zeros(count), np.zeros(count * SORTS)
        stretches = (begin, stop, op, self._ops, self._rounding, self._forest)
        _BRANCHES(stretches, (first, last, start_up, by_sort), work=count)
        depth = self._forest.depth
        return Spent(
            nearest=np.where(first == root, -1, first),
            earliest=np.where(last == root, -1, last),
            holders=np.where(first == root, 0, depth[first] - depth[last] + 1),
            start_up=start_up,
            by_sort=by_sort.reshape(count, SORTS),
        )

    def farthest(self, spent: Spent, stage: Ints) -> Ints:
        """Return the op on each branch whose stage is farthest from ``stage``, the earliest of several; -1 for none."""
        root = len(self._ops.start)
        nodes = np.zeros(len(stage), np.int64)
        first, last = (np.where(ops < 0, root, ops) for ops in (spent.nearest, spent.earliest))
        _FARTHEST((first, last, stage, self._ops, self._forest), (nodes,), work=len(stage))
        return np.where(nodes == root, -1, nodes)


def _forest(since: Floats) -> Forest:
    """Return a forest without branches: every node names the root."""
    root = len(since)
    nodes = [np.full(root + 1, root, np.int64) for _ in range(4)]
    depth = np.append(np.full(root, -1, np.int64), 0)
    above, jump, lowest, highest = nodes
    sums = np.zeros((root + 1) * SORTS)
    return Forest(np.append(since, -np.inf), above, jump, depth, lowest, highest, sums)
