"""Op order of a schedule as a graph: its makespan is the longest path, and every path bounds all layouts from below.

The order fixes all dependencies; a layout only changes durations. The makespan is therefore the maximum over a fixed set of
paths, each of which takes a weighted sum of the stages' times. The longest path of one layout is a lower bound on the
makespan of every other: a cut, as in Benders' decomposition (1962).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs, Memory, Overhead, Transfer
from pipeplan.extensions.search.layouts.path_kernel import longest_path
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import BACKWARD_KINDS, Floats, Ints, Kind, Schedule, crosses_ranks, dependencies
from pipeplan.simulation import simulate

_LONGEST_PATH = Kernel(longest_path)

_PARTS = {Kind.F: (1, 0, 0), Kind.B: (0, 1, 1), Kind.I: (0, 1, 0), Kind.W: (0, 0, 1)}
"""Shares of a stage's F, I and W in each kind of op."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphPath:
    """Chain of ops, which takes ``(counts * times).sum() + constant`` for stage times of shape (stages, 3).

    Attributes
    ----------
    counts
        Number of each stage's F, I and W on the path; shape (stages, 3).
    constant
        Seconds of its messages and of overhead between its ops.
    pairs
        Number of ops of each of the graph's pairs, which are not in ``counts``; empty if pairs take the sum of their ops.
    """

    counts: Floats
    constant: float
    pairs: Floats


WITH_FULL, WITH_INPUT, ALONE = range(3)
"""Kinds of ops whose time is that of two lanes: a forward with a B, a forward with an I, and a B alone."""


