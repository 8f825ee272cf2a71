"""Reasons of idle time: every idle moment of a rank has one reason, and together they add up to its idle time.

An idle gap ends when something arrives. The chain of ops that led to the arrival tells what happened elsewhere at every
moment of the gap: an op ran on another rank, or a message was under way::

    rank 0   F0 |  COMPUTE  | TRANSFER | B0        the gap before B0 of rank 0: first B0 of rank 1 runs,
    rank 1        F0  B0 ------------->            then its gradient is under way

Time that an op takes beyond the mean of its kind over the stages counts as imbalance. Overhead of ops and messages counts on
the rank itself and where another rank waits for it. Copies to the host and back and collectives have their own reasons; so
has the time in which a message is ready, but behind others on its communication streams. Before its first op a rank cannot
start earlier than the first microbatch can reach it (start-up); after its last op, and the reductions of its gradients, it
has nothing to do (drain). If a memory limit is given, and the next forward had arrived but did not fit, the limit is the
reason.

Chains run through all ranks, so the number of pieces grows with the square of the ranks. Their totals are computed without
listing them, by one loop along the chains (:mod:`~pipeplan.simulation.idle_kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from pipeplan.costs import Costs
from pipeplan.foundation.errors import ShapeError
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Floats, Ints, Kind, Reason, Schedule, Timeline, tolerances
from pipeplan.simulation.critical import Chains, timed_only
from pipeplan.simulation.idle_gaps import WAITS, GapWalker, Piece, Pieces, Walk
from pipeplan.simulation.idle_kernel import OFFLOAD, REDUCE, RELOAD, SORTS, UNSHARD, Ops, Spent, Waits, divide_waits
from pipeplan.simulation.streams import results_left

_DIVIDE_WAITS = Kernel(divide_waits)

MOST_PIECES = 10_000_000
"""Maximum number of pieces that are listed one by one: about 0.3 GB."""

ONE_BY_ONE = 100_000
"""Approximate number of pieces up to which a picture draws each of them."""

_IN_A_GAP = 24
"""Beyond that, maximum number of ops on the chain that causes a gap whose pieces are still drawn one by one."""

_PARTS = 8
"""Number of parts into which a longer gap is divided; in each part, pieces of one reason are drawn as one."""

_BY_SORT = np.array(
    [
        Reason.TRANSFER,
        Reason.COMPUTE,
        Reason.IMBALANCE,
        Reason.OVERHEAD,
        Reason.OFFLOAD,
        Reason.RELOAD,
        Reason.QUEUE,
        Reason.UNSHARD,
        Reason.REDUCE,
    ],
    np.int8,
)
"""Reason of each sort of time in :mod:`~pipeplan.simulation.idle_kernel`."""


@final
@dataclass(frozen=True, eq=False)
class IdleTimes:
    """Idle time of all ranks, divided by reason; its ``pieces`` are listed on first use.

    Attributes
    ----------
    stretches
        Parts of each gap as far as its own rank tells them: about as many as there are gaps.
    """

    stretches: Pieces
    _walk: Walk
    _ops: Ops

    @cached_property
    def pieces(self) -> Pieces:
        """Return all pieces one by one. Their number grows with the square of the ranks.

        Raises
        ------
        ShapeError
            If there are more than ``MOST_PIECES``.
        """
        number = int(self.spent.holders.sum()) + len(self.stretches)
        if number > MOST_PIECES:
            raise ShapeError(
                f"too many idle pieces to list: at least {number:,}, at most {MOST_PIECES:,} are listed; use the totals by "
                "reason instead"
            )
        return Pieces.of(self._one_by_one({}))

    @cached_property
    def drawn(self) -> Pieces:
        """Return the pieces for a picture, at most a few dozen per gap.

        If there are very many, pieces of one reason in the same part of a long gap become one. Every gap keeps its total
        time of each reason.
        """
        # Gaps with long chains are drawn in parts; the others piece by piece.
        held = self.spent.holders
        many = self.waits[held > _IN_A_GAP] if held.sum() > ONE_BY_ONE else self.waits[:0]
        return Pieces.of(self._one_by_one(dict(zip(many.tolist(), self._in_parts(many), strict=True))))

    @cached_property
    def waits(self) -> Ints:
        """Return the positions of the stretches that are waits for an op."""
        return np.flatnonzero(self.stretches.reason == WAITS)

    @cached_property
    def spent(self) -> Spent:
        """Return the time of these waits by reason, and the ops that they waited for."""
        return self._spent(self.stretches.start[self.waits], self.stretches.end[self.waits], self.waits)

    def holder(self, op: int) -> int:
        """Return the op that an op had to wait for last (:class:`~pipeplan.simulation.critical.Chains`), -1 for none."""
        return self._walk.chains.holder(op)

    def farthest(self, waits: Ints, stage: Ints) -> Ints:
        """Return, for each wait, the op on the chain that causes it that is farthest from a stage; -1 for none.

        Parameters
        ----------
        waits
            Positions in ``waits``.
        stage
            One stage for each wait. Of several ops that are equally far, the earliest is returned.
        """
        low, high = self.spent.lowest[waits], self.spent.highest[waits]
        below, over = np.abs(self._ops.stage[low] - stage), np.abs(self._ops.stage[high] - stage)
        earlier = self._ops.since[high] < self._ops.since[low]
        return np.where((over > below) | ((over == below) & earlier), high, low)

    def totals(self, ranks: int) -> Floats:
        """Return the idle time by rank and reason, shape (ranks, reasons), in time linear in the number of ops."""
        stretches, clear = self.stretches, self.stretches.reason != WAITS
        table = np.zeros((ranks, len(Reason)))
        lengths = stretches.end - stretches.start
        np.add.at(table, (stretches.rank[clear], stretches.reason[clear]), lengths[clear])
        rank = stretches.rank[self.waits]
        table[:, Reason.START_UP] += np.bincount(rank, self.spent.start_up, minlength=ranks)
        np.add.at(table, (rank[:, None], _BY_SORT[None, :]), self.spent.by_sort.reshape(-1, SORTS))
        return table

    def _spent(self, begin: Floats, stop: Floats, which: Ints) -> Spent:
        count = len(which)
        nearest, lowest, highest = (np.full(count, -1) for _ in range(3))
        spent = Spent(nearest, lowest, highest, np.zeros(count, np.int64), np.zeros(count), np.zeros(count * SORTS))
        waits = Waits(begin, stop, self.stretches.cause[which])
        _DIVIDE_WAITS((waits, self._ops, self._walk.chains.rounding), (spent,))
        return spent

    def _one_by_one(self, instead: Mapping[int, list[Piece]]) -> Iterator[Piece]:
        """Yield all pieces in order; ``instead`` has the pieces of some stretches, by their positions."""
        stretches = self.stretches
        columns = (stretches.rank, stretches.start, stretches.end, stretches.reason, stretches.cause)
        for place, stretch in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            rank, begin, stop, reason, op = stretch
            if reason != WAITS:
                yield stretch
            elif place in instead:
                yield from instead[place]
            else:
                yield from [*self._walk.back(rank, begin, stop, op)][::-1]

    def _in_parts(self, which: Ints) -> Iterator[list[Piece]]:
        """Divide each stretch into equal parts, and yield one piece per part and reason that occurs in it."""
        stretches = self.stretches
        edges = np.linspace(stretches.start[which], stretches.end[which], _PARTS + 1, axis=1)
        spent = self._spent(edges[:, :-1].ravel(), edges[:, 1:].ravel(), np.repeat(which, _PARTS))
        table = np.column_stack((spent.start_up, spent.by_sort.reshape(-1, SORTS)))
        times = table.reshape(len(which), _PARTS, 1 + SORTS).tolist()
        causes = spent.nearest.reshape(len(which), _PARTS).tolist()
        rows = zip(stretches.rank[which].tolist(), edges.tolist(), times, causes, strict=True)
        for rank, edge, parts, cause in rows:
            yield [
                piece
                for begin, stop, part, op in zip(edge, edge[1:], parts, cause, strict=False)
                for piece in _blocks(rank, begin, stop, part, op)
            ]


def idle_times(timeline: Timeline, costs: Costs, *, limit: Floats | None = None) -> IdleTimes:
    """Return the idle time of every rank with its reasons.

    Parameters
    ----------
    timeline
        A simulated or measured timeline.
    costs
        Costs of the timeline: overheads and the transfer time.
    limit
        Memory limit of each rank in activations, shape (ranks,). With None, memory is never a reason.
    """
    left = results_left(timeline) if costs.communication == "streams" else None
    timeline = timed_only(timeline)
    schedule, excess = timeline.schedule, _excess(timeline)
    chains = Chains(timeline, costs, left)
    gaps = GapWalker(timeline, chains, costs, limit)
    stretches = Pieces.of(stretch for rank in range(schedule.ranks) for stretch in gaps.rank(rank))
    return IdleTimes(stretches, Walk(chains, schedule, excess), _ops(chains, schedule, excess))


def _ops(chains: Chains, schedule: Schedule, excess: Floats) -> Ops:
    """Return the ops of a timeline as the kernel takes them; ``excess`` is their time beyond the mean of their kind."""
    start, end, taken = np.array(chains.start), np.array(chains.end), np.array(chains.taken)
    code = np.full(len(Kind), -1)
    code[Kind.OFFLOAD], code[Kind.RELOAD] = OFFLOAD, RELOAD
    code[Kind.UNSHARD], code[Kind.REDUCE_GRAD] = UNSHARD, REDUCE
    copy: Ints = code[schedule.columns.kind]
    return Ops(
        holder=chains.holders,
        since=np.where(copy >= 0, start, taken),
        start=start,
        expected=end - excess,
        end=end,
        freed=np.array(chains.freed),
        left=np.array(chains.left),
        copy=copy,
        stage=schedule.columns.stage.astype(np.int64),
    )


def _blocks(rank: int, begin: float, stop: float, times: Sequence[float], cause: int) -> Iterator[Piece]:
    """Yield one piece after the other for each reason with time; the last one ends where the part does."""
    codes = (Reason.START_UP, *_BY_SORT.tolist())
    here = [(code, time) for code, time in zip(codes, times, strict=True) if time > 0]
    for place, (code, time) in enumerate(here):
        end = stop if place == len(here) - 1 else min(begin + time, stop)
        if end > begin:
            yield rank, begin, end, code, -1 if code == Reason.START_UP else cause
        begin = end


def _excess(timeline: Timeline) -> Floats:
    """Return the time of each op beyond the mean of its kind over the stages, 0 if it is shorter; shape (ops,)."""
    columns, time = timeline.schedule.columns, timeline.end - timeline.start
    # Overlapped ops share their time, so they are not compared with single ones.
    time = np.where(columns.group >= 0, 0.0, time)
    cell = columns.kind.astype(np.int64) * timeline.schedule.stages + columns.stage
    size = len(Kind) * timeline.schedule.stages
    count, total = np.bincount(cell, time > 0, minlength=size), np.bincount(cell, time, minlength=size)
    means = np.divide(total, count, out=np.zeros(size), where=count > 0).reshape(len(Kind), -1)
    over_stages = means.sum(axis=1) / np.maximum((means > 0).sum(axis=1), 1)
    excess = time - over_stages[columns.kind]
    return np.where(excess > tolerances.ROUNDING * time, excess, 0.0)
