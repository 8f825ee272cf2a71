"""Why ranks idle: every idle moment has one reason, and together they add up to the idle time.

An idle gap ends when something arrives. Walked back from there, the chain behind it says what happened elsewhere at every
moment of the gap: an op was running on another rank, or a message was under way. What an op takes beyond the mean of its
kind over the stages counts as imbalance. What ops and messages take from a rank besides is overhead, on the rank itself and
where another waits for it. Copies to the host and back are reasons of their own. Before its first op a rank could not have
started earlier than the first microbatch can reach it (start-up); after its last op it has nothing to do (drain). Where a
memory limit is given and the next forward had arrived but did not fit, the limit is the reason.

A chain runs through all ranks, and so there are pieces with the square of the ranks. What they add up to is found without
them, as differences of sums along the chains (:mod:`~pipeplan.simulation.idle_branches`); they are listed one by one only
where somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.errors import ShapeError
from pipeplan.model import Floats, Ints, Kind, Timeline, tolerances
from pipeplan.simulation.chain import Chains, timed_only
from pipeplan.simulation.idle_branches import Branches, Spent
from pipeplan.simulation.idle_gaps import WAITS, GapWalker, Walk
from pipeplan.simulation.idle_pieces import Piece, Pieces, Reason, pieces_of

MOST_PIECES = 10_000_000
"""Pieces that are listed one by one: about 0.3 GB."""

ONE_BY_ONE = 100_000
"""Pieces of a picture in which each of them is drawn, about."""

_IN_A_GAP = 24
"""In a picture of more, ops on the chain behind a gap whose pieces are drawn one by one."""

_PARTS = 8
"""Parts of a gap of more pieces: in each, those of one reason are drawn as one."""

_BY_SORT = np.array(
    [Reason.TRANSFER, Reason.COMPUTE, Reason.IMBALANCE, Reason.OVERHEAD, Reason.OFFLOAD, Reason.RELOAD], np.int8
)
"""The reasons of what chains spend their time on, by the sorts of :mod:`~pipeplan.simulation.idle_kernel`."""


@final
@dataclass(frozen=True, eq=False)
class IdleTimes:
    """Idle times; their sum is each rank's idle time.

    ``rank``, ``start``, ``end``, ``reason`` and ``cause`` are columns of all pieces by rank and time, which are listed when
    they are first asked for; see :class:`~pipeplan.simulation.idle_pieces.Pieces`.

    Attributes
    ----------
    stretches
        What is known of each gap without a look at other ranks: as many as there are gaps, and a little more.
    """

    stretches: Pieces
    _walk: Walk
    _branches: Branches

    @property
    def rank(self) -> NDArray[np.int32]:
        """Of each piece."""
        return self.pieces.rank

    @property
    def start(self) -> Floats:
        """Of each piece."""
        return self.pieces.start

    @property
    def end(self) -> Floats:
        """Of each piece."""
        return self.pieces.end

    @property
    def reason(self) -> NDArray[np.int8]:
        """Of each piece."""
        return self.pieces.reason

    @property
    def cause(self) -> Ints:
        """Of each piece."""
        return self.pieces.cause

    @cached_property
    def pieces(self) -> Pieces:
        """All of them one by one, which takes as long as there are many.

        Raises
        ------
        ShapeError
            For more than ``MOST_PIECES``: there are some for each pair of ranks.
        """
        number = int(self.spent.holders.sum()) + len(self.stretches)
        if number > MOST_PIECES:
            raise ShapeError(
                f"ranks idle in {number:,} pieces or more here, and at most {MOST_PIECES:,} are listed one by one; what "
                "they add up to is had without a list"
            )
        return pieces_of(self._one_by_one({}))

    @cached_property
    def drawn(self) -> Pieces:
        """The pieces for a picture: where there are very many, those of one reason in one part of a long gap are one.

        No gap has more than a few dozen then, and each as much time of each reason as before.
        """
        held = self.spent.holders
        many = self.waits[held > _IN_A_GAP] if held.sum() > ONE_BY_ONE else self.waits[:0]
        return pieces_of(self._one_by_one(dict(zip(many.tolist(), self._in_parts(many), strict=True))))

    @cached_property
    def waits(self) -> Ints:
        """Which stretches are waits for an op: positions."""
        return np.flatnonzero(self.stretches.reason == WAITS)

    @cached_property
    def spent(self) -> Spent:
        """What the chains spent these waits on."""
        return self._spent(self.stretches.start[self.waits], self.stretches.end[self.waits], self.waits)

    def farthest(self, waits: Ints, stage: Ints) -> Ints:
        """Of what held each of these waits the op that is farthest from a stage, the earliest of several; -1 for none.

        Parameters
        ----------
        waits
            Places among ``waits``.
        stage
            One for each.
        """
        return self._branches.farthest(self.spent.chosen(waits), stage)

    def totals(self, ranks: int) -> Floats:
        """Time by rank and reason, shape (ranks, reasons), in about the time that it takes to look at every op."""
        found, known = self.stretches, self.stretches.reason != WAITS
        table = np.zeros((ranks, len(Reason)))
        np.add.at(table, (found.rank[known], found.reason[known]), (found.end - found.start)[known])
        rank = found.rank[self.waits]
        table[:, Reason.START_UP] += np.bincount(rank, self.spent.start_up, minlength=ranks)
        np.add.at(table, (rank[:, None], _BY_SORT[None, :]), self.spent.by_sort)
        return table

    def _spent(self, begin: Floats, stop: Floats, which: Ints) -> Spent:
        return self._branches.spent(begin, stop, self.stretches.cause[which])

    def _one_by_one(self, instead: Mapping[int, list[Piece]]) -> Iterator[Piece]:
        """All pieces in order, but for some stretches these ones."""
        found = self.stretches
        columns = (found.rank, found.start, found.end, found.reason, found.cause)
        for place, stretch in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            rank, begin, stop, reason, op = stretch
            if reason != WAITS:
                yield stretch
            elif place in instead:
                yield from instead[place]
            else:
                yield from [*self._walk.back(rank, begin, stop, op)][::-1]

    def _in_parts(self, which: Ints) -> Iterator[list[Piece]]:
        """For each of these stretches, parts of one length, and in each a piece of every reason that occurs there."""
        found = self.stretches
        edges = np.linspace(found.start[which], found.end[which], _PARTS + 1, axis=1)
        spent = self._spent(edges[:, :-1].ravel(), edges[:, 1:].ravel(), np.repeat(which, _PARTS))
        times = np.column_stack((spent.start_up, spent.by_sort)).reshape(len(which), _PARTS, 1 + len(_BY_SORT)).tolist()
        causes = spent.nearest.reshape(len(which), _PARTS).tolist()
        rows = zip(found.rank[which].tolist(), edges.tolist(), times, causes, strict=True)
        for rank, edge, parts, cause in rows:
            yield [
                piece
                for begin, stop, part, op in zip(edge, edge[1:], parts, cause, strict=False)
                for piece in _blocks(rank, begin, stop, part, op)
            ]


def idle_times(timeline: Timeline, costs: Costs, *, limit: Floats | None = None) -> IdleTimes:
    """Every idle moment of every rank with its reason, of a simulated or a measured timeline.

    Parameters
    ----------
    limit
        The limit of each rank in activations, shape (ranks,), or None: then nothing is held back by memory.
    """
    timeline = timed_only(timeline)
    schedule, excess = timeline.schedule, _excess(timeline)
    chains = Chains(timeline, costs)
    gaps = GapWalker(timeline, chains, costs, limit)
    stretches = pieces_of(stretch for rank in range(schedule.ranks) for stretch in gaps.rank(rank))
    return IdleTimes(stretches, Walk(chains, schedule, excess), Branches(chains, schedule, excess))


def _blocks(rank: int, begin: float, stop: float, times: Sequence[float], cause: int) -> Iterator[Piece]:
    """One piece after the other for the reasons that take any time; the last ends where the part does."""
    codes = (Reason.START_UP, *_BY_SORT.tolist())
    here = [(code, time) for code, time in zip(codes, times, strict=True) if time > 0]
    for place, (code, time) in enumerate(here):
        end = stop if place == len(here) - 1 else min(begin + time, stop)
        if end > begin:
            yield rank, begin, end, code, -1 if code == Reason.START_UP else cause
        begin = end


def _excess(timeline: Timeline) -> Floats:
    """How much longer than the mean of its kind over the stages each op takes, 0 for one that is shorter; shape (ops,)."""
    columns, time = timeline.schedule.columns, timeline.end - timeline.start
    time = np.where(columns.group >= 0, 0.0, time)
    cell = columns.kind.astype(np.int64) * timeline.schedule.stages + columns.stage
    size = len(Kind) * timeline.schedule.stages
    count, total = np.bincount(cell, time > 0, minlength=size), np.bincount(cell, time, minlength=size)
    means = np.divide(total, count, out=np.zeros(size), where=count > 0).reshape(len(Kind), -1)
    over_stages = means.sum(axis=1) / np.maximum((means > 0).sum(axis=1), 1)
    excess = time - over_stages[columns.kind]
    return np.where(excess > tolerances.ROUNDING * time, excess, 0.0)