class OrderGraph:
    """Ops of a schedule as nodes of a graph, in topological order.

    Parameters
    ----------
    schedule
        Schedule of F, B, I and W; sequences may be sliced, and pairs of ops may overlap.
    transfer
        Seconds of a message between ranks.
    overhead
        Overhead between ops.
    segmented
        True if a pair has a time of its own; False: it takes the sum of its two ops.
    """

    def __init__(
        self, schedule: Schedule, transfer: float = 0.0, overhead: Overhead | None = None, *, segmented: bool = False
    ) -> None:
        self.schedule = schedule
        self.transfer = transfer / schedule.slices
        costs = _ones(schedule.stages, Overhead() if overhead is None else overhead)
        if segmented:
            costs = replace(costs, overlap=2 * costs.forward)  # a pair has one gap
        needs = dependencies(schedule)
        crossing = np.where(crosses_ranks(schedule, needs.arrival), needs.arrival, -1)
        start = simulate(schedule, _ones(schedule.stages, Overhead())).timeline.start
        # An overlapped pair is one node, at its first op. Simulated starts give a topological order.
        first = np.flatnonzero(~schedule.joined)
        nodes = first[np.argsort(start[first], kind="stable")]
        number = np.empty(len(schedule), np.int64)
        number[nodes] = np.arange(len(nodes))
        joined = np.flatnonzero(schedule.joined)
        number[joined] = number[joined - 1]
        self._before = self._previous(nodes, number)
        self._source = _numbered(crossing[nodes], number)
        self._ops = nodes
        self._partner = np.full(len(nodes), -1)
        self._partner[number[joined]] = joined
        partner = np.maximum(self._partner, 0)
        self._second = np.where(self._partner >= 0, _numbered(crossing[partner], number), -1)
        self._feature, self._weights = self._features(schedule)
        lost = np.zeros(len(schedule)) if not costs.overhead.between_ops else np.add(*costs.lost(schedule))
        self._lost = lost[nodes]
        self.evaluations = 0

    def _previous(self, nodes: NDArray[np.intp], number: Ints) -> Ints:
        schedule = self.schedule
        before = np.full(len(nodes), -1, np.int64)
        following = nodes[~np.isin(nodes, schedule.offsets)]
        before[number[following]] = number[following - 1]
        return before

    def _features(self, schedule: Schedule) -> tuple[Ints, Floats]:
        """Return each op's kind and stage as one number, and by that number its shares of the stage's times."""
        columns = schedule.columns
        feature = columns.kind.astype(np.int64) * schedule.stages + columns.stage
        parts = np.zeros((len(Kind), 3))
        for kind, which in _PARTS.items():
            parts[kind] = which
        return feature, parts / schedule.slices

    @cached_property
    def pairs(self) -> Ints:
        """Kind, stage of the forward and stage of the backward of each sort of pairs, and of B alone; shape (sorts, 3)."""
        return self._sorts[0]

    @cached_property
    def _sorts(self) -> tuple[Ints, Ints]:
        """Return the sorts of pairs, and the sort of each node; -1: none."""
        columns, stages = self.schedule.columns, self.schedule.stages
        # A B alone is both of its ops.
        second = np.where(self._partner >= 0, self._partner, self._ops)
        both = (self._ops, second), (second, self._ops)
        forward, backward = np.where(columns.kind[self._ops] == Kind.F, *both)
        kind = np.where(columns.kind[backward] == Kind.I, WITH_INPUT, WITH_FULL)
        kind[self._partner < 0] = ALONE
        has = (self._partner >= 0) | (columns.kind[self._ops] == Kind.B)
        sorts = (kind * stages + columns.stage[forward]) * stages + columns.stage[backward]
        own, number = np.unique(sorts[has], return_inverse=True)
        of_nodes = np.full(len(self._ops), -1)
        of_nodes[has] = number
        return np.stack((own // stages**2, own // stages % stages, own % stages), axis=1), of_nodes

    def path(self, times: Floats, pairs: Floats | None = None) -> tuple[float, GraphPath]:
        """Return the makespan and the longest path for stage times of shape (stages, 3).

        ``pairs`` are the times of :attr:`pairs`, shape (sorts,); None: each takes the sum of its ops.
        """
        stages = self.schedule.stages
        table = (self._weights[:, None, :] * times[None, :, :]).sum(axis=2).ravel()
        of_ops = table[self._feature]
        duration = of_ops[self._ops] + np.where(self._partner >= 0, of_ops[self._partner], 0.0)
        if pairs is not None:
            duration = np.where(self._sorts[1] >= 0, pairs[self._sorts[1]] / self.schedule.slices, duration)
        duration = duration + self._lost
        count = len(duration)
        end, cause, on_path = np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
        last = _LONGEST_PATH((self._before, self._source, self._second, duration, self.transfer), (end, cause, on_path))
        self.evaluations += 1
        chain = np.flatnonzero(on_path > 0)
        summed, of_pairs = chain, np.zeros(0)
        if pairs is not None:
            sorts = self._sorts[1][chain]
            summed = chain[sorts < 0]
            of_pairs = np.bincount(sorts[sorts >= 0], minlength=len(pairs)) / self.schedule.slices
        partners = self._partner[summed]
        ops = np.concatenate((self._ops[summed], partners[partners >= 0]))
        # Count the ops of the path by kind and stage, then convert kinds to shares of F, I and W.
        by_kind = np.bincount(self._feature[ops], minlength=len(Kind) * stages).reshape(len(Kind), stages)
        counts = by_kind.T @ self._weights
        constant = float((on_path[chain] > 1).sum() * self.transfer + self._lost[chain].sum())
        return float(end[last]), GraphPath(counts, constant, of_pairs)


def _ones(stages: int, overhead: Overhead) -> Costs:
    one, none = np.ones(stages), np.zeros(stages)
    return Costs(one, 2 * one, one, one, one, Memory(none, none, none, in_bytes=True), None, Transfer(), overhead)


def _numbered(positions: NDArray[np.signedinteger], number: Ints) -> Ints:
    return np.where(positions >= 0, number[np.maximum(positions, 0)], -1)


def holdings(schedule: Schedule) -> list[Floats]:
    """Return for each rank how many microbatches of each stage it holds at once, as rows of shape (rows, stages, 3).

    The last axis counts what is held whole, what is held until W, and the transients of a running backward. Only rows that
    no other row dominates are returned: a rank's peak is the maximum over the rows for any bytes per stage.
    """
    ranks = []
    for rank in range(schedule.ranks):
        columns = schedule.row(rank)
        kind, here = columns.kind, np.unique(columns.stage)
        own = np.searchsorted(here, columns.stage)
        # Levels after each op, and during each backward with its transients (third column).
        backward = np.isin(kind, BACKWARD_KINDS)
        change = np.zeros((len(columns) + 1, len(here), 3), np.int64)
        at = np.arange(1, len(columns) + 1)
        change[at, own, 0] = np.where(kind == Kind.F, 1, np.where(backward, -1, 0))
        change[at, own, 1] = np.where(kind == Kind.I, 1, np.where(kind == Kind.W, -1, 0))
        after = np.cumsum(change, axis=0)
        during = after[:-1][backward]
        during[np.arange(len(during)), own[backward], 2] = 1
        levels = np.concatenate((after, during)).reshape(-1, 3 * len(here))
        best = _undominated(np.unique(levels, axis=0))
        rows = np.zeros((len(best), schedule.stages, 3))
        rows[:, here] = best.reshape(len(best), len(here), 3)
        ranks.append(rows / schedule.slices)
    return ranks


def _undominated(rows: Ints) -> Ints:
    """Return the rows that no other row equals or exceeds in every number."""
    rows = rows[np.argsort(-rows.sum(axis=1), kind="stable")]
    kept, count = np.empty_like(rows), 0
    for row in rows:
        if not (kept[:count] >= row).all(axis=1).any():
            kept[count] = row
            count += 1
    return kept[:count]
